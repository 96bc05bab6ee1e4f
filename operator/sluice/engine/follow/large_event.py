"""Bring an event that is longer than one append takes into the target: stage, compare, merge."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from sluice.core.follow.following import foreign_writes
from sluice.core.follow.position import Position
from sluice.core.values import identity
from sluice.engine.follow.observe import place_of, position, target_name
from sluice.engine.staging.large_events import clear_events, event_name
from sluice.errors import (
    ConditionFailed,
    DigestMismatch,
    InvalidEventNumber,
    NoSuchSegment,
    StoreUnavailable,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.core.copy.journal import Journal
    from sluice.core.follow.cutting import EventPiece
    from sluice.core.follow.rows import Row
    from sluice.engine.follow.proving import Prover
    from sluice.stores.base import Store
    from sluice.stores.writing import Appender

COMPARE_BYTES: Final = 32 << 20
"""Staged bytes after which they are compared: meanwhile no segment is followed."""


class LargeEvent:
    """An event on its way from its first piece to the target.

    Its pieces are appended to a staging segment of its own, so no driver has all of it in memory.
    A driver that goes on appends what the store lacks. Once all is staged and compared, the staging
    segment is merged, on the condition that the target's segment is followed exactly up to the
    event. The merge moves the position behind it.

    Args:
        journal: the copy's journal.
        row: the segment.
        start: the source offset at which the event begins, which is the segment's position.
        name: full name of the staging segment.
        appender: appends to it.
        target: the target store.
        prover: compares.
        spend: waits until so many bytes may be moved, and counts them.

    Attributes:
        moved: whether a piece was staged that the store lacked.
    """

    def __init__(
        self,
        journal: Journal,
        row: Row,
        start: int,
        *,
        name: str,
        appender: Appender,
        target: Store,
        prover: Prover,
        spend: Callable[[int], None],
    ) -> None:
        self._journal = journal
        self._row = row
        self._start = self._compared = start
        self._name = name
        self._appender = appender
        self._target = target
        self._prover = prover
        self._spend = spend
        self._staged = start if appender.last is None else appender.last
        self.moved = False

    def has_room(self, size: int) -> bool:
        """Tell whether so many bytes can be sent without waiting for confirmations."""
        return self._appender.has_room(size)

    def pump(self) -> None:
        """Take in confirmations that are here, without waiting. Raises as `Appender.pump`."""
        self._appender.pump()

    def take(self, piece: EventPiece) -> None:
        """Stage the next piece, as far as it is not staged, and compare now and then.

        Raises:
            InvalidEventNumber, NoSuchSegment, SegmentSealed: another driver was faster.
            DigestMismatch, SourceTruncated: as `Prover.compare`.
        """
        begin = piece.end - len(piece.data)
        fresh = piece.data[max(0, self._staged - begin) :]
        if fresh:
            self._spend(len(fresh))
            self._appender.append(fresh, event_number=piece.end)
            self._staged = piece.end
            self.moved = True
        if piece.end - self._compared >= COMPARE_BYTES or piece.end == piece.behind:
            self._compare(piece.end)

    def merge(self, end: int) -> None:
        """Make the event readable, once all of it up to `end` is staged and compared.

        Raises:
            ConditionFailed, NoSuchSegment, InvalidEventNumber: another driver was faster, or has
                recorded a loss or the end. Then nothing of the event stays staged.
            DigestMismatch: other bytes are staged behind the event.
            TargetReplaced: another client has written to the target's segment.
        """
        self._target.seal(self._name)
        (info,) = self._target.infos([self._name])
        if info is not None and info.length != end - self._start:
            raise DigestMismatch(
                f"{self._name} has {info.length} bytes, and the event at offset {self._start} of "
                f"segment {self._row.segment.id} has {end - self._start}"
            )
        plan, row = self._journal.plan, self._row
        attribute = identity.position_attribute(plan.copy_id, row.segment.id)
        before, after = Position(self._start), Position(end)
        condition = CompareAndSet(attribute, before.value, after.value)
        try:
            self._target.merge(
                target_name(plan, row, self._target), self._name, condition, events=1
            )
        except ConditionFailed:
            # The position never comes back to this event, so no driver merges it any more.
            clear_events(plan.copy_id, plan.target, [(row.target, self._start)], self._target)
            raise
        self._check(after)

    def _compare(self, to: int) -> None:
        """Compare what is staged up to a source offset."""
        self._appender.flush()
        begin, self._compared = self._compared, to
        self._prover.compare(self._journal, self._row, self._name, self._start, (begin, to))

    def _check(self, after: Position) -> None:
        """Check that the event lies where it has to."""
        row = self._row
        now, foreign = place_of(self._journal.plan, row, self._target)
        if now != after or foreign is None:
            raise InvalidEventNumber(
                f"another driver has followed segment {row.segment.id}", segment=self._name
            )
        if foreign:
            begin, end = (at + row.shift(at) for at in (self._start, after.offset))
            raise foreign_writes(self._journal, row.target, begin, end + foreign, foreign)


@contextmanager
def staging(
    journal: Journal,
    row: Row,
    start: int,
    *,
    target: Store,
    prover: Prover,
    window: int,
    spend: Callable[[int], None],
) -> Iterator[LargeEvent]:
    """Open the staging of an event. What is staged stays for the next driver if this breaks off.

    Args:
        journal: the copy's journal.
        row: the segment.
        start: the source offset at which the event begins, which is the segment's position.
        target: the target store.
        prover: compares.
        window: most bytes in flight.
        spend: waits until so many bytes may be moved, and counts them.

    Raises:
        NoSuchSegment, InvalidEventNumber: another driver has merged the event, or given it up.
    """
    plan = journal.plan
    name = event_name(plan.copy_id, plan.target, row.target, start, target)
    writer = identity.writer_id(plan.copy_id, identity.event_key(plan.copy_id, start))
    made = target.create(name)
    if made and position(plan, row, target) != Position(start):
        # This driver comes too late: the one that moved the position has looked before.
        clear_events(plan.copy_id, plan.target, [(row.target, start)], target)
        raise InvalidEventNumber(f"another driver has followed {name}", segment=name)
    with ExitStack() as opened:
        try:
            appender = opened.enter_context(target.appender(name, writer=writer, window=window))
        except NoSuchSegment:
            if position(plan, row, target) == Position(start):
                # It was deleted by hand: the store gives the name back after a while.
                raise StoreUnavailable(f"{name} was deleted, and is not made anew yet") from None
            raise
        yield LargeEvent(
            journal,
            row,
            start,
            name=name,
            appender=appender,
            target=target,
            prover=prover,
            spend=spend,
        )
