"""Choosing the runs of archives that a copy reads, and what they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sluice.archive.runs.archive import find_run
from sluice.archive.runs.shelf import Shelf
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

    Place = Store | Shelf
    """What is at a StreamStore's address: a store of live streams, or a place for archives."""

    Origin = Source | Shelf
    """What a copy is given to read from: a place for archives stands for the run of its plan."""


def choose(request: CopyRequest, places: Sequence[Place]) -> tuple[CopyRequest, list[Source]]:
    """A request with the run of each archive chosen, and the stores to read from.

    Args:
        request: what is wanted.
        places: where its sources are; each archive has one of its own.

    Raises:
        ArchiveNotFound: there is no archive, or no such run.
        ArchiveDamaged, ArchiveUnsupported: its head or its manifest cannot be read.
        SourceTruncated: the run lacks bytes, and that is not to be recorded.
        InvalidSpec: a live stream is sought in a place for archives, or the other way round, or an
            archive is to be moved.
    """
    stores: dict[int, Source] = {}
    sources = []
    for source in request.sources:
        place, wanted = places[source.store], source.archive
        if wanted is not None and isinstance(place, Shelf):
            if request.move:
                raise InvalidSpec(
                    "an archive is not moved: its runs are let go by its retention",
                    field="spec.sourceOnComplete",
                    remedy="Take sourceOnComplete: Retain.",
                )
            run = _choose(wanted, place, source.field)
            stores[source.store] = run
            sources.append(pin(source, run, request.on_truncation))
        elif wanted is None and not isinstance(place, Shelf):
            stores[source.store] = place
            sources.append(source)
        else:
            name = str(source.stream) if wanted is None else wanted.path
            raise wrong_kind(name, source.field, archives=wanted is not None)
    chosen = request.model_copy(update={"sources": tuple(sources)})
    return chosen, [stores[i] for i in range(len(places))]


def pin(source: SourceRequest, run: ArchivedStore, on_truncation: OnTruncation) -> SourceRequest:
    """A source that is read in this run, if the run has all that it should.

    Raises:
        SourceTruncated: it lacks bytes, and that is not to be recorded.
    """
    _check_gaps(run, on_truncation, source.field)
    found = {"stream": run.manifest.source.stream, "pinned": run.pinned}
    return source.model_copy(update=found)


def live(place: Place) -> Store:
    """A store of live streams, as which it is named. InvalidSpec where it is none."""
    if isinstance(place, Shelf):
        raise InvalidSpec(f"{place.uri} is a store of archives, and holds no live streams")
    return place


def writable(source: Source) -> Store:
    """Give a source that is a live store. InvalidSpec where it is a run of an archive."""
    if isinstance(source, ArchivedStore):
        raise InvalidSpec(f"{source!r} is a run of an archive, which is only read")
    return cast("Store", source)  # whatever is read and is no run of an archive is a live store


def shelf(place: Place) -> Shelf:
    """A place for archives, as which it is named. InvalidSpec where it is none."""
    if not isinstance(place, Shelf):
        raise InvalidSpec("the StreamStore is one of live streams, and holds no archives")
    return place


def run_stores(plan: StreamPlan, places: Sequence[Origin]) -> list[Source]:
    """The stores that a plan reads from: in a place for archives the run that it names.

    Args:
        plan: the plan.
        places: where its sources are, as it numbers them. A run that is not the one of the plan is
            taken for the place of its archive.
    """
    runs = {source.store: source.archive for source in plan.sources}
    return [_run_store(place, runs.get(number)) for number, place in enumerate(places)]


def _run_store(place: Origin, run: ArchivedRun | None) -> Source:
    if isinstance(place, Shelf):
        if run is None:
            raise InvalidSpec("the plan reads a live stream in a place for archives")
        return place.run(run)
    if run is not None and isinstance(place, ArchivedStore) and place.pinned != run:
        return ArchivedStore(place.archive, run)
    return place


def named(request: CopyRequest, plan: StreamPlan | None) -> CopyRequest:
    """A request whose archives have the names of their streams, as a plan of it has them."""
    if plan is None or len(plan.sources) != len(request.sources):
        return request
    sources = [
        asked.model_copy(update={"stream": planned.stream, "pinned": planned.archive})
        for asked, planned in zip(request.sources, plan.sources, strict=True)
    ]
    return request.model_copy(update={"sources": tuple(sources)})


def with_what_is_lost(seen: Sequence[SeenSegment], stores: Sequence[Source]) -> list[SeenSegment]:
    """The segments from where their archives were to begin, though the first bytes were lost then.

    A copy finds that they are gone, and records it as of any source. What may have been behind
    their end it cannot find, so that is said of them here.
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


def _choose(wanted: ArchiveChoice, place: Shelf, field: str) -> ArchivedStore:
    """The run that is wanted, as a store."""
    archive = place.archive(wanted.path, field=f"{field}.archive.path")
    head = archive.head()
    if head is None:
        raise ArchiveNotFound(
            f"there is no archive at {wanted.path!r} in {place.uri}",
            field=f"{field}.archive.path",
        )
    try:
        entry = find_run(head, run=wanted.run, until=wanted.until)
    except ArchiveNotFound as error:
        which = "until" if wanted.until is not None else "run"
        raise ArchiveNotFound(
            f"archive {wanted.path}: {error.message}", field=f"{field}.archive.{which}"
        ) from None
    return open_run(place, wanted.path, entry)


def open_run(place: Shelf, path: str, entry: RunEntry) -> ArchivedStore:
    """A run, as a head lists it, as a store.

    Raises:
        ArchiveDamaged, ArchiveUnsupported: its manifest cannot be read, or is of another run.
    """
    run = place.run(ArchivedRun(path=path, run=entry.run, sha256=entry.sha256))
    if run.entry.model_copy(update={"verified": entry.verified}) != entry:
        what = f"{entry.name} is of another run than the head says"
        raise ArchiveDamaged(what, name=entry.name)
    return run


def _check_gaps(run: ArchivedStore, on_truncation: OnTruncation, field: str) -> None:
    """Refuse a run that lacks bytes, unless that is to be recorded."""
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
    """The error that a run lacks bytes."""
    return SourceTruncated(
        f"{run.pinned} lacks {what}: {why.reason}, as run {why.run} found",
        field=f"{field}.archive",
        remedy="Restore a run that is whole, or with onTruncation: Record what there is of this "
        "one.",
    )


def wrong_kind(what: str, field: str, *, archives: bool) -> InvalidSpec:
    """The error that a StreamStore is of the other kind.

    Args:
        what: is sought there.
        field: of the spec.
        archives: whether archives are sought, and not live streams.
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
