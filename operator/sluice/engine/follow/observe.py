"""Observe what the stores hold of a copy that follows its source.

Other drivers may act meanwhile, so the order of the reads matters. Positions are read before the
journal: a driver that halts a segment for an end, or moves it behind a loss, has recorded that
before. The source is read last: a segment that lacks bytes at a position lacks them for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.observed import SeenSource
from sluice.core.follow.observed import SeenRow, SeenStream
from sluice.core.follow.position import Position, position_of
from sluice.core.follow.rows import proved, row_of
from sluice.core.values import identity, marks
from sluice.core.values.model import Segment
from sluice.errors import StoreUnavailable, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.observed import SeenTarget
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.follow.rows import Row
    from sluice.core.values.model import SegmentInfo, StreamConfig
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source
    from sluice.stores.reading import Topology


def look(
    plan: StreamPlan,
    copy_journal: CopyJournal,
    source: Source,
    target: Source,
    *,
    seen: SeenTarget | None = None,
) -> tuple[Journal, SeenStream]:
    """Look at a copy whose planned bytes are all readable in the target.

    Args:
        plan: the plan with its amendments. The target has its latest generation.
        copy_journal: the copy's journal, which is loaded again here.
        source: the store of the source.
        target: the target store.
        seen: the target, as it was described before.

    Returns:
        The journal, and what the stores hold.

    Raises:
        StoreUnavailable: another driver has gone on meanwhile, so that the parts do not fit.
    """
    before = copy_journal.loaded
    if before is None or before.current.segments != plan.segments:
        raise StoreUnavailable(f"the copy to {plan.target} has gone on during the look")
    tail = plan.active[-1]
    rows = [row_of(before, index) for index in tail]
    places, infos = _places(plan, rows, target)
    journal = copy_journal.load()
    if journal is None or journal.current.segments != plan.segments:
        raise StoreUnavailable(f"the copy to {plan.target} has gone on during the look")
    rows = [row_of(journal, index) for index in tail]
    name = plan.sources[0].stream
    described = source.describe(name)
    made: tuple[Segment, ...] = ()
    if described is not None:
        made = _made(plan, source)
    sources = _sources(plan, rows, source)
    lost = [
        row.segment.id for row, one in zip(rows, sources, strict=True) if one is None and described
    ]
    same = all(
        one is not None and one.created == row.segment.created
        for row, one in zip(rows, sources, strict=True)
    )
    state = SeenStream(
        rows=tuple(
            SeenRow(row, place, _foreign(row, place, info, steady=steady), one)
            for row, (place, steady), info, one in zip(rows, places, infos, sources, strict=True)
        ),
        there=described is not None,
        had=frozenset(segment for segment in lost if source.had(name, segment)),
        sealed=described is not None and described.sealed,
        made=made,
        closed=_closed(journal, target),
        shut=seen is not None and seen.sealed,
        config=described.config if described is not None and same else None,
        configured=None if seen is None else seen.config,
    )
    return journal, state


def target_name(plan: StreamPlan, row: Row, target: Topology) -> str:
    """Return the full name of a row's segment in the target."""
    return target.segment_name(plan.target, row.target)


def source_name(plan: StreamPlan, row: Row, source: Source) -> str:
    """Return the full name of a row's segment in the source."""
    return source.segment_name(plan.sources[0].stream, row.segment.id)


def _sources(plan: StreamPlan, rows: Sequence[Row], source: Source) -> list[SeenSource | None]:
    """Look at the source's segments; None for one that does not exist."""
    names = [source_name(plan, row, source) for row in rows]
    infos = source.infos(names)
    created = source.attributes([(name, source.creation_time) for name in names])
    return [
        None if info is None else SeenSource(info, when or 0)
        for info, when in zip(infos, created, strict=True)
    ]


