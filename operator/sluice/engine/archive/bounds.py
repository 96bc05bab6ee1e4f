"""Taking bounds of a run: which bytes of which segments are new since the run before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.manifest import CutOffset, RecordedCut
from sluice.core.archive.plan import SegmentRun
from sluice.core.values import marks
from sluice.core.values.model import Segment
from sluice.errors import SourceNotFound, SourceReplaced, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.manifest import ArchivedSegment, Manifest
    from sluice.core.values.model import SegmentInfo, StreamConfig, StreamName
    from sluice.stores.base import Source

TRIES: Final = 5
"""How often the bounds of a first run are taken anew because the source was truncated meanwhile."""


class Bounds(NamedTuple):
    """What a run is of; as the fields of ArchivePlan."""

    begin: RecordedCut
    end: RecordedCut
    segments: tuple[SegmentRun, ...]
    config: StreamConfig
    sealed: bool


class _Seen(NamedTuple):
    """A segment as it is now; None where it is gone."""

    info: SegmentInfo | None
    created: int
    events: int | None


def take_bounds(
    name: StreamName, store: Source, parent: Manifest | None, *, now: int, field: str
) -> Bounds:
    """The bounds of the run that follows on one, or of the first one.

    Args:
        name: the stream.
        store: where it is.
        parent: the manifest of the run before.
        now: the time in ms.
        field: of the spec that names the stream, for errors.

    Raises:
        SourceNotFound: there is no such stream.
        SourceReplaced: it is another one than was archived, or was deleted meanwhile.
    """
    for _ in range(TRIES):
        found = _look(name, store, parent, now=now, field=field)
        if found is not None:
            return found
    raise SourceReplaced(f"{name} was truncated again and again while its bounds were taken")


def _look(
    name: StreamName, store: Source, parent: Manifest | None, *, now: int, field: str
) -> Bounds | None:
    """One look; None where the stream was truncated meanwhile, and nothing of it is archived."""
    stream = store.describe(name)
    if stream is None:
        raise SourceNotFound(f"stream {name} does not exist in the source store", field=field)
    known = {one.id: one for one in parent.segments} if parent else {}
    since: Sequence[Segment] = ()
    if parent is not None:
        since = [
            Segment(id=one.segment, keys=known[one.segment].keys) for one in parent.end.offsets
        ]
        _check_same(name, store, since)
        _check_sealed(name, store, [known[one.id] for one in since if known[one.id].sealed])
    try:
        made = store.generations(name, since) if since or not stream.is_one_generation else None
    except StreamNotFound:
        raise SourceReplaced(f"{name} was deleted while bounds were taken") from None
    generations = made or (stream.head,)
    epoch = max((one.epoch for one in known.values()), default=-1)
    epochs = {
        segment.id: epoch + number if since else number
        for number, segments in enumerate(generations)
        for segment in segments
    }
    segments = [segment for generation in generations for segment in generation]
    # Segments that the run before has not to their end, though others took their keys already.
    asked = {one.id: one for one in segments}
    asked |= {
        one.id: Segment(id=one.id, keys=one.keys)
        for one in known.values()
        if not one.sealed and one.lost is None
    }
    seen = _measure(name, [*asked.values()], store)
    if parent is None and any(one.info is None for one in seen.values()):
        return None
    runs = []
    for segment in asked.values():
        before = known.get(segment.id)
        if before is not None and (before.sealed or before.lost):
            continue
        if (
            before is not None
            and seen[segment.id].info
            and (seen[segment.id].created != before.created)
        ):
            raise _replaced(name, segment.id)
        if before is not None:
            _check_length(name, before, seen[segment.id].info)
        number = before.epoch if before else epochs[segment.id]
        runs.append(_run_of(segment, before, seen[segment.id], number, first=parent is None))
    if since and any(one.lost for one in runs):
        _check_same(name, store, since)  # else it was deleted since it was described
    runs.sort(key=lambda one: (one.epoch, one.id))
    ends = {one.id: one.end for one in known.values()} | {one.id: one.end for one in runs}
    tail = _tail(generations)
    offsets = tuple(
        CutOffset(segment=one, offset=ends[one]) for one in sorted(segment.id for segment in tail)
    )
    end = RecordedCut(
        time=max(now, parent.end.time) if parent else now,
        offsets=offsets,
        text=store.write_cut(name, {one.segment: one.offset for one in offsets}),
    )
    return Bounds(
        begin=parent.begin if parent else _begin(name, generations[0], runs, store, now),
        end=end,
        segments=tuple(runs),
        config=marks.plain(stream.config),
        sealed=stream.sealed,
    )


def _check_same(name: StreamName, store: Source, since: Sequence[Segment]) -> None:
    """Refuse a stream that never had the segments that are archived. SourceReplaced."""
    if not all(store.had(name, segment.id) for segment in since):
        raise SourceReplaced(
            f"{name} is another stream than the one that is archived: that was deleted",
            remedy="Archive the new stream at another path.",
        )


def _check_sealed(name: StreamName, store: Source, archived: Sequence[ArchivedSegment]) -> None:
    """Refuse a stream whose segments are not these, which are archived to their end.

    Nothing else is asked of them. In a scope that was made again their numbers begin anew.

    Raises:
        SourceReplaced: one was made at another time.
    """
    names = [store.segment_name(name, one.id) for one in archived]
    created = store.attributes([(one, store.creation_time) for one in names])
    for one, when in zip(archived, created, strict=True):
        if when is not None and one.created not in {0, when}:
            raise _replaced(name, one.id)


def _check_length(name: StreamName, archived: ArchivedSegment, info: SegmentInfo | None) -> None:
    """Refuse a segment that has lost its end: what is written there now is not archived.

    Raises:
        SourceReplaced: it ends before what is archived of it.
    """
    if info is not None and info.length < archived.end:
        raise SourceReplaced(
            f"{name} was set back: segment {archived.id} ends at {info.length}, and "
            f"{archived.end} are archived",
            remedy="Archive the stream at another path.",
        )


def _replaced(name: StreamName, segment: int) -> SourceReplaced:
    """The error that a segment of the name is another one than is archived."""
    return SourceReplaced(
        f"{name} was deleted and made again: segment {segment} is not the one that is archived",
        remedy="Archive the new stream at another path.",
    )


def _measure(name: StreamName, segments: Sequence[Segment], store: Source) -> dict[int, _Seen]:
    """Segments as they are now, by id.

    A count of events belongs to a length only if that is the same before and after; it is only for
    people, so it is not asked for again.
    """
    names = [store.segment_name(name, segment.id) for segment in segments]
    created = store.attributes([(one, store.creation_time) for one in names])
    events = store.attributes([(one, store.event_count) for one in names])
    return {
        segment.id: _Seen(info, when or 0, count)
        for segment, info, when, count in zip(
            segments, store.infos(names), created, events, strict=True
        )
    }


def _run_of(
    segment: Segment, before: ArchivedSegment | None, seen: _Seen, epoch: int, *, first: bool
) -> SegmentRun:
    """What is archived of a segment that the run before has not got to its end.

    A first run begins with what there is; a later one lacks what was truncated since.
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
    """The segments that take events once all of them are made."""
    now: list[Segment] = []
    for made in generations:
        now = [one for one in now if not any(one.keys.overlaps(other.keys) for other in made)]
        now += made
    return now


def _begin(
    name: StreamName,
    head: Sequence[Segment],
    runs: Sequence[SegmentRun],
    store: Source,
    now: int,
) -> RecordedCut:
    """Where the archive begins: with what the stream's head has now."""
    starts = {one.id: one.start for one in runs}
    offsets = tuple(
        CutOffset(segment=one, offset=starts[one]) for one in sorted(segment.id for segment in head)
    )
    text = store.write_cut(name, {one.segment: one.offset for one in offsets})
    return RecordedCut(time=now, offsets=offsets, text=text)
