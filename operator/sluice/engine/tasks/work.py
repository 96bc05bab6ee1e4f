"""Carry out one stream's copy within a run: do its steps, retry errors, and give up."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from sluice.core.copy.steps import Done, Follow, Transfer, Verify
from sluice.core.pace.retry import Patience
from sluice.errors import (
    UNDECIDED,
    AbortRefused,
    Category,
    ConditionFailed,
    CopyAborted,
    NoSuchSegment,
    SegmentSealed,
    SegmentTruncated,
    SluiceError,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.steps import Step
    from sluice.engine.tasks.clock import Clock
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Source

MOVED_ON = (NoSuchSegment, SegmentSealed, SegmentTruncated, ConditionFailed)
"""Refusals that mean that the store has changed since the observation. Look again at once."""

CLEANED = (Category.SPEC, Category.INTEGRITY)
"""After failures of these categories, staging and the unpublished target are deleted."""

KEPT = (CopyAborted, *UNDECIDED)
"""Failures that delete nothing: nothing is left, or a person has to decide first."""

LASTING_SECONDS: Final = 1.0
"""Seconds after which following a source counts as work, though nothing came."""

T = TypeVar("T")
P = TypeVar("P")
"""A plan of one stream."""
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
"""The report of one stream."""


if TYPE_CHECKING:
    CopyRun: TypeAlias = "StreamRun[Any, Any]"
    """The run of one stream of a scope, from and to any kind of store."""


class Work(Protocol[P, R_co]):
    """The work on one stream, step by step: its copy, or a run of its archive.

    Between two steps only the stores hold state, so any driver can go on.

    Attributes:
        plan: the plan of the work.
        number: its place among the works that run together.
        sources: the stores that its slices are read from.
    """

    plan: P
    number: int
    sources: Sequence[Source]

    @property
    def moving(self) -> int:
        """The bytes of the plan that is carried out now: of the work, or of a part of it."""
        ...

    def begin(self, *, permit: Callable[[], None] | None) -> R_co | None:
        """Begin or resume the work, and make sure that its plan is the recorded one.

        The plan may be old: the work may be complete by now, or aborted.

        Args:
            permit: called before work that is not complete begins; raises if it must not begin.

        Returns:
            The report, if the work is done already; else None.
        """
        ...

    def look(self) -> Step:
        """Look at the stores, and decide the next step."""
        ...

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        ...

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """Return the next slices of a step that moves bytes."""
        ...

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Record results of slices; of a step's slices maybe not all at once."""
        ...

    def finished(self, digest: str) -> R_co:
        """Return the report of complete work with this digest."""
        ...

    def give_up(self) -> None:
        """Delete all that the work has made and not published."""
        ...

    def failed(self, error: SluiceError, *, cleaned: bool) -> R_co:
        """Return the report of work that failed for good."""
        ...

    def let_go(self) -> None:
        """Leave the stores as they have to be while no driver does this work."""
        ...