def is_renewed(plan: StreamPlan, rows: Sequence[Row], source: Source) -> bool:
    """Tell whether one of these segments of the source is another one than was planned, or gone."""
    names = [source_name(plan, row, source) for row in rows]
    created = source.attributes([(name, source.creation_time) for name in names])
    return any(when != row.segment.created for when, row in zip(created, rows, strict=True))


def _places(
    plan: StreamPlan, rows: Sequence[Row], target: Source
) -> tuple[list[tuple[Position | None, bool]], list[SegmentInfo | None]]:
    """Return the positions, whether they were steady, and the segments of the target meanwhile.

    An append changes position and length in one step. So a length that was read between two
    positions of one offset is that of the position. Halting changes no offset.
    """
    names = [target_name(plan, row, target) for row in rows]
    asked = [
        (name, identity.position_attribute(plan.copy_id, row.segment.id))
        for name, row in zip(names, rows, strict=True)
    ]
    before = target.attributes(asked)
    infos = target.infos(names)
    after = target.attributes(asked)
    pairs = zip(map(position_of, before), map(position_of, after), strict=True)
    places = [
        (now, now is not None and first is not None and now.offset == first.offset)
        for first, now in pairs
    ]
    return places, infos


def position(plan: StreamPlan, row: Row, target: Source) -> Position | None:
    """Return a row's position; None if it is not known."""
    attribute = identity.position_attribute(plan.copy_id, row.segment.id)
    return position_of(*target.attributes([(target_name(plan, row, target), attribute)]))


def place_of(plan: StreamPlan, row: Row, target: Source) -> tuple[Position | None, int | None]:
    """Return a row's position, and how many bytes of its segment are not the source's.

    None for what is not known: the position may have changed meanwhile.
    """
    places, infos = _places(plan, [row], target)
    ((place, steady),), (info,) = places, infos
    return place, _foreign(row, place, info, steady=steady)


def _closed(journal: Journal, target: Source) -> tuple[SeenRow, ...]:
    """Return the target's segments of earlier generations, which take no more bytes.

    Another client may have written to one between its last byte and the scale event that ended it.
    One that is truncated away by now is left out.
    """
    plan = journal.current
    indexes = [index for index in range(len(plan.segments)) if index not in plan.active[-1]]
    if not indexes:
        return ()
    rows = [row_of(journal, index) for index in indexes]
    infos = target.infos([target_name(plan, row, target) for row in rows])
    ends = [Position(proved(journal, index).offset) for index in indexes]
    return tuple(
        SeenRow(row, end, _foreign(row, end, info, steady=True), None)
        for row, end, info in zip(rows, ends, infos, strict=True)
        if info is not None
    )


def _foreign(
    row: Row, place: Position | None, info: SegmentInfo | None, *, steady: bool
) -> int | None:
    """Return how many bytes of a target's segment are not the source's; None if not known."""
    if place is None or info is None or not steady:
        return None
    return info.length - place.offset - row.shift(place.offset)


def is_listed(plan: StreamPlan, source: Source) -> bool:
    """Tell whether the source has another scale event, or has come to its end or is gone."""
    described = source.describe(plan.sources[0].stream)
    return described is None or described.sealed or bool(_made(plan, source))


def is_changed(plan: StreamPlan, config: StreamConfig | None, source: Source) -> bool:
    """Tell whether a source has another configuration than before, without the copy's marks."""
    now = source.configuration(plan.sources[0].stream)
    return now is None or (config is not None and not marks.is_like(marks.plain(now), config))


def _made(plan: StreamPlan, source: Source) -> tuple[Segment, ...]:
    """Return the segments of the source's first scale event behind the plan's latest generation."""
    name = plan.sources[0].stream
    known = {segment.id for segment in plan.segments}
    tail = (plan.segments[index] for index in plan.active[-1])
    since = [Segment(id=segment.id, keys=segment.keys) for segment in tail]
    try:
        generations = source.generations(name, since)
    except StreamNotFound:
        return ()
    later = ([one for one in made if one.id not in known] for made in generations[1:])
    return next((tuple(made) for made in later if made), ())
