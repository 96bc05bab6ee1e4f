"""Make the plan of a run from a request, by looking at the archive and at the stream."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.archive.runs.archive import place
from sluice.archive.runs.notes import Notes
from sluice.core.archive.archiving import refuse_loss
from sluice.core.archive.names import is_known
from sluice.core.archive.plan import ArchivePlan
from sluice.core.archive.request import ArchiveRequest
from sluice.core.values.archive_layout import ARCHIVED, WORK
from sluice.engine.archive.bounds import take_bounds
from sluice.errors import InvalidSpec, JournalDamaged, TargetExists, TooManyEvents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.manifest import Manifest
    from sluice.core.archive.notes import Note
    from sluice.engine.archive.bounds import Bounds
    from sluice.stores.base import Source


PATH_FIELD: Final = "spec.destination.path"

_LOOKED_AT: Final = 1000
"""Objects of each folder that are checked before a first run: one page of a bucket's listing."""


class ResolvedArchive(NamedTuple):
    """What the archive holds of a requested run.

    Attributes:
        plan: the plan of the run; None if the run is recorded and its notes are deleted, or if
            there is no plan yet.
        noted: whether the plan is noted in the archive, so that a driver has begun the run.
        entry: the run, if it is recorded.
    """

    plan: ArchivePlan | None
    noted: bool = False
    entry: RunEntry | None = None


def resolve_archive(
    request: ArchiveRequest,
    source: Source,
    archive: Archive,
    *,
    now: Callable[[], float] = time.time,
) -> ResolvedArchive:
    """Return the plan of a run: the noted plan if the run was begun, or a new one. Change nothing.

    Raises:
        TargetExists, InvalidSpec, SourceNotFound, SourceReplaced, SourceTruncated, TooManyEvents:
            as `make_archive_plan` does.
    """
    found = begun(request, archive)
    if found.plan is not None or found.entry is not None:
        return found
    return ResolvedArchive(make_archive_plan(request, source, archive, now=now))


def begun(request: ArchiveRequest, archive: Archive) -> ResolvedArchive:
    """Return what the archive holds of a run, without making a plan. Change nothing."""
    # Read the notes before the head: a driver deletes them once the head lists the run.
    plan = noted_plan(Notes(archive.objects, request.copy_id).read_on(), request)
    if plan is not None:
        return ResolvedArchive(plan, noted=True)
    if request.run_key is None:
        return ResolvedArchive(None)
    head = archive.head()
    runs = head.runs if head else ()
    entry = next((one for one in reversed(runs) if one.work == request.copy_id), None)
    return ResolvedArchive(None, entry=entry)


def noted_plan(
    notes: Iterable[Note], work: ArchiveRequest | ArchivePlan | None = None
) -> ArchivePlan | None:
    """Return the plan that counts, the last one in the notes; None if there are no notes.

    Args:
        notes: the notes of a run.
        work: the request or the plan of the run, if the caller carries it out. Any client that may
            write to the archive could have written the notes.

    Raises:
        JournalDamaged: the plan is of another run, or of another stream, store or archive.
    """
    found = None
    for note in notes:
        found = note.plan or found
    if found is None or work is None:
        return found
    store = work.store if isinstance(work, ArchivePlan) else 0  # a request is of one store
    own = work.copy_id, work.source, work.path, store
    if (found.copy_id, found.source, found.path, found.store) != own:
        raise JournalDamaged(
            f"the notes {WORK}{work.copy_id} of the archive {work.path} have the plan of another "
            "run",
            remedy="Delete these notes: the run starts anew.",
        )
    return found


def make_archive_plan(
    request: ArchiveRequest,
    source: Source,
    archive: Archive,
    *,
    store: int = 0,
    now: Callable[[], float] = time.time,
) -> ArchivePlan:
    """Make the plan for the bytes that came to the stream since the last run. Change nothing.

    Args:
        request: the run to plan.
        source: the store of the stream.
        archive: the archive to add to.
        store: the place of the stream's store among the stores that the plan reads from.
        now: gives the time in seconds.

    Raises:
        TargetExists: the archive is another owner's, and the request allows only its own.
        InvalidSpec: the archive is of another stream or has another format; or there is no archive
            yet, and its folders hold foreign objects.
        SourceNotFound: the stream does not exist.
        SourceReplaced: the stream was deleted since the last run, and made again.
        SourceTruncated: the stream lost bytes that are not archived, and the request does not
            accept that.
        TooManyEvents: the store says that the stream has more events than may become objects.
    """
    head = archive.head()
    _check_whose(request, head)
    if head is None:
        _refuse_strangers(request, archive)
    parent = archive.manifest(head.runs[-1]) if head else None
    if parent is not None:
        _check_parent(request, parent)
    bounds = take_bounds(
        request.source, source, parent, now=round(now() * 1000), field="spec.source.stream"
    )
    plan = _plan_of(request, head, store, bounds)
    for segment in plan.segments:
        if segment.lost:
            refuse_loss(plan, f"segment {segment.id} is gone")
        if segment.done < segment.begin:
            refuse_loss(
                plan, f"offsets {segment.done} to {segment.begin} of segment {segment.id} are gone"
            )
    _check_events(plan, parent)
    return plan


