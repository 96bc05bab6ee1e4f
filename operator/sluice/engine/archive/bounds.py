"""Take the bounds of a run: which bytes of which segments are new since the previous run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.manifest import CutOffset, RecordedCut
from sluice.core.archive.plan import SegmentRun
from sluice.core.values import marks
from sluice.core.values.model import Segment
from sluice.errors import SourceNotFound, SourceReplaced, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.archive.manifest import ArchivedSegment, Manifest
    from sluice.core.values.model import SegmentInfo, StreamConfig, StreamName
    from sluice.stores.base import Source
    from sluice.stores.reading import Stream

TRIES: Final = 5
"""Attempts to take the bounds of a first run, each of which a truncation may spoil."""


class Bounds(NamedTuple):
    """The bounds of a run, as the fields of ArchivePlan of the same names."""

    begin: RecordedCut
    end: RecordedCut
    segments: tuple[SegmentRun, ...]
    config: StreamConfig
    sealed: bool


class _SeenSegment(NamedTuple):
    """The present state of a segment. `info` is None if the segment is gone."""

    info: SegmentInfo | None
    created: int
    events: int | None


def take_bounds(
    name: StreamName, store: Source, parent: Manifest | None, *, now: int, field: str
) -> Bounds:
    """Return the bounds of the run after `parent`, or of the first run.

    Args:
        name: the stream.
        store: the store that holds it.
        parent: the manifest of the previous run; None for the first run.
        now: the time in ms.
        field: the field of the spec that names the stream, for errors.

    Raises:
        SourceNotFound: the stream does not exist.
        SourceReplaced: the stream is not the archived one, was deleted meanwhile, or was truncated
            each time its bounds were taken.
    """
    for _ in range(TRIES):
        found = _look(name, store, parent, now=now, field=field)
        if found is not None:
            return found
    raise SourceReplaced(f"{name} was truncated again and again while its bounds were taken")


def _look(
    name: StreamName, store: Source, parent: Manifest | None, *, now: int, field: str
) -> Bounds | None:
    """Take the bounds once. Return None if the first run has to look again.

    That is so if a truncation deleted a segment meanwhile.
    """
    stream = store.describe(name)
    if stream is None:
        raise SourceNotFound(f"stream {name} does not exist in the source store", field=field)
    known = {one.id: one for one in parent.segments} if parent else {}
    since = _end_of(parent) if parent else ()
    if parent is not None:
        _check_same(name, store, since)
        _check_sealed(name, store, [known[one.id] for one in since if known[one.id].sealed])
    generations = _generations(name, store, stream, since)
    asked = _unfinished(generations, known)
    seen = _measure(name, [*asked.values()], store)
    if parent is None and any(one.info is None for one in seen.values()):
        return None
    epochs = _epochs(generations, known, later=bool(since))
    runs = []
    for segment in asked.values():
        before = known.get(segment.id)
        if before is not None and (before.sealed or before.lost):
            continue
        if before is not None:
            _check_again(name, before, seen[segment.id])
        number = before.epoch if before else epochs[segment.id]
        runs.append(_run_of(segment, before, seen[segment.id], number, first=parent is None))
    if since and any(one.lost for one in runs):
        _check_same(name, store, since)  # it may have been deleted since it was described
    runs.sort(key=lambda one: (one.epoch, one.id))
    ends = {one.id: one.end for one in known.values()} | {one.id: one.end for one in runs}
    starts = {one.id: one.start for one in runs}
    then = max(now, parent.end.time) if parent else now
    return Bounds(
        begin=parent.begin if parent else _cut(name, store, generations[0], starts, now),
        end=_cut(name, store, _tail(generations), ends, then),
        segments=tuple(runs),
        config=marks.plain(stream.config),
        sealed=stream.sealed,
    )


def _end_of(parent: Manifest) -> list[Segment]:
    """Return the segments at which the previous run ends."""
    keys = {one.id: one.keys for one in parent.segments}
    return [Segment(id=one.segment, keys=keys[one.segment]) for one in parent.end.offsets]


def _generations(
    name: StreamName, store: Source, stream: Stream, since: Sequence[Segment]
) -> Sequence[Sequence[Segment]]:
    """Return the segments in the order in which they were made, from `since` or the head on.

    Raises:
        SourceReplaced: the stream is gone.
    """
    try:
        made = store.generations(name, since) if since or not stream.is_one_generation else None
    except StreamNotFound:
        raise SourceReplaced(f"{name} was deleted while bounds were taken") from None
    return made or (stream.head,)


def _unfinished(
    generations: Sequence[Sequence[Segment]], known: Mapping[int, ArchivedSegment]
) -> dict[int, Segment]:
    """Return the segments to look at, by id: these, and others that are not archived to their end.

    The others are known from the previous run, though other segments took their keys since.
    """
    asked = {segment.id: segment for segments in generations for segment in segments}
    return asked | {
        one.id: Segment(id=one.id, keys=one.keys)
        for one in known.values()
        if not one.sealed and one.lost is None
    }


def _epochs(
    generations: Sequence[Sequence[Segment]], known: Mapping[int, ArchivedSegment], *, later: bool
) -> dict[int, int]:
    """Return the epochs of segments by id; of a `later` run they go on from the archived ones."""
    last = max((one.epoch for one in known.values()), default=-1)
    return {
        segment.id: last + number if later else number
        for number, segments in enumerate(generations)
        for segment in segments
    }


def _check_same(name: StreamName, store: Source, since: Sequence[Segment]) -> None:
    """Raise SourceReplaced if the stream never had the archived segments."""
    if not all(store.had(name, segment.id) for segment in since):
        raise SourceReplaced(
            f"{name} is another stream than the one that is archived: that was deleted",
            remedy="Archive the new stream at another path.",
        )


def _check_sealed(name: StreamName, store: Source, archived: Sequence[ArchivedSegment]) -> None:
    """Compare the creation times of segments that are archived to their end.

    No other check looks at these segments. Their ids alone prove nothing: in a scope that was
    deleted and made again, the numbers of segments start over.

    Raises:
        SourceReplaced: a segment was made at another time.
    """
    names = [store.segment_name(name, one.id) for one in archived]
    created = store.attributes([(one, store.creation_time) for one in names])
    for one, when in zip(archived, created, strict=True):
        if when is not None and one.created not in {0, when}:
            raise _replaced(name, one.id)


def _check_again(name: StreamName, archived: ArchivedSegment, seen: _SeenSegment) -> None:
    """Refuse a segment that is not the archived one.

    One that lost its end is refused too: new bytes at these offsets would never be archived.

    Raises:
        SourceReplaced: the segment was made at another time, or ends before its archived end.
    """
    info = seen.info
    if info is None:
        return
    if seen.created != archived.created:
        raise _replaced(name, archived.id)
    if info.length < archived.end:
        raise SourceReplaced(
            f"{name} was set back: segment {archived.id} ends at {info.length}, and "
            f"{archived.end} are archived",
            remedy="Archive the stream at another path.",
        )


def _replaced(name: StreamName, segment: int) -> SourceReplaced:
    """Return the error for a segment that has the archived one's id and is another segment."""
    return SourceReplaced(
        f"{name} was deleted and made again: segment {segment} is not the one that is archived",
        remedy="Archive the new stream at another path.",
    )


