"""Carry out the short steps of following a source. Each is safe to repeat and safe to do late."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from sluice.core.copy import follow_progress
from sluice.core.copy.follow_progress import Loss
from sluice.core.copy.journal import checkpoint_record
from sluice.core.copy.plan import SegmentPlan
from sluice.core.copy.record_frames import frame
from sluice.core.events.framing import EventCounter
from sluice.core.follow import catching_up
from sluice.core.follow.ending import is_sealing
from sluice.core.follow.position import Position
from sluice.core.follow.rows import proved, row_of
from sluice.core.values import identity
from sluice.core.values.model import break_in
from sluice.engine.copy.moving import is_planned
from sluice.engine.follow.observe import position, source_name, target_name
from sluice.engine.journal.record_log import MAX_RECORD
from sluice.engine.staging.catch_ups import clear_catch_up
from sluice.engine.staging.large_events import clear_events, sweep_events
from sluice.errors import EventsDamaged, SourceReplaced, SourceTruncated, SourceUnsupported
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.follow.catching_up import Staging
    from sluice.core.follow.rows import Row
    from sluice.core.values.model import Segment
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source, Store
    from sluice.stores.writing import Admin


CHECKED: Final = 16 << 20
"""Most bytes behind a loss in which header has to follow header."""

LONG: Final = 4 << 20
"""Bytes of a journal from which on its records are replaced by one."""


def skip(
    journal: Journal,
    losses: Sequence[tuple[int, int, int]],
    log: CopyJournal,
    source: Source,
    target: Store,
) -> None:
    """Let segments go on behind bytes that the source has lost.

    First the segment is halted where it is, so that no other driver appends bytes that it has read
    before they were lost. Then the loss is recorded; of several records the first holds. Only then
    the position moves behind the loss. A driver that dies in between leaves a halted segment, of
    which the next driver sees what is left to do.

    Args:
        journal: the journal, as the step was decided from it.
        losses: index of the segment, first lost offset, and first offset that is still there, each.
        log: the copy's journal.
        source: the store of the source.
        target: the target store.

    Raises:
        EventsDamaged: the source was truncated inside an event.
    """
    for index, start, end in losses:
        row = row_of(journal, index)
        _check_event(source_name(journal.plan, row, source), end, source)
        halted = Position(start, halted=True)
        moved = _move(journal.plan, row, Position(start), halted, target)
        if not moved and position(journal.plan, row, target) != halted:
            continue  # another driver has appended: look again
        # A loss that another driver has recorded before it died is not recorded again: the record
        # would begin within it, and does not count.
        log.write([follow_progress.skip_record(index, len(row.lost), Loss(start, end))])
        now = log.loaded
        held = now.trail.lost.get(index, ()) if now is not None else ()
        loss = next((loss for loss in held if loss.start == start), None)
        if loss is not None:  # else the end was recorded before, and the segment stays halted
            # The journal goes at the end, and positions are translated afterwards, too.
            _note(journal.plan, row, held.index(loss), loss, target)
            _move(journal.plan, row, halted, Position(loss.end), target)
            _clear(journal.plan, [(row, start)], target)


def begin_catch_up(
    journal: Journal,
    ranges: Sequence[tuple[int, int, int]],
    log: CopyJournal,
    staging: Staging | None,
) -> None:
    """Record a catch-up, unless another driver has recorded one.

    Args:
        journal: the journal, as the step was decided from it.
        ranges: index of the segment, first and last source offset, each.
        log: the copy's journal.
        staging: how this driver stages.
    """
    how = staging or catching_up.Staging()
    log.write([follow_progress.catch_up_record(catching_up.planned(journal, ranges, how))])


def grow(
    journal: Journal, made: Sequence[Segment], log: CopyJournal, source: Source, target: Admin
) -> None:
    """Record a scale event of the source, with the ids that the target's segments will have.

    Args:
        journal: the journal, as the step was decided from it.
        made: the segments that the scale event made, by id.
        log: the copy's journal.
        source: the store of the source.
        target: the target store.

    Raises:
        SourceTruncated: one of these segments is gone already.
        SourceUnsupported: no stream can be scaled in this way.
    """
    plan = journal.current
    name = plan.sources[0].stream
    names = [source.segment_name(name, segment.id) for segment in made]
    infos = source.infos(names)
    created = source.attributes([(one, source.creation_time) for one in names])
    for segment, info in zip(made, infos, strict=True):
        if info is None:
            raise SourceTruncated(
                f"{name} was truncated past segment {segment.id} before it was followed"
            )
    later = [
        SegmentPlan(
            id=segment.id,
            keys=segment.keys,
            generation=len(plan.generations),
            start=0,
            end=0,
            created=when or 0,
            events=0,
        )
        for segment, when in zip(made, created, strict=True)
    ]
    extended = plan.of([*plan.segments, *later])
    if break_in(extended.segments[i].keys for i in extended.active[-1]) is not None:
        raise SourceUnsupported(
            f"{name} was scaled in a way that no stream can be scaled: its segments have gaps or "
            "share keys",
            field="spec.source.stream",
            remedy="What was followed stays in the target. Please report this with what the store "
            "says of the stream's epochs.",
        )
    bound = journal.target or ()
    first = bound[: len(plan.generations[0])]
    ranges = [[extended.segments[i].keys for i in one] for one in extended.generations[1:]]
    ids = [*first, *itertools.chain(*target.following(first, ranges))]
    log.write([follow_progress.grow_record(later, ids[len(plan.segments) :])])


def seal_source(journal: Journal, log: CopyJournal, source: Store, key: str) -> None:
    """Seal the source, as the copy's owner wishes. Nothing takes that back.

    First it is recorded. That counts only if the wish is still the present one. From then on the
    copy ends where its source ends: no end that another driver records counts any more.

    Args:
        journal: the journal, as the step was decided from it.
        log: the copy's journal.
        source: the store of the source.
        key: the key by which the owner's wish is known.

    Raises:
        SourceReplaced: another stream has the source's name, and was not sealed.
    """
    plan = journal.current
    if not is_sealing(journal, key):
        log.write([follow_progress.sealing_record()])
    now = log.load()
    if now is None or not is_sealing(now, key):
        return  # the wish was changed: look again
    if now.trail.stopped is not None or now.trail.left:
        return  # the copy has ended: look again
    if not is_planned(plan, source):
        name = plan.sources[0].stream
        raise SourceReplaced(f"{name} was deleted and made again, and is not sealed")
    source.seal_stream(plan.sources[0].stream)


def shorten(log: CopyJournal, most: int = LONG) -> bool:
    """Replace all records of a journal by one that stands for them, if they are too long.

    Args:
        log: the journal of a copy all of whose planned bytes are readable in the target.
        most: bytes up to which nothing is done.

    Returns:
        Whether this was done. It is not while another driver writes, or if one record is too long.
    """
    journal = log.loaded
    if journal is None or log.size <= most:
        return False
    segments = range(len(journal.current.segments))
    record = checkpoint_record(journal, {index: proved(journal, index) for index in segments})
    return len(frame(record)) <= MAX_RECORD and log.compact(record)


def halt(journal: Journal, positions: Sequence[tuple[int, int]], target: Store) -> None:
    """Shut segments to further appends, each where it is, once the end is recorded.

    A driver that has not seen the end may append until then, and not afterwards.
    """
    for index, offset in positions:
        at = Position(offset)
        _move(journal.plan, row_of(journal, index), at, Position(offset, halted=True), target)


def sweep(journal: Journal, target: Store) -> None:
    """Delete what is left of staged events and of the last catch-up, once all segments are halted.

    Events are given up where the source loses them, and where the copy ends.
    """
    plan, bound = journal.plan, journal.target or ()
    lost = journal.trail.lost.items()
    places = [(row_of(journal, index), loss.start) for index, losses in lost for loss in losses]
    _clear(plan, places, target)
    sweep_events(plan.copy_id, plan.target, bound, target)
    clear_catch_up(journal, target)


def _clear(plan: StreamPlan, places: Sequence[tuple[Row, int]], target: Store) -> None:
    clear_events(plan.copy_id, plan.target, [(row.target, at) for row, at in places], target)


def _check_event(name: str, start: int, source: Source) -> None:
    """Check that an event begins at an offset: then header follows header, up to the end.

    A store takes a truncation at any offset, also inside an event.

    Raises:
        EventsDamaged: no event begins there.
    """
    (info,) = source.infos([name])
    if info is None:
        return  # the next look tells
    end = min(info.length, start + CHECKED)
    counter = EventCounter()
    try:
        for block in source.read(name, start, end):
            counter.feed(block.data)
    except EventsDamaged:
        whole = False
    else:
        whole = counter.between_events or end < info.length
    if not whole:
        raise EventsDamaged(
            f"{name} was truncated inside an event: none begins at offset {start}",
            remedy="Delete this copy, and copy the stream from a cut between two events.",
        )


def _move(plan: StreamPlan, row: Row, before: Position, after: Position, target: Store) -> bool:
    """Change a position, unless it is another one by now. Return whether this call did."""
    attribute = identity.position_attribute(plan.copy_id, row.segment.id)
    condition = CompareAndSet(attribute, before.value, after.value)
    return target.set_attribute(target_name(plan, row, target), condition)


def _note(plan: StreamPlan, row: Row, number: int, loss: Loss, target: Store) -> None:
    """Write a loss down on the target's segment, unless it is there."""
    name = target_name(plan, row, target)
    attributes = identity.loss_attributes(plan.copy_id, number)
    for attribute, value in zip(attributes, loss, strict=True):
        target.set_attribute(name, CompareAndSet(attribute, None, value))