class Listener(Protocol):
    """A listener to the work on streams. It is called from the thread that does the work."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Note that a step begins."""

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Note that a step failed, and is tried again after `delay` seconds."""


class Silent:
    """A listener that ignores all calls."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Do nothing."""

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Do nothing."""


class StreamRun(Generic[P, R]):
    """The progress of one stream's copy, or archive run, within a run of many streams.

    Different threads may use it, but only one at a time.

    Args:
        copy: the copy.
        listener: called at every step and retry.
        clock: time.
        patience: seconds without progress after which it is given up; None for each error
            category's own.
        permit: see `Work.begin`.

    Attributes:
        copy: the copy.
        report: its report, once it has ended.
        not_before: time by the clock before which it waits.
        moves: how often bytes of it were moved or compared.
    """

    MOST_SURPRISES = 5
    MOST_REPEATS = 3

    def __init__(
        self,
        copy: Work[P, R],
        *,
        listener: Listener,
        clock: Clock,
        patience: float | None = None,
        permit: Callable[[], None] | None = None,
    ) -> None:
        self.copy = copy
        self.report: R | None = None
        self.not_before = 0.0
        self.moves = 0
        self._listener = listener
        self._clock = clock
        self._patience = Patience(patience)
        self._permit = permit
        self._began = False
        self._surprises = 0
        self._last: Step | None = None
        self._done = 0
        self._pending: Transfer | Verify | None = None

    def advance(self, limits: Limits, executor: Executor) -> list[Slice]:
        """Do the steps up to the next that moves bytes.

        Returns:
            The slices of that step for the executor. No slices if the copy has ended, waits, or has
            to be looked at again.
        """
        return self._guarded(lambda: self._advance(limits, executor)) or []

    def slices(self, limits: Limits, executor: Executor) -> list[Slice]:
        """Return the slices of the pending step, for this executor and these limits."""
        return (
            [] if self._pending is None else self.copy.slices(self._pending, limits, executor.slots)
        )

    def take(self, results: Sequence[SliceResult]) -> SluiceError | None:
        """Absorb results of the pending step, which goes on. Return the error if that fails."""
        try:
            self._take(results)
        except SluiceError as error:
            return error
        return None

    def absorb(self, results: Sequence[SliceResult], error: SluiceError | None = None) -> None:
        """Absorb the last results of the pending step.

        Args:
            results: the results.
            error: why some slices have none. It counts as the stream's, before those of results.
        """
        self._guarded(lambda: self._absorb(results, error))

    def failed(self, error: SluiceError) -> None:
        """Schedule a retry, or give the stream up, by the error's category."""
        now = self._clock.monotonic()
        delay = self._patience.delay(error, now)
        if delay is None:
            self.report = self._given_up(error)
        else:
            self.not_before = now + delay
            self._listener.retry(self.copy, error, delay)

    def let_go(self) -> None:
        """Let the work restore its target. Errors are ignored: the next driver tries it again."""
        if self._began:
            with suppress(SluiceError):
                self.copy.let_go()

    def _advance(self, limits: Limits, executor: Executor) -> list[Slice]:
        copy = self.copy
        if not self._began:
            self.report = copy.begin(permit=self._permit)
            self._began = True
        while self.report is None:
            step = copy.look()
            self._listener.step(copy, step)
            if step != self._last:
                self._last, self._done = step, 0
            if isinstance(step, Done):
                self.report = copy.finished(step.digest)
            elif isinstance(step, Transfer | Verify):
                self._pending = step
                slices = copy.slices(step, limits, executor.slots)
                if slices:
                    return slices
                copy.absorb(step, [])
            else:
                self._perform(step)
        return []

    def _perform(self, step: Step) -> None:
        """Carry out a step.

        Only its first success counts as progress, so a step without effect is retried with a wait,
        and given up at last.
        """
        if self._done > self.MOST_REPEATS:
            self._done = self.MOST_REPEATS  # do it once more after the wait
            raise StoreUnavailable(f"{type(step).__name__} was done and shows no effect")
        began = self._clock.monotonic()
        self.copy.perform(step)
        if isinstance(step, Follow) and self._clock.monotonic() - began >= LASTING_SECONDS:
            self._done = 0  # nothing came meanwhile, and that is no failure
        self._done += 1  # not reached if the step raised
        if self._done == 1:
            self._patience.advanced()

    def _take(self, results: Sequence[SliceResult]) -> None:
        if self._pending is not None:
            self.copy.absorb(self._pending, results)
        if any(result.moved for result in results):
            self._patience.advanced()
            self.moves += 1

    def _absorb(self, results: Sequence[SliceResult], error: SluiceError | None) -> None:
        try:
            self._take(results)
        finally:
            self._pending = None
        error = error or next((one.error for one in results if one.error is not None), None)
        if error is not None:
            raise error
        self._surprises = 0

    def _guarded(self, action: Callable[[], T]) -> T | None:
        """Do something for the stream. Its errors do not affect other streams."""
        try:
            return action()
        except MOVED_ON as error:
            self._surprises += 1
            if self._surprises > self.MOST_SURPRISES:
                self.failed(error)
        except SluiceError as error:
            self.failed(error)
        return None

    def _given_up(self, error: SluiceError) -> R:
        """Clean up after a failure for good, and return the report.

        After an error that only a person can remove (in the spec, in the data), staging is deleted.
        After one that may pass (a store that is down, a wrong password), staging is kept, so that a
        later run goes on from there.
        """
        cleaned = False
        if self._began and error.category in CLEANED and not isinstance(error, KEPT):
            try:
                self.copy.give_up()
                cleaned = True
            except AbortRefused as refused:
                error.add_note(refused.message)
            except SluiceError as further:
                error.add_note(f"cleaning up failed as well: {further}")
        if not cleaned:
            self.let_go()
        return self.copy.failed(error, cleaned=cleaned)
