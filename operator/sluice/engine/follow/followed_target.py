"""The ending of a copy that follows its source: as of a copy to a new target, and then on."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from sluice.core.copy import follow_progress
from sluice.core.copy.steps import (
    BeginCatchUp,
    ConfigureTarget,
    DeleteJournal,
    Follow,
    FollowStep,
    Grow,
    Halt,
    Live,
    Prove,
    Scale,
    SealSource,
    Skip,
    Stop,
)
from sluice.core.follow import following
from sluice.core.follow.cutting import LONGEST
from sluice.core.follow.ending import copied, room
from sluice.core.follow.rows import row_of
from sluice.core.follow.standing import standing_of
from sluice.core.values import identity, marks
from sluice.engine.access.source_runs import writable
from sluice.engine.copy import targets
from sluice.engine.copy.new_target import NewTarget
from sluice.engine.follow import perform, wishes
from sluice.engine.follow.changes import Changes
from sluice.engine.follow.comparing import COMPARE_SECONDS
from sluice.engine.follow.observe import is_changed, is_listed, look
from sluice.engine.follow.proving import Prover
from sluice.engine.follow.session import MOST, Session
from sluice.engine.follow.watch import Quiet, Watch, wall_clock
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.throttle import RateLimiter
from sluice.engine.tasks.work import MOVED_ON
from sluice.errors import InvalidEventNumber, SluiceError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.core.follow.catching_up import Staging
    from sluice.core.follow.observed import SeenStream
    from sluice.core.follow.standing import Standing
    from sluice.core.values.model import StreamConfig
    from sluice.core.values.wish import Wish
    from sluice.engine.staging.ending import StagedStream
    from sluice.engine.tasks.clock import Clock
    from sluice.stores.base import Store


class _Interrupted(Exception):
    """Another step is to be decided, while bytes wait for the copy's rate."""


