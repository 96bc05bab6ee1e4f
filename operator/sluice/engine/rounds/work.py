"""One stream's copy within a run: its steps, what is tried again, and when it is given up."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from sluice.core.copy.steps import Done, Transfer, Verify
from sluice.core.values.retry import Patience
from sluice.errors import (
    UNDECIDED,
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
    from sluice.engine.rounds.executor import Executor
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.stores.base import Source

MOVED_ON = (NoSuchSegment, SegmentSealed, SegmentTruncated, ConditionFailed)
"""Refusals that mean the world is not as it was observed: looking again says how it is."""

CLEANED = (Category.SPEC, Category.INTEGRITY)
"""Failures of these categories take their staging and their unpublished target with them."""

KEPT = (CopyAborted, *UNDECIDED)
"""Failures that leave all as it is: there is nothing any more, or a person has to decide first."""

T = TypeVar("T")
P = TypeVar("P")
"""A plan of one stream."""
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
"""What came of it."""


class Clock(Protocol):
    """Time, so that tests can own it."""

    def monotonic(self) -> float:
        """Seconds since some moment."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...


if TYPE_CHECKING:
    CopyRun: TypeAlias = "StreamRun[Any, Any]"
    """The copy of one stream of a scope, whatever it is copied from and to."""


class Work(Protocol[P, R_co]):
    """What is done step by step for one stream: its copy, or a run of its archive.

    Nothing is remembered between two steps but what the stores say, so whoever comes can go on.

    Attributes:
        plan: what is done.
        number: its place among those that are done together.
        sources: the stores that its slices are read from.
    """

    plan: P
    number: int
    sources: Sequence[Source]

    def begin(self, *, late: bool, permit: Callable[[], None] | None) -> R_co | None:
        """Take it up, and make sure of the plan.

        Args:
            late: whether the plan may be old, and nobody has looked since.
            permit: called before what is not whole is begun; raises what keeps it from that.

        Returns:
            The report, where it is done already.
        """
        ...

    def look(self) -> Step:
        """Observe, and decide the next step."""
        ...

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        ...

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """The slices of a step that moves bytes, for one round."""
        ...

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Write down what a round has brought."""
        ...

    def finished(self, digest: str) -> R_co:
        """The report of what is whole, under that digest."""
        ...

    def give_up(self) -> None:
        """Delete what there is of it."""
        ...

    def failed(self, error: SluiceError, *, cleaned: bool) -> R_co:
        """The report of what failed for good."""
        ...

    def let_go(self) -> None:
        """Leave all as it is to be while nobody goes on with it."""
        ...


class Listener(Protocol):
    """Hears what is done for a stream. Called from the thread that does it."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """A step begins."""

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """A step failed and is tried again after `delay` seconds."""


class Silent:
    """A listener that does not care."""

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """See Listener."""

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """See Listener."""


class StreamRun(Generic[P, R]):
    """A stream's copy, or the run of its archive, within a run of many.

    Whoever uses it, it is one thread at a time.

    Args:
        copy: the copy.
        listener: hears of every step.
        clock: time.
        patience: seconds without progress after which it is given up; None for each error
            category's own.
        late, permit: see `Work.begin`.

    Attributes:
        copy: the copy.
        report: what came of it, once it has ended.
        not_before: when it is to be gone on with, by the clock.
        moves: rounds in which bytes of it were moved or compared.
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
        late: bool = False,
        permit: Callable[[], None] | None = None,
    ) -> None:
        self.copy = copy
        self.report: R | None = None
        self.not_before = 0.0
        self.moves = 0
        self._listener = listener
        self._clock = clock
        self._patience = Patience(patience)
        self._late = late
        self._permit = permit
        self._began = False
        self._surprises = 0
        self._last: Step | None = None
        self._done = 0
        self._pending: Transfer | Verify | None = None

    def advance(self, limits: Limits, executor: Executor) -> list[Slice]:
        """Do the steps up to the next that moves bytes.

        Returns:
            Its slices for the executor; none where the copy has ended, waits, or is to be looked at
            again.
        """
        return self._guarded(lambda: self._advance(limits, executor)) or []

    def slices(self, limits: Limits, executor: Executor) -> list[Slice]:
        """The slices of the step that moves bytes, for this executor and these limits."""
        return (
            [] if self._pending is None else self.copy.slices(self._pending, limits, executor.slots)
        )

    def absorb(self, results: Sequence[SliceResult]) -> None:
        """Take in a round's results; the first error of a slice counts as the stream's."""
        self._guarded(lambda: self._absorb(results))

    def failed(self, error: SluiceError) -> None:
        """Try again later, or give the stream up."""
        now = self._clock.monotonic()
        delay = self._patience.delay(error, now)
        if delay is None:
            self.report = self._given_up(error)
        else:
            self.not_before = now + delay
            self._listener.retry(self.copy, error, delay)

    def let_go(self) -> None:
        """Leave nothing changed in a target that is somebody's; the next driver tries it too."""
        if self._began:
            with suppress(SluiceError):
                self.copy.let_go()

    def _advance(self, limits: Limits, executor: Executor) -> list[Slice]:
        copy = self.copy
        if not self._began:
            self.report = copy.begin(late=self._late, permit=self._permit)
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
        """Carry out a step. Only the first time is progress, and what failed was not done."""
        if self._done > self.MOST_REPEATS:
            self._done = self.MOST_REPEATS  # it is done once more after the wait
            raise StoreUnavailable(f"{type(step).__name__} was done and shows no effect")
        self.copy.perform(step)
        self._done += 1
        if self._done == 1:
            self._patience.advanced()

    def _absorb(self, results: Sequence[SliceResult]) -> None:
        step, self._pending = self._pending, None
        if step is not None:
            self.copy.absorb(step, results)
        if any(result.moved for result in results):
            self._patience.advanced()
            self.moves += 1
        error = next((result.error for result in results if result.error is not None), None)
        if error is not None:
            raise error
        self._surprises = 0

    def _guarded(self, action: Callable[[], T]) -> T | None:
        """Do something for the stream; its errors are its own alone."""
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
        """The report of a copy that failed for good.

        What only a person can mend (the spec, the data) leaves nothing behind. What may pass (a
        store that is down, a wrong password) keeps what is staged, so that the copy goes on.
        """
        cleaned = False
        if self._began and error.category in CLEANED and not isinstance(error, KEPT):
            try:
                self.copy.give_up()
                cleaned = True
            except SluiceError as further:
                error.add_note(f"cleaning up failed as well: {further}")
        if not cleaned:
            self.let_go()
        return self.copy.failed(error, cleaned=cleaned)