def _measure(
    name: StreamName, segments: Sequence[Segment], store: Source
) -> dict[int, _SeenSegment]:
    """Return the present state of segments, by id.

    The count of events and the length come from separate calls, so the count may be of another
    length. Nothing relies on an exact count, so it is not read again.
    """
    names = [store.segment_name(name, segment.id) for segment in segments]
    created = store.attributes([(one, store.creation_time) for one in names])
    events = store.attributes([(one, store.event_count) for one in names])
    return {
        segment.id: _SeenSegment(info, when or 0, count)
        for segment, info, when, count in zip(
            segments, store.infos(names), created, events, strict=True
        )
    }


def _run_of(
    segment: Segment, before: ArchivedSegment | None, seen: _SeenSegment, epoch: int, *, first: bool
) -> SegmentRun:
    """Return what this run archives of a segment that is not archived to its end yet.

    The first run begins at the segment's present start. In a later run, bytes that were truncated
    since the previous run are lost: those from `done` to `begin`.
    """
    info = seen.info
    start = before.start if before else info.start if info and first else 0
    done = before.end if before else start
    if info is None:
        return SegmentRun(
            epoch=epoch,
            id=segment.id,
            keys=segment.keys,
            created=before.created if before else 0,
            start=start,
            done=done,
            begin=done,
            end=done,
            sealed=True,
            lost=True,
            events=0,
        )
    begin = max(done, min(info.start, info.length))
    known = before.events if before else 0
    events = None
    if seen.events is not None and known is not None and info.start == 0:
        events = max(0, seen.events - known)
    return SegmentRun(
        epoch=epoch,
        id=segment.id,
        keys=segment.keys,
        created=seen.created,
        start=start,
        done=done,
        begin=begin,
        end=info.length,
        sealed=info.sealed,
        events=0 if begin == info.length else events,
    )


def _tail(generations: Sequence[Sequence[Segment]]) -> list[Segment]:
    """Return the segments that take events after the last of these generations is made."""
    now: list[Segment] = []
    for made in generations:
        now = [one for one in now if not any(one.keys.overlaps(other.keys) for other in made)]
        now += made
    return now


def _cut(
    name: StreamName,
    store: Source,
    segments: Sequence[Segment],
    offsets: Mapping[int, int],
    time: int,
) -> RecordedCut:
    """Return the cut through segments at these offsets, which are by segment id."""
    places = tuple(
        CutOffset(segment=one, offset=offsets[one])
        for one in sorted(segment.id for segment in segments)
    )
    text = store.write_cut(name, {one.segment: one.offset for one in places})
    return RecordedCut(time=time, offsets=places, text=text)
