"""End a copy that is live: its target stays as far as it has come, and belongs to no copy any more.

A follower that still runs, or wakes up late, appends nothing behind the end. First a record tells
every driver that no one goes on. Then the segments that take events are halted: the store refuses
all appends and merges of followers. When nothing that is staged can be merged any more, it is
deleted, and the positions are cleaned (`core.follow.position.LEFT`). Only then the target loses the
copy's marks, and the journal goes last. So an end that is cut off can be repeated.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sluice.core.copy.follow_progress import leave_record
from sluice.core.follow.position import LEFT, Position, position_of
from sluice.core.values import identity
from sluice.engine.copy import targets
from sluice.engine.copy.abort import attempts_of, clear, clear_marked
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.staging.catch_ups import clear_catch_up, clear_noted
from sluice.engine.staging.large_events import clear_events
from sluice.errors import JournalDamaged, NoSuchSegment, SegmentSealed, StoreBusy
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from sluice.core.copy.journal import Journal
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Segments, Source, Store
    from sluice.stores.reading import Stream
    from sluice.stores.writing import SegmentSink

_TRIES: Final = 256
"""How often a call is repeated that a driver which still runs has overtaken."""


def leave(copy_id: str, target: StreamName, store: Store, *, ready: bool = False) -> bool:
    """End a copy that is live. This is safe to repeat, at any time and beside running drivers.

    A journal that cannot be read does not matter: the target's own marks say enough.

    Args:
        copy_id: the copy.
        target: its target stream.
        store: the target store.
        ready: whether all planned bytes are known to be readable, so that the copy counts as live
            before the target says so.

    Returns:
        Whether the copy was live, or such an end of it was cut off. If not, nothing is changed.

    Raises:
        StoreBusy: drivers go on writing.
    """
    copy_journal = CopyJournal(store, copy_id, target)
    journal, damaged = _read(copy_journal)
    stream = store.describe(target)
    ours = stream is not None and identity.is_ours(stream.config.tags, copy_id)
    live = stream is not None and identity.is_live(stream.config.tags, copy_id)
    begun = journal is not None and journal.trail.left
    if not (begun or live or (ready and ours)):
        return False
    if journal is not None and not begun:
        copy_journal.write([leave_record()])
        journal, stream = copy_journal.load(), store.describe(target)  # it may have been scaled
        ours = stream is not None and identity.is_ours(stream.config.tags, copy_id)
    halted: dict[int, Position] = {}
    if stream is not None and ours:
        places = _places(copy_id, target, stream, journal, store)
        halted = {segment: at for segment, place in places.items() if (at := _halt(*place, store))}
        clear_events(copy_id, target, _offsets(halted), store)
        if journal is not None:
            clear_catch_up(journal, store)
        else:
            clear_noted(copy_id, target, list(halted), store)
        for segment, at in halted.items():
            _clean(*places[segment], at, store)
        planned = None if journal is None else journal.plan.config
        targets.release(copy_id, target, stream, planned, store)
    _clear(copy_id, target, journal, store)
    if damaged:
        copy_journal.discard()
        return True
    for _ in range(_TRIES):
        if copy_journal.load() is None or copy_journal.delete():
            _clear(copy_id, target, journal, store)  # of a driver that noticed it only now
            clear_events(copy_id, target, _offsets(halted), store)
            if journal is not None:
                clear_catch_up(journal, store)
            return True
    raise StoreBusy(
        f"drivers go on with the copy to {target}, which has ended",
        remedy="Stop the copy's drivers, and end it again.",
    )


def _read(copy_journal: CopyJournal) -> tuple[Journal | None, bool]:
    """Return the journal, and whether it is damaged."""
    try:
        return copy_journal.load(), False
    except JournalDamaged:
        return None, True


def _places(
    copy_id: str, target: StreamName, stream: Stream, journal: Journal | None, store: Source
) -> dict[int, tuple[str, UUID]]:
    """Return name and position attribute of the segments that take events, by their ids."""
    sources = targets.sources_of(copy_id, target, store)
    if journal is not None and journal.target is not None:  # some may not have their marks yet
        pairs = zip(journal.target, journal.current.segments, strict=True)
        sources = {place: segment.id for place, segment in pairs} | sources
    return {
        one.id: (
            store.segment_name(target, one.id),
            identity.position_attribute(copy_id, sources[one.id]),
        )
        for one in stream.tail
        if one.id in sources
    }


def _halt(name: str, attribute: UUID, store: Segments) -> Position | None:
    """Shut a segment to all followers.

    Returns:
        The position at which it is halted; None if that is cleaned already, or it takes no more
        events.
    """
    for _ in range(_TRIES):
        (value,) = store.attributes([(name, attribute)])
        if value == LEFT:
            return None
        at = position_of(value) or Position(0)
        halted = at._replace(halted=True)
        try:
            if at.halted or store.set_attribute(
                name, CompareAndSet(attribute, value, halted.value)
            ):
                return halted
        except (NoSuchSegment, SegmentSealed):
            return None
    raise StoreBusy(
        f"drivers go on appending to {name}", remedy="Stop the copy's drivers, and end it again."
    )


def _clean(name: str, attribute: UUID, halted: Position, store: SegmentSink) -> None:
    """Clean the position of a segment that is halted."""
    with suppress(NoSuchSegment, SegmentSealed):
        store.set_attribute(name, CompareAndSet(attribute, halted.value, LEFT))


def _offsets(halted: Mapping[int, Position]) -> list[tuple[int, int]]:
    return [(segment, at.offset) for segment, at in halted.items()]


def _clear(copy_id: str, target: StreamName, journal: Journal | None, store: Store) -> None:
    """Delete all that is staged."""
    if journal is None:
        clear_marked(copy_id, target, store)
    elif journal.target is not None:
        clear(copy_id, target, journal.target, store, attempts_of(journal))