def request_of(plan: ArchivePlan) -> ArchiveRequest:
    """Return the request that a plan was made for, with the run's identity as the archive's."""
    return ArchiveRequest(
        archive_id=plan.copy_id,
        source=plan.source,
        store=plan.store_uri,
        path=plan.path,
        format=plan.format,
        verify=plan.verify,
        max_events=plan.max_events,
        on_truncation=plan.on_truncation,
        maker=plan.maker,
        sole=plan.sole,
    )


def replanned(plan: ArchivePlan, source: Source, archive: Archive) -> ArchivePlan:
    """Plan the same run on top of runs recorded meanwhile. Raise as `make_archive_plan`."""
    made = make_archive_plan(request_of(plan), source, archive, store=plan.store)
    return made.model_copy(update={"copy_id": plan.copy_id})


def _plan_of(request: ArchiveRequest, head: Head | None, store: int, bounds: Bounds) -> ArchivePlan:
    run, parent = place(head)
    return ArchivePlan(
        copy_id=request.copy_id,
        source=request.source,
        store=store,
        store_uri=request.store,
        path=request.path,
        format=request.format,
        run=run,
        parent=parent,
        verify=request.verify,
        max_events=request.max_events,
        on_truncation=request.on_truncation,
        maker=request.maker,
        sole=request.sole,
        **bounds._asdict(),
    )


def _check_whose(request: ArchiveRequest, head: Head | None) -> None:
    """Raise TargetExists if only the request's own archive may be added to and this is not it."""
    if request.sole is None or head is None:
        return
    if all(one.work != request.sole for one in head.runs):
        raise TargetExists(
            f"there is an archive at {request.path}, and this copy did not make it",
            field="spec.onExists",
            remedy="Take onExists: Append to add a run to it, or rename.",
        )


def _refuse_strangers(request: ArchiveRequest, archive: Archive) -> None:
    """Raise InvalidSpec if foreign objects lie in the folders that a new archive would use."""
    if next(archive.objects.list(), None) is None:
        return  # one call suffices in the usual case
    for folder in ARCHIVED:
        for found in islice(archive.objects.list(folder), _LOOKED_AT):
            if len(found.name) > len(folder) and not is_known(found.name):
                raise InvalidSpec(
                    f"{request.path or 'the place'} is in use: an archive has a folder "
                    f"{folder} there, and {found.name[:200]!r} is none of an archive's",
                    field=PATH_FIELD,
                    remedy="Archive the stream at a path where nothing else is; nothing was made.",
                )


def _check_parent(request: ArchiveRequest, parent: Manifest) -> None:
    """Raise InvalidSpec if the archive is of another stream, or has another format."""
    if parent.source.stream != request.source:
        raise InvalidSpec(
            f"the archive at {request.path or 'this place'} is one of {parent.source.stream}",
            field="spec.destination.path",
            remedy="Archive each stream at a path of its own.",
        )
    if parent.format is not request.format:
        raise InvalidSpec(
            f"the archive at {request.path or 'this place'} has the format {parent.format}",
            field="spec.format",
            remedy="Keep that format, or archive the stream at another path.",
        )


def _check_events(plan: ArchivePlan, parent: Manifest | None) -> None:
    """Raise TooManyEvents if the run would make too many objects, by the store's event counts."""
    known = sum(segment.events or 0 for segment in plan.segments)
    total = known + (parent.events or 0 if parent else 0)
    if plan.format.is_of_events and total > plan.max_events:
        raise TooManyEvents(
            f"{plan.origin} has {total} events, each of which would be an object, and "
            f"{plan.max_events} are allowed",
            field="spec.maxEvents",
        )
