"""Choose the runs of archives that a copy reads, and find out which bytes they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sluice.archive.runs.archive import find_run
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.archive.runs.source import ArchivedStore
from sluice.core.values.model import ArchivedRun
from sluice.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    InvalidSpec,
    SourceTruncated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.head import RunEntry
    from sluice.core.archive.manifest import Gap, Lost
    from sluice.core.copy.plan import OnTruncation, StreamPlan
    from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SeenSegment, SourceRequest
    from sluice.stores.base import Source, Store

    Place = Store | ArchiveRoot
    """The store at a StreamStore's address: of live streams, or of archives."""

    Origin = Source | ArchiveRoot
    """A store that a copy reads from. A store of archives stands for the run in the copy's plan."""


def choose(request: CopyRequest, places: Sequence[Place]) -> tuple[CopyRequest, list[Source]]:
    """Choose the run of each archive that a request reads.

    Args:
        request: the copy.
        places: the stores of its sources; each archive has its own entry.

    Returns:
        The request with the runs chosen, and the stores to read from.

    Raises:
        ArchiveNotFound: there is no archive, or no such run.
        ArchiveDamaged, ArchiveUnsupported: its head or its manifest cannot be read.
        SourceTruncated: the run lacks bytes, and `onTruncation` is not `Record`.
        InvalidSpec: the request reads a live stream from a store of archives, or the other way
            round, or moves an archive.
    """
    stores: dict[int, Source] = {}
    sources = []
    for source in request.sources:
        place, wanted = places[source.store], source.archive
        if wanted is not None and isinstance(place, ArchiveRoot):
            if request.move:
                raise InvalidSpec(
                    "an archive is not moved: its runs are let go by its retention",
                    field="spec.sourceOnComplete",
                    remedy="Take sourceOnComplete: Retain.",
                )
            run = _choose(wanted, place, source.field)
            stores[source.store] = run
            sources.append(pin(source, run, request.on_truncation))
        elif wanted is None and not isinstance(place, ArchiveRoot):
            stores[source.store] = place
            sources.append(source)
        else:
            name = str(source.stream) if wanted is None else wanted.path
            raise wrong_kind(name, source.field, archives=wanted is not None)
    chosen = request.model_copy(update={"sources": tuple(sources)})
    return chosen, [stores[i] for i in range(len(places))]


def pin(source: SourceRequest, run: ArchivedStore, on_truncation: OnTruncation) -> SourceRequest:
    """Return the source with this run set as the run to read.

    Raises:
        SourceTruncated: the run lacks bytes, and gaps are not to be recorded.
    """
    _check_gaps(run, on_truncation, source.field)
    found = {"stream": run.manifest.source.stream, "pinned": run.pinned}
    return source.model_copy(update=found)


def live(place: Place) -> Store:
    """Return a place as a store of live streams. InvalidSpec if it is a store of archives."""
    if isinstance(place, ArchiveRoot):
        raise InvalidSpec(f"{place.uri} is a store of archives, and holds no live streams")
    return place


def writable(source: Source) -> Store:
    """Return a source as a live store. InvalidSpec if it is a run of an archive."""
    if isinstance(source, ArchivedStore):
        raise InvalidSpec(f"{source!r} is a run of an archive, which is only read")
    return cast("Store", source)  # every source that is no run of an archive is a live store


def root(place: Place) -> ArchiveRoot:
    """Return a place as a store of archives. InvalidSpec if it is a store of live streams."""
    if not isinstance(place, ArchiveRoot):
        raise InvalidSpec("the StreamStore is one of live streams, and holds no archives")
    return place


def run_stores(plan: StreamPlan, places: Sequence[Origin]) -> list[Source]:
    """Return the stores that a plan reads from. In a store of archives, that is the plan's run.

    Args:
        plan: the plan.
        places: the stores of its sources, as the plan numbers them. In place of another run than
            the plan's, the plan's run of the same archive is opened.

    Raises:
        InvalidSpec: the plan reads a live stream from a store of archives.
    """
    runs = {source.store: source.archive for source in plan.sources}
    return [_run_store(place, runs.get(number)) for number, place in enumerate(places)]


def _run_store(place: Origin, run: ArchivedRun | None) -> Source:
    if isinstance(place, ArchiveRoot):
        if run is None:
            raise InvalidSpec("the plan reads a live stream in a place for archives")
        return place.run(run)
    if run is not None and isinstance(place, ArchivedStore) and place.pinned != run:
        return ArchivedStore(place.archive, run)
    return place


def named(request: CopyRequest, plan: StreamPlan | None) -> CopyRequest:
    """Return a request with the streams and runs of its archives filled in from its plan."""
    if plan is None or len(plan.sources) != len(request.sources):
        return request
    sources = [
        asked.model_copy(update={"stream": planned.stream, "pinned": planned.archive})
        for asked, planned in zip(request.sources, plan.sources, strict=True)
    ]
    return request.model_copy(update={"sources": tuple(sources)})


