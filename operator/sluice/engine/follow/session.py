"""Append what comes in a source to the target, until another step has to be decided.

One thread serves all segments: it takes what their tails have, cuts it between events, appends, and
takes in confirmations. Nothing is kept for another session: the store knows the positions.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from sluice.core.follow.cutting import LONGEST, EventPiece
from sluice.core.follow.following import foreign_writes
from sluice.core.follow.rows import row_of
from sluice.core.values import identity
from sluice.engine.follow.comparing import COMPARE_SECONDS, LATE_SECONDS, Comparing
from sluice.engine.follow.large_event import staging
from sluice.engine.follow.line import HELD, Line
from sluice.engine.follow.observe import is_renewed, source_name, target_name
from sluice.engine.follow.perform import LONG
from sluice.engine.tasks.work import LASTING_SECONDS
from sluice.errors import EventsDamaged, InvalidEventNumber, ProtocolError
from sluice.stores.reading import joined
from sluice.stores.tails import Arrived, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Follow
    from sluice.core.follow.cutting import Cut
    from sluice.engine.follow.proving import Prover
    from sluice.engine.follow.watch import Watch
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.clock import Clock
    from sluice.stores.base import Store
    from sluice.stores.tails import Broken, Tails

MOST: Final = 16 << 20
"""Bytes that all segments ask for ahead, at most, unless told otherwise."""

IDLE_SECONDS: Final = 1.0
"""Seconds to wait for bytes, while nothing is in flight."""

PACE_SECONDS: Final = 0.0018
"""Seconds from one round to the next, at least. What comes meanwhile is appended together.