class FollowedTarget(NewTarget):
    """The `Ending` of a stream that is followed.

    Args:
        stream: the stream.
        limits: returns the present limits. It is called several times a second, and may raise to
            end the work.
        wish: how the copy is to end, to be written down when this driver begins to follow; None for
            no other wish than the one that is written.
        key: the key by which wishes of the copy's owner to seal the source are known; see
            `core.values.wish.consent`. Without a key, this driver seals no source.
        clock: time.
        wall: returns the time of the day.
        every: seconds after which appended bytes are compared.
        long: bytes of a journal from which on its records are replaced by one.
        longest: most bytes of an event that is appended; longer ones are staged and merged.
        wishing: returns how the copy is to end at the moment, where a wish is for many streams. It
            is asked at every look, and takes the place of `wish`; None for no other wish.
        ahead: bytes that all segments of the stream ask for ahead, at most.
        leave: tells whether the driver is to leave the stream for a while, given for how many
            seconds nothing has come. It is asked at every turn.
        staging: how this driver catches up from far behind; None to append any number of bytes.

    Attributes:
        standing: how far the stream was followed at the last look; None while it was not.
        room: most bytes that may follow before the copy ends, by the last look.
        is_live: whether all planned bytes were readable at the last look.
        settled: whether no scale event of the source was still to be followed then.
    """

    def __init__(
        self,
        stream: StagedStream,
        *,
        limits: Callable[[], Limits] = Limits,
        wish: Wish | None = None,
        key: str = "",
        clock: Clock = time,
        wall: Callable[[], datetime] = wall_clock,
        every: float = COMPARE_SECONDS,
        long: int = perform.LONG,
        longest: int = LONGEST,
        wishing: Callable[[], Wish | None] = lambda: None,
        ahead: int = MOST,
        leave: Callable[[float], bool] = lambda _: False,
        staging: Staging | None = None,
    ) -> None:
        super().__init__(stream, keep=True, alone=True)
        self._staging = staging
        self._state: SeenStream | None = None
        self._limits = limits
        self._wish = wish
        self._written: Wish | None = None
        self._key = key
        self._clock = clock
        self._wall = wall
        self._every = every
        self._long = long
        self._rate = RateLimiter(self._pace, clock)
        self._quiet = Quiet(clock)
        self._watch: Watch | None = None
        self.room: int | None = None
        self.settled = False
        self._longest = longest
        self._prover: Prover | None = None
        self._journal: Journal | None = None
        self._config: StreamConfig | None = None
        self._wishing = wishing
        self._ahead = ahead
        self._leave = leave
        self._changes = Changes(stream.journal, clock, limits)
        self.standing: Standing | None = None
        self.is_live = False

    @property
    def quiet(self) -> float:
        """The seconds for which this driver has seen nothing come in the source."""
        return self._quiet.seconds

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. The stream's plan becomes the one that the journal has amended."""
        step = super().decide(seen)
        self.standing = None
        self.is_live = isinstance(step, Live)
        if seen.journal is not None:
            self._changes.note(seen.journal)
        if not isinstance(step, Live):
            self._journal = seen.journal
            return step
        stream = self._stream
        wish = self._wishing() or self._wish
        if wish is not None and wish != self._written:
            wishes.write(wish, stream.journal, key=self._key)
            self._written = wish
        self._journal, state = look(
            stream.plan,
            stream.journal,
            self._source,
            stream.target,
            seen=seen.target,
        )
        self._config = _config(stream.plan, state)
        self._quiet.note(
            {row.row.index: row.source.info.length for row in state.rows if row.source is not None}
        )
        self._state = replace(
            state, quiet=self._quiet.seconds, now=self._wall(), key=self._key, far=self.far
        )
        return self._step(self._journal, self._state)

    def directly(self) -> Step:
        """Decide the step without the catch-up that is begun, by the same look."""
        if self._state is None:
            raise StoreUnavailable("the copy was not looked at")
        return self._step(self._decided, replace(self._state, apart=False, far=None))

    def _step(self, journal: Journal, state: SeenStream) -> Step:
        self.room = room(journal, state)
        self.settled = state.settled
        step = following.next_step(journal, state)
        if isinstance(step, Follow):
            positions = {row.row.index: row.position.offset for row in state.rows if row.position}
            done = copied(journal, positions)
            self.standing = standing_of(journal, state, step, done)
        return step

    @property
    def far(self) -> int | None:
        """The bytes behind from which on this driver stages. None at a rate: that is the bound."""
        if self._staging is None or self._limits().bytes_per_second is not None:
            return None
        return self._staging.far

    def perform(self, step: Step) -> bool:
        """Carry out a step that moves no bytes, or a step of following."""
        if isinstance(step, Scale):
            self._changes.wait_to_scale(self._decided, step.generation)
        if isinstance(step, ConfigureTarget):
            self._changes.wait(self._decided)
        if isinstance(step, DeleteJournal):
            perform.sweep(self._stream.staged.journal, self._stream.target)
        if not isinstance(step, FollowStep):
            return super().perform(step)
        self._go_on(step)
        return False

    def _go_on(self, step: FollowStep) -> None:
        """Carry out a step of following."""
        journal, log, target = self._decided, self._stream.journal, self._stream.target
        match step:
            case Live(config):
                self._mirror(config)
            case Follow():
                with self._watching(journal) as watch:
                    self._follow(journal, step, watch)
            case BeginCatchUp(ranges):
                perform.begin_catch_up(journal, ranges, log, self._staging)
            case Skip(losses):
                perform.skip(journal, losses, log, self._source, target)
            case Grow(segments):
                perform.grow(journal, segments, log, self._source, target)
            case Prove(ends):
                with self._watching(journal):
                    self._prove(journal, ends)
            case SealSource():
                perform.seal_source(journal, log, self._source, self._key)
            case Stop(why):
                log.write([follow_progress.stop_record(why, len(journal.trail.sealing))])
            case Halt(positions):
                perform.halt(journal, positions, target)
            case _:
                assert_never(step)

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
    def prover(self) -> Prover:
        """Compares what was appended, as far as this driver has not."""
        if self._prover is None:
            self._prover = Prover(self._source, self._stream.target, self._rate)
        return self._prover

    def _pace(self) -> float | None:
        """Return the present rate. While bytes wait for it, something else may come first.

        Raises:
            _Interrupted: another step is to be decided.
        """
        if self._watch is not None and self._watch.is_due():
            raise _Interrupted
        return self._limits().bytes_per_second

    @contextmanager
    def _watching(self, journal: Journal) -> Iterator[Watch]:
        """Break the block off where it waits for its rate, if another step is to be decided."""
        self._watch = Watch(
            journal,
            self._stream.journal,
            self._source,
            quiet=self._quiet,
            key=self._key,
            clock=self._clock,
            wall=self._wall,
            settled=self.settled,
            changed=lambda: is_changed(journal.current, self._config, self._source),
            far=self.far,
        )
        try:
            with suppress(_Interrupted):
                yield self._watch
        finally:
            self._watch = None

    def _prove(self, journal: Journal, ends: Sequence[tuple[int, int]]) -> None:
        """Compare segments up to these offsets, and record each."""
        for index, end in ends:
            link = self.prover.prove(journal, row_of(journal, index), end)
            self._stream.journal.write([self.prover.record(index, link)])

    def _configured(self, plan: StreamPlan) -> StreamPlan:
        """Return the plan with the last configuration of the source."""
        return plan if self._config is None else plan.model_copy(update={"config": self._config})

    def _mirror(self, config: StreamConfig | None) -> None:
        """Give the target the source's retention and tags, and the mark that it follows."""
        if config is None:
            raise StoreUnavailable("the source was not looked at")
        stream = self._stream
        with self._changes.announced(self._decided) as in_time:
            targets.mirror(stream.plan, config, stream.target, in_time=in_time)
            targets.mend(stream.plan, stream.journal, stream.digest(), stream.target)

    def _settle(self) -> None:
        """Fix the target's number of segments."""
        stream = self._stream
        with self._changes.announced(self._decided) as in_time:
            targets.settle(stream.plan, stream.target, in_time=in_time)
            targets.mend(stream.plan, stream.journal, stream.digest(), stream.target)

    def _follow(self, journal: Journal, step: Follow, watch: Watch) -> None:
        """Follow until something else has to be decided.

        A session that has worked counts as progress, however it ended: what broke it off shows
        again, if it lasts.
        """
        slots = max(1, len(step.positions))
        session = Session(
            journal,
            step,
            log=self._stream.journal,
            source=self._source,
            target=self._stream.target,
            prover=self.prover,
            window=lambda: self._limits().window(slots),
            spend=self._rate.spend,
            room=self.room,
            watch=watch,
            listed=lambda: is_listed(journal.current, self._source),
            clock=self._clock,
            every=self._every,
            long=self._long,
            longest=self._longest,
            most=self._ahead,
            leave=lambda age: self._leave(min(age, self._quiet.seconds)),
            owes=self.standing is not None and not self.standing.at_rest,
        )
        try:
            session.run()
        except (*MOVED_ON, InvalidEventNumber):
            return
        except SluiceError as error:
            if not (error.retryable and session.worked):
                raise


def _config(plan: StreamPlan, seen: SeenStream) -> StreamConfig | None:
    """Return the configuration of the source, as it is now or as the target has it from it.

    None if the target has none of it yet: then that of the plan counts.
    """
    if seen.config is not None:
        return marks.plain(seen.config)
    there = seen.configured
    if there is None or not identity.is_live(there.tags, plan.copy_id):
        return None
    return marks.plain(there).model_copy(update={"scaling": plan.config.scaling})