def with_what_is_lost(seen: Sequence[SeenSegment], stores: Sequence[Source]) -> list[SeenSegment]:
    """Return segments of archives with the bytes that their runs lack.

    A segment begins where its archive was to begin, even if its first bytes were lost. The copy
    then finds these bytes missing, and records that as it does for any source. It cannot find bytes
    that were lost after a segment's end. So such a segment is marked as `torn` here.

    Args:
        seen: the segments, with bounds.
        stores: the store of each source.
    """
    runs = [store if isinstance(store, ArchivedStore) else None for store in stores]
    begins = [run.begins if run else {} for run in runs]
    torn = [run.torn if run else frozenset[int]() for run in runs]
    found = []
    for one in seen:
        start = begins[one.source].get(one.id, one.start)
        kept = one if start == one.start else one._replace(start=start, events=None)
        found.append(kept._replace(torn=one.id in torn[one.source]))
    return found


def _choose(wanted: ArchiveChoice, place: ArchiveRoot, field: str) -> ArchivedStore:
    """Return the requested run of an archive, as a store.

    Raises:
        ArchiveNotFound: there is no archive at the path, or no such run.
    """
    archive = place.archive(wanted.path, field=f"{field}.archive.path")
    head = archive.head()
    if head is None:
        raise ArchiveNotFound(
            f"there is no archive at {wanted.path!r} in {place.uri}",
            field=f"{field}.archive.path",
        )
    try:
        entry = find_run(head, run=wanted.run, until=wanted.until, sha256=wanted.sha256)
    except ArchiveNotFound as error:
        which = "until" if wanted.until is not None else "run"
        raise ArchiveNotFound(
            f"archive {wanted.path}: {error.message}", field=f"{field}.archive.{which}"
        ) from None
    return open_run(place, wanted.path, entry)


def open_whole(wanted: ArchiveChoice, place: ArchiveRoot, field: str) -> ArchivedStore:
    """Open a run of an archive that lacks no bytes.

    Raises:
        ArchiveNotFound: there is no archive at the path, or no such run.
        ArchiveDamaged, ArchiveUnsupported: its head or its manifest cannot be read.
        SourceTruncated: the run lacks bytes.
    """
    run = _choose(wanted, place, field)
    _check_gaps(run, "Fail", field)
    return run


def open_run(place: ArchiveRoot, path: str, entry: RunEntry) -> ArchivedStore:
    """Open a run that a head lists, as a store.

    Raises:
        ArchiveDamaged, ArchiveUnsupported: its manifest cannot be read, or is of another run.
    """
    run = place.run(ArchivedRun(path=path, run=entry.run, sha256=entry.sha256))
    if run.entry.model_copy(update={"verified": entry.verified}) != entry:
        what = f"{entry.name} is of another run than the head says"
        raise ArchiveDamaged(what, name=entry.name)
    return run


def _check_gaps(run: ArchivedStore, on_truncation: OnTruncation, field: str) -> None:
    """Raise SourceTruncated for a run that lacks bytes, unless gaps are to be recorded."""
    if on_truncation == "Record":
        return
    for segment in run.manifest.segments:
        for gap in segment.gaps:
            what = f"bytes {gap.start} to {gap.end} of segment {segment.id}"
            raise _lacking(run, what, gap, field)
        if segment.lost is not None:
            what = f"what segment {segment.id} had from offset {segment.end} on"
            raise _lacking(run, what, segment.lost, field)


def _lacking(run: ArchivedStore, what: str, why: Gap | Lost, field: str) -> SourceTruncated:
    """Return the error for a run that lacks bytes."""
    return SourceTruncated(
        f"{run.pinned} lacks {what}: {why.reason}, as run {why.run} found",
        field=f"{field}.archive",
        remedy="Restore a run that is whole, or with onTruncation: Record what there is of this "
        "one.",
    )


def wrong_kind(what: str, field: str, *, archives: bool) -> InvalidSpec:
    """Return the error for a StreamStore of the wrong kind.

    Args:
        what: the stream, or the path of the archive, that is read.
        field: the field of the spec.
        archives: whether an archive is read, and not a live stream.
    """
    if archives:
        return InvalidSpec(
            f"the store of archive {what} holds live streams, and no archives",
            field=f"{field}.archive.storeRef",
            remedy="Name a StreamStore with s3 or volume.",
        )
    return InvalidSpec(
        f"the store of {what} holds archives, and no live streams",
        field=f"{field}.storeRef",
        remedy=f"Name the archive in {field.partition('.')[2]}.archive, or another StreamStore.",
    )