At 10,000 events/s in 4 segments, 2.5 ms take 0.21 of a processor and 1.2 ms take 0.31.
"""

BUSY_SECONDS: Final = 0.02
"""Seconds to wait for bytes, while blocks in flight are not confirmed."""

LISTED_SECONDS: Final = 0.2
"""Seconds until the source is looked at again, whose next segments are not listed yet."""

AGAIN_SECONDS: Final = 5.0
"""Seconds, at least, until a segment of the source is read again whose store did not answer."""

OWED_SECONDS: Final = 60.0
"""Most seconds for which bytes are waited for that the source has."""


class Session:
    """One Follow step.

    Args:
        journal: the journal, as the step was decided from it.
        step: the step.
        log: the copy's journal.
        source: the store of the source.
        target: the target store.
        prover: compares what was appended.
        window: returns the most bytes in flight for each segment. It may raise to end this.
        spend: waits until so many bytes may be moved, and counts them. It may raise to end this.
        room: most bytes to append, but for the rest of a block.
        watch: notices that something else is to be decided.
        listed: tells whether the source lists what follows an ended segment, or is sealed.
        clock: time.
        every: seconds after which appended bytes are compared.
        long: bytes of a journal from which on its records are replaced by one.
        longest: most bytes of an event that is appended; longer ones are staged and merged.
        most: bytes that all segments ask for ahead, at most.
        leave: tells, given the seconds since the session began, whether the driver is to leave the
            stream for a while.
        owes: whether the source has bytes that the target has not. The first of them are waited
            for, so that a slow store, or a long event, is followed in turns, too.
    """

    def __init__(
        self,
        journal: Journal,
        step: Follow,
        *,
        log: CopyJournal,
        source: Store,
        target: Store,
        prover: Prover,
        window: Callable[[], int],
        spend: Callable[[int], None],
        room: int | None,
        watch: Watch,
        listed: Callable[[], bool],
        clock: Clock,
        every: float = COMPARE_SECONDS,
        long: int = LONG,
        longest: int = LONGEST,
        most: int = MOST,
        leave: Callable[[float], bool] = lambda _: False,
        owes: bool = False,
    ) -> None:
        self._most = most
        self._owes = owes
        self._leave = leave
        self._journal = journal
        self._source = source
        self._target = target
        self._prover = prover
        self._window = window
        self._held = window()
        self._spend = spend
        self._room = room
        self._watch = watch
        self._listed = listed
        self._clock = clock
        self._comparing = Comparing(journal, log, prover, clock=clock, every=every, long=long)
        self._waits = step.waits
        plan = journal.current
        self._lines: dict[str, Line] = {}
        for index, position in step.positions:
            row = row_of(journal, index)
            name = source_name(plan, row, source)
            self._lines[name] = Line(
                row, name, target_name(plan, row, target), position, longest=longest
            )
            watch.positions[index] = position
        self._over = False
        self._began = self._looked = self._turned = clock.monotonic()

    @property
    def worked(self) -> bool:
        """Whether bytes were confirmed or staged, or might have been for a while, had any come."""
        return self._has_moved or self._clock.monotonic() - self._began >= LASTING_SECONDS

    @property
    def _has_moved(self) -> bool:
        return any(line.has_moved for line in self._lines.values())

    def run(self) -> None:
        """Follow, until something else has to be decided.

        Raises:
            InvalidEventNumber: another driver was faster.
            TargetReplaced: another client has written to the target.
            EventsDamaged: bytes of the source are no events.
            DigestMismatch, SourceTruncated: as `Prover.prove` does.
            ConditionFailed, NoSuchSegment: another driver was faster with a long event.
            BackendError: a store refused a call or did not answer it.
        """
        with ExitStack() as opened:
            tails = opened.enter_context(self._source.tails(most=self._most))
            for line in self._lines.values():
                opened.enter_context(line.opened)
                tails.watch(line.source, line.read)
            while not self._is_over():
                self._round(tails)
            for line in self._lines.values():
                self._settle(line)
            if not self._watch.is_due():  # else what is to be decided may not have to wait for this
                self._comparing.all(self._lines.values())

    def _is_over(self) -> bool:
        if self._over or self._watch.is_due() or self._window() != self._held:
            return True
        age = self._clock.monotonic() - self._began
        owes = self._owes and age < OWED_SECONDS
        return not (owes and not self._has_moved) and self._leave(age)

    def _round(self, tails: Tails) -> None:
        if (early := self._turned + PACE_SECONDS - self._clock.monotonic()) > 0:
            self._clock.sleep(early)
        began = self._turned = self._clock.monotonic()
        came = tails.take(self._wait())
        now = self._clock.monotonic()
        self._check_renewed(came)
        for event in came:
            line = self._lines[event.segment]
            if isinstance(event, Arrived):
                self._arrived(line, event)
            elif isinstance(event, Ended):
                line.end = event.offset
            else:
                self._broken(line, event, now + max(AGAIN_SECONDS, 10 * (now - began)))
        if came:
            self._let_go()
        for line in self._lines.values():
            line.pump()
            self._confirm(line)
            self._send(line, tails)
            if line.again is not None and now >= line.again:
                line.again, line.known = None, False
                tails.watch(line.source, line.read)
            elif line.end is not None and not line.is_waiting:
                self._end(line, line.end)
        self._comparing.some(self._lines.values())
        now = self._clock.monotonic()
        if self._waits and (not came or now - self._looked >= LISTED_SECONDS):
            self._looked = now
            self._over = self._over or self._listed()

    def _wait(self) -> float:
        now = self._clock.monotonic()
        if any(line.queue and now - line.since < LATE_SECONDS for line in self._lines.values()):
            return PACE_SECONDS  # confirmations come elsewhere
        if any(line.is_waiting for line in self._lines.values()):
            return BUSY_SECONDS
        return LISTED_SECONDS if self._waits else IDLE_SECONDS

    def _check_renewed(self, came: Sequence[Arrived | Ended | Broken]) -> None:
        """End the session if the source was deleted and made again, since it was looked at.

        The check comes after the bytes. A segment that is deleted later is not watched any more.
        """
        segments = {event.segment for event in came if not self._lines[event.segment].known}
        lines = [self._lines[segment] for segment in sorted(segments)]
        if not lines:
            return
        if is_renewed(self._journal.current, [line.row for line in lines], self._source):
            raise InvalidEventNumber(
                f"{self._journal.plan.sources[0].stream} has changed", segment=lines[0].source
            )
        for line in lines:
            line.known = True

    def _arrived(self, line: Line, event: Arrived) -> None:
        if event.offset != line.read:
            raise ProtocolError(f"{line.source} gave offset {event.offset} in place of {line.read}")
        line.read += len(event.data)
        self._watch.quiet.note({line.row.index: line.read})
        if line.damage is None:
            try:
                line.queue.extend(line.cutter.feed(event.data))
            except EventsDamaged as damage:
                line.damage = damage  # all events before it are in the queue

    def _let_go(self) -> None:
        """Keep few bytes of events whose ends have not come: there may be many segments."""
        held = sum(line.cutter.rest for line in self._lines.values())
        while held > min(HELD, 2 * self._most):
            most = max(self._lines.values(), key=lambda line: line.cutter.rest)
            held -= most.cutter.rest
            if not most.cutter.let_go():
                break

    def _send(self, line: Line, tails: Tails) -> None:
        """Send what came of a segment, as far as the store keeps up. Others go on meanwhile."""
        while line.queue and line.has_room():
            if self._room is not None and self._room <= 0:
                return  # the copy ends before these bytes
            cut = line.queue.popleft()
            if isinstance(cut, EventPiece):
                self._stage(line, cut)
            else:
                self._append(line, cut)
        if line.queue:
            tails.pause(line.source)
        elif line.damage is not None:
            self._settle(line)
            raise line.damage
        else:
            tails.resume(line.source)

    def _fill(self, count: int) -> None:
        """Count bytes that are in the target, or are on their way there."""
        if self._room is not None:
            self._room -= count
            self._over = self._over or self._room <= 0

    def _stage(self, line: Line, piece: EventPiece) -> None:
        """Stage a piece of an event that is longer than one append takes; merge after the last."""
        if line.large is None:
            self._settle(line)
            opening = staging(
                self._journal,
                line.row,
                piece.start,
                target=self._target,
                prover=self._prover,
                window=self._held,
                spend=self._spend,
            )
            line.large = line.opened.enter_context(opening)
        line.since = self._clock.monotonic()
        line.large.take(piece)
        if piece.end == piece.behind:
            line.large.merge(piece.behind)
            line.opened.close()  # also the appender, which knows an earlier position
            line.large = line.appender = None
            line.sent = line.confirmed = self._watch.positions[line.row.index] = piece.behind
            self._fill(piece.behind - piece.start)

    def _append(self, line: Line, cut: Cut) -> None:
        self._fill(cut.size)
        self._spend(cut.size)
        if line.appender is None:
            plan = self._journal.plan
            writer = identity.position_attribute(plan.copy_id, line.row.segment.id)
            line.appender = line.opened.enter_context(
                self._target.appender(line.target, writer=writer, window=self._held)
            )
            if line.appender.last != line.sent:
                raise InvalidEventNumber(
                    f"another driver has followed {line.source}", segment=line.target
                )
        if line.sent == line.confirmed:
            line.since = self._clock.monotonic()
        data = cut.data or joined(self._source.read(line.source, cut.start, cut.end))
        line.appender.append(data, event_number=cut.end, events=cut.events)
        line.sent = cut.end

    def _confirm(self, line: Line) -> None:
        """Take in how far a segment is confirmed, and check that it is where it has to be.

        Raises:
            TargetReplaced: another client has written to the target's segment.
            ProtocolError: the store does not tell where appended bytes lie.
        """
        appender = line.appender
        if appender is None or appender.acknowledged in {None, line.confirmed}:
            return
        acknowledged, there = appender.acknowledged or 0, appender.offset
        if there is None:
            raise ProtocolError(f"the store does not tell where bytes lie in {line.target}")
        wanted = acknowledged + line.shift
        if there != wanted:
            raise foreign_writes(
                self._journal, line.row.target, line.confirmed + line.shift, there, there - wanted
            )
        line.confirmed = self._watch.positions[line.row.index] = acknowledged
        line.since = self._clock.monotonic()

    def _settle(self, line: Line) -> None:
        """Wait until all of a segment is confirmed."""
        if line.appender is not None:
            line.appender.flush()
            self._confirm(line)

    def _end(self, line: Line, offset: int) -> None:
        if self._room is not None and self._room <= 0:
            return  # the copy ends before, maybe within what has come
        if offset != line.read or line.cutter.begun is not None:
            raise EventsDamaged(
                f"{line.source} is sealed at offset {offset}, inside the event that begins at "
                f"{line.sent}"
            )
        line.ended = self._over = True

    def _broken(self, line: Line, event: Broken, again: float) -> None:
        """Read a segment again later if its store does not answer, while others are read.

        Otherwise end the session: the next look tells what became of the segment.
        """
        line.again = again
        if not event.error.retryable or all(one.again is not None for one in self._lines.values()):
            for one in self._lines.values():
                self._settle(one)
            raise event.error
