"""The ending of a copy that follows its source: as of a copy to a new target, and then on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, assert_never

from sluice.core.copy import follow_progress
from sluice.core.copy.steps import (
    Follow,
    FollowStep,
    Grow,
    Halt,
    Live,
    Prove,
    Skip,
    Stop,
)
from sluice.core.follow import following
from sluice.core.follow.rows import row_of
from sluice.engine.access.source_runs import writable
from sluice.engine.copy.new_target import NewTarget
from sluice.engine.follow import perform
from sluice.engine.follow.observe import is_listed, look
from sluice.engine.follow.proving import Prover
from sluice.engine.follow.session import PROVE_SECONDS, Session
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.throttle import RateLimiter
from sluice.engine.tasks.work import MOVED_ON
from sluice.errors import InvalidEventNumber, SluiceError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.steps import Step
    from sluice.engine.staging.ending import StagedStream
    from sluice.engine.tasks.work import Clock
    from sluice.stores.base import Store


class FollowedTarget(NewTarget):
    """The `Ending` of a stream that is followed.

    Args:
        stream: the stream.
        limits: returns the present limits. It is called several times a second, and may raise to
            end the work.
        wish: returns why the copy is to end; None while it is to go on.
        clock: time.
        every: seconds after which appended bytes are compared.
        long: bytes of a journal from which on its records are replaced by one.
    """

    def __init__(
        self,
        stream: StagedStream,
        *,
        limits: Callable[[], Limits] = Limits,
        wish: Callable[[], str | None] = lambda: None,
        clock: Clock = time,
        every: float = PROVE_SECONDS,
        long: int = perform.LONG,
    ) -> None:
        super().__init__(stream, keep=True, alone=True)
        self._limits = limits
        self._wish = wish
        self._clock = clock
        self._every = every
        self._long = long
        self._rate = RateLimiter(lambda: limits().bytes_per_second, clock)
        self._prover: Prover | None = None
        self._journal: Journal | None = None

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. The stream's plan becomes the one that the journal has amended."""
        step = super().decide(seen)
        if not isinstance(step, Live):
            return step
        stream = self._stream
        self._journal, state = look(
            stream.plan,
            stream.journal,
            self._source,
            stream.target,
            wish=self._wish(),
            shut=seen.target is not None and seen.target.sealed,
        )
        return following.next_step(self._journal, state)

    def perform(self, step: Step) -> bool:
        """Carry out a step that moves no bytes, or a step of following."""
        if not isinstance(step, FollowStep):
            return super().perform(step)
        journal, log, target = self._decided, self._stream.journal, self._stream.target
        match step:
            case Follow():
                self._follow(journal, step)
            case Skip(losses):
                perform.skip(journal, losses, log, self._source, target)
            case Grow(segments):
                perform.grow(journal, segments, log, self._source, target)
            case Prove(ends):
                for index, end in ends:
                    link = self._compares.prove(journal, row_of(journal, index), end)
                    blind = self._compares.blind.pop(index, 0)
                    log.write([follow_progress.proved_record(index, link, blind)])
            case Stop(why):
                log.write([follow_progress.stop_record(why)])
            case Halt(positions):
                perform.halt(journal, positions, target)
            case _:
                assert_never(step)
        return False

    @property
    def _decided(self) -> Journal:
        """The journal from which the last step was decided."""
        if self._journal is None:
            raise StoreUnavailable("the copy was not looked at")
        return self._journal

    @property
    def _source(self) -> Store:
        return writable(self._stream.sources[self._stream.plan.sources[0].store])

    @property
    def _compares(self) -> Prover:
        if self._prover is None:
            self._prover = Prover(self._source, self._stream.target, self._rate)
        return self._prover

    def _asked(self) -> str | None:
        """Return why the copy is to end. Raises what the limits raise to end this driver's work."""
        self._limits()
        return self._wish()

    def _follow(self, journal: Journal, step: Follow) -> None:
        """Follow until something else has to be decided.

        A session that has appended counts as progress, however it ended: what broke it off shows
        again, if it lasts.
        """
        session = Session(
            journal,
            step,
            log=self._stream.journal,
            source=self._source,
            target=self._stream.target,
            prover=self._compares,
            window=self._limits().window(max(1, len(step.positions))),
            spend=self._rate.spend,
            wish=self._asked,
            listed=lambda: is_listed(journal.current, self._source),
            clock=self._clock,
            every=self._every,
            long=self._long,
        )
        try:
            session.run()
        except (*MOVED_ON, InvalidEventNumber):
            return
        except SluiceError as error:
            if not (error.retryable and session.moved):
                raise
