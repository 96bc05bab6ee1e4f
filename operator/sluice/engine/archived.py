"""Choosing the runs of archives that a copy reads, and what they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.archive.archive import find_run
from sluice.archive.shelf import Shelf
from sluice.archive.source import ArchivedStore
from sluice.core.model import ArchivedRun
from sluice.errors import (
    ArchiveDamaged,
    ArchiveNotFound,
    InvalidSpec,
    SourceTruncated,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.manifest import Gap, Lost
    from sluice.core.plan import OnTruncation, StreamPlan
    from sluice.core.planner import ArchiveChoice, CopyRequest, SeenSegment, SourceRequest
    from sluice.stores.base import Store

    Place = Store | Shelf
    """What is at a StreamStore's address: a store of live streams, or a place for archives."""


def choose(request: CopyRequest, places: Sequence[Place]) -> tuple[CopyRequest, list[Store]]:
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
    stores: dict[int, Store] = {}
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
            _check_gaps(run, request.on_truncation, source.field)
            stores[source.store] = run
            found = {"stream": run.manifest.source.stream, "pinned": run.pinned}
            sources.append(source.model_copy(update=found))
        elif wanted is None and not isinstance(place, Shelf):
            stores[source.store] = place
            sources.append(source)
        else:
            raise _wrong_kind(source)
    chosen = request.model_copy(update={"sources": tuple(sources)})
    return chosen, [stores[i] for i in range(len(places))]


def named(request: CopyRequest, plan: StreamPlan | None) -> CopyRequest:
    """A request whose archives have the names of their streams, as a plan of it has them."""
    if plan is None or len(plan.sources) != len(request.sources):
        return request
    sources = [
        asked.model_copy(update={"stream": planned.stream, "pinned": planned.archive})
        for asked, planned in zip(request.sources, plan.sources, strict=True)
    ]
    return request.model_copy(update={"sources": tuple(sources)})


def with_what_is_lost(seen: Sequence[SeenSegment], stores: Sequence[Store]) -> list[SeenSegment]:
    """The segments from where their archives were to begin, though the first bytes were lost then.

    A copy finds that they are gone, and records it as of any source.
    """
    begins = [store.begins if isinstance(store, ArchivedStore) else {} for store in stores]
    found = []
    for one in seen:
        start = begins[one.source].get(one.id, one.start)
        found.append(one if start == one.start else one._replace(start=start, events=None))
    return found


def _choose(wanted: ArchiveChoice, shelf: Shelf, field: str) -> ArchivedStore:
    """The run that is wanted, as a store."""
    archive = shelf.archive(wanted.path, field=f"{field}.archive.path")
    head = archive.head()
    if head is None:
        raise ArchiveNotFound(
            f"there is no archive at {wanted.path!r} in {shelf.uri}",
            field=f"{field}.archive.path",
        )
    try:
        entry = find_run(head, run=wanted.run, until=wanted.until)
    except ArchiveNotFound as error:
        which = "until" if wanted.until is not None else "run"
        raise ArchiveNotFound(
            f"archive {wanted.path}: {error.message}", field=f"{field}.archive.{which}"
        ) from None
    run = shelf.run(ArchivedRun(path=wanted.path, run=entry.run, sha256=entry.sha256))
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


def _wrong_kind(source: SourceRequest) -> InvalidSpec:
    if source.archive is None:
        return InvalidSpec(
            f"the store of {source.stream} holds archives, and no live streams",
            field=f"{source.field}.storeRef",
            remedy="Name the archive in source.archive, or another StreamStore.",
        )
    return InvalidSpec(
        f"the store of archive {source.archive.path} holds live streams, and no archives",
        field=f"{source.field}.archive.storeRef",
        remedy="Name a StreamStore with s3 or volume.",
    )
