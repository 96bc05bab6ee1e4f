"""Append what comes in a source to the target, until another step has to be decided.

One thread serves all segments: it takes what their tails have, cuts it between events, appends, and
takes in confirmations. Nothing is kept for another session: the store knows the positions.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from sluice.core.follow.cutting import LONGEST, Cutter, Piece
from sluice.core.follow.following import foreign_writes
from sluice.core.follow.rows import proved, row_of
from sluice.core.values import identity
from sluice.engine.follow.large_event import staging
from sluice.engine.follow.observe import is_renewed, source_name, target_name
from sluice.engine.follow.perform import LONG, shorten
from sluice.engine.tasks.work import LASTING_SECONDS
from sluice.errors import EventsDamaged, InvalidEventNumber, ProtocolError
from sluice.stores.tails import Arrived, Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Follow
    from sluice.core.follow.cutting import Cut
    from sluice.core.follow.rows import Row
    from sluice.engine.follow.large_event import LargeEvent
    from sluice.engine.follow.proving import Prover
    from sluice.engine.follow.watch import Watch
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.work import Clock
    from sluice.stores.base import Store
    from sluice.stores.tails import Broken, Tails
    from sluice.stores.writing import Appender

MOST: Final = 16 << 20
"""Bytes that all segments ask for ahead, at most."""

IDLE_SECONDS: Final = 1.0
"""Seconds to wait for bytes, while nothing is in flight."""

BUSY_SECONDS: Final = 0.02
"""Seconds to wait for bytes, while blocks in flight are not confirmed."""

LISTED_SECONDS: Final = 0.2
"""Seconds until the source is looked at again, whose next segments are not listed yet."""

PROVE_SECONDS: Final = 10.0
"""Seconds after which appended bytes are read back and compared."""

PROVE_BYTES: Final = 32 << 20
"""Appended bytes after which they are compared at once: meanwhile nothing is appended."""

RECORD_SECONDS: Final = 300.0
"""Seconds after which a comparison is recorded that has not come to the end of a chunk."""


class _Line:
    """One segment that is followed.

    Attributes:
        row: the segment.
        source, target: its full names.
        read: the source offset up to which bytes came.
        sent: the source offset up to which bytes were sent.
        confirmed: the source offset up to which the store has confirmed bytes.
        compared: the source offset up to which bytes of this session were compared.
        large: the event on its way that is longer than one append takes, if there is one.
        opened: what is open for this segment.
        known: whether the source's segment was found to be the planned one since bytes came.
        ended: whether it is followed to its sealed end.
    """

    def __init__(self, row: Row, source: str, target: str, position: int, *, longest: int) -> None:
        self.row = row
        self.source = source
        self.target = target
        self.cutter = Cutter(source, position, plain=row.plain, longest=longest)
        self.shift = row.shift(position)
        self.appender: Appender | None = None
        self.large: LargeEvent | None = None
        self.opened = ExitStack()
        self.start = self.read = self.sent = self.confirmed = self.compared = position
        self.known = False
        self.ended = False

    @property
    def has_moved(self) -> bool:
        """Whether the store has confirmed or staged bytes of this session."""
        return self.confirmed > self.start or (self.large is not None and self.large.moved)


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
        every: float = PROVE_SECONDS,
        long: int = LONG,
        longest: int = LONGEST,
    ) -> None:
        self._long = long
        self._journal = journal
        self._log = log
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
        self._every = every
        self._waits = step.waits
        plan = journal.current
        self._lines: dict[str, _Line] = {}
        for index, position in step.positions:
            row = row_of(journal, index)
            name = source_name(plan, row, source)
            self._lines[name] = _Line(
                row, name, target_name(plan, row, target), position, longest=longest
            )
            watch.positions[index] = position
        self._over = False
        self._began = self._compared = self._looked = clock.monotonic()
        self._recorded = dict.fromkeys(self._lines, clock.monotonic())

    @property
    def worked(self) -> bool:
        """Whether bytes were confirmed or staged, or might have been for a while, had any come."""
        moved = any(line.has_moved for line in self._lines.values())
        return moved or self._clock.monotonic() - self._began >= LASTING_SECONDS

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
            tails = opened.enter_context(self._source.tails(most=MOST))
            for line in self._lines.values():
                opened.enter_context(line.opened)
                tails.watch(line.source, line.read)
            while not self._over and not self._watch.is_due() and self._window() == self._held:
                self._round(tails)
            for line in self._lines.values():
                self._settle(line)
            if not self._watch.is_due():  # else what is to be decided may not have to wait for this
                self._prove()

    def _round(self, tails: Tails) -> None:
        came = tails.take(self._wait())
        self._check_renewed(came)
        for event in came:
            if isinstance(event, Arrived):
                self._arrived(self._lines[event.segment], event)
            elif isinstance(event, Ended):
                self._end(self._lines[event.segment], event.offset)
            else:
                self._broken(event)
        for line in self._lines.values():
            if line.appender is not None:
                line.appender.pump()
                self._confirm(line)
        now = self._clock.monotonic()
        behind = sum(line.confirmed - line.compared for line in self._lines.values())
        if now - self._compared >= self._every or behind >= PROVE_BYTES:
            self._prove()
        if self._waits and (not came or now - self._looked >= LISTED_SECONDS):
            self._looked = now
            self._over = self._over or self._listed()

    def _wait(self) -> float:
        if any(line.sent > line.confirmed for line in self._lines.values()):
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

    def _arrived(self, line: _Line, event: Arrived) -> None:
        if event.offset != line.read:
            raise ProtocolError(f"{line.source} gave offset {event.offset} in place of {line.read}")
        line.read += len(event.data)
        self._watch.quiet.note({line.row.index: line.read})
        try:
            for cut in line.cutter.feed(event.data):
                if self._room is not None and self._room <= 0:
                    return  # the copy ends before these bytes
                if isinstance(cut, Piece):
                    self._stage(line, cut)
                else:
                    self._append(line, cut)
        except EventsDamaged:
            self._settle(line)  # all events before the damage
            raise

    def _fill(self, count: int) -> None:
        """Count bytes that are in the target, or are on their way there."""
        if self._room is not None:
            self._room -= count
            self._over = self._over or self._room <= 0

    def _stage(self, line: _Line, piece: Piece) -> None:
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
        line.large.take(piece)
        if piece.end == piece.behind:
            line.large.merge(piece.behind)
            line.opened.close()  # also the appender, which knows an earlier position
            line.large = line.appender = None
            line.sent = line.confirmed = self._watch.positions[line.row.index] = piece.behind
            self._fill(piece.behind - piece.start)

    def _append(self, line: _Line, cut: Cut) -> None:
        self._fill(len(cut.data))
        self._spend(len(cut.data))
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
        line.appender.append(cut.data, event_number=cut.end, events=cut.events)
        line.sent = cut.end

    def _confirm(self, line: _Line) -> None:
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

    def _settle(self, line: _Line) -> None:
        """Wait until all of a segment is confirmed."""
        if line.appender is not None:
            line.appender.flush()
            self._confirm(line)

    def _end(self, line: _Line, offset: int) -> None:
        if self._room is not None and self._room <= 0:
            return  # the copy ends before, maybe within what has come
        if offset != line.read or line.cutter.begun is not None:
            raise EventsDamaged(
                f"{line.source} is sealed at offset {offset}, inside the event that begins at "
                f"{line.sent}"
            )
        self._settle(line)
        line.ended = self._over = True

    def _broken(self, event: Broken) -> None:
        """End the session: the next look tells what became of the segment."""
        for line in self._lines.values():
            self._settle(line)
        raise event.error

    def _prove(self) -> None:
        """Compare what is confirmed, and record it where a chunk is whole, or now and then."""
        now = self._compared = self._clock.monotonic()
        records = []
        for name, line in self._lines.items():
            at = self._prover.link(self._journal, line.row.index).offset
            line.compared = line.confirmed
            if at >= line.confirmed:
                continue
            to = line.compared = min(line.confirmed, at + PROVE_BYTES)
            link = self._prover.prove(self._journal, line.row, to)
            known = proved(self._log.loaded or self._journal, line.row.index)
            late = now - self._recorded[name] >= RECORD_SECONDS
            if line.ended or late or link.chain != known.chain:
                records.append(self._prover.record(line.row.index, link))
                self._recorded[name] = now
        if records:
            self._log.write(records)
            shorten(self._log, self._long)
