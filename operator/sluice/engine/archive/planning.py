"""From a request to the plan of a run, by looking at the archive and at the stream."""

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
from sluice.core.values.archive_layout import ARCHIVED
from sluice.engine.archive.bounds import take_bounds
from sluice.errors import InvalidSpec, TargetExists, TooManyEvents

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
"""Objects of each folder that are looked at before a first run: what a listing gives at once."""


class ResolvedArchive(NamedTuple):
    """A request, held against the archive.

    Attributes:
        plan: what is to be archived; None when that is recorded and nothing is left to tidy.
        noted: whether a driver has begun to carry out the plan.
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
    """The plan of a run: the noted one if it was begun, or a new one. Nothing is changed.

    Raises:
        TargetExists, InvalidSpec, SourceNotFound, SourceReplaced, SourceTruncated, TooManyEvents:
            as `make_archive_plan` does.
    """
    found = begun(request, archive)
    if found.plan is not None or found.entry is not None:
        return found
    return ResolvedArchive(make_archive_plan(request, source, archive, now=now))


def begun(request: ArchiveRequest, archive: Archive) -> ResolvedArchive:
    """What there is of a run in the archive. Nothing is changed."""
    # The notes before the head: they are deleted when it lists the run.
    plan = noted_plan(Notes(archive.objects, request.copy_id).read_on())
    if plan is not None:
        return ResolvedArchive(plan, noted=True)
    if request.run_key is None:
        return ResolvedArchive(None)
    head = archive.head()
    runs = head.runs if head else ()
    entry = next((one for one in reversed(runs) if one.work == request.copy_id), None)
    return ResolvedArchive(None, entry=entry)


def noted_plan(notes: Iterable[Note]) -> ArchivePlan | None:
    """The plan that counts, of notes in order; None where there are none."""
    found = None
    for note in notes:
        found = note.plan or found
    return found


def make_archive_plan(
    request: ArchiveRequest,
    source: Source,
    archive: Archive,
    *,
    store: int = 0,
    now: Callable[[], float] = time.time,
) -> ArchivePlan:
    """The plan for what the stream has got since the last run. Nothing is changed.

    Args:
        request: what is wanted.
        source: where the stream is.
        archive: where it is archived.
        store: the place of the stream's store among those that the plan reads from.
        now: gives the time, in seconds.

    Raises:
        TargetExists: there is an archive, and it is somebody else's.
        InvalidSpec: it is of another stream, or has another format; or there is none, and its
            folders hold what is no archive's.
        SourceNotFound: there is no such stream.
        SourceReplaced: it was deleted since the last run, and made again.
        SourceTruncated: it has lost bytes that are not archived, and that is not wanted.
        TooManyEvents: the store says that it has more events than may become objects.
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
    """What a plan was made for, but for the identity, which the plan keeps."""
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
    """The plan of the same run on top of what was recorded meanwhile. Raises as the first one."""
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
    """Refuse to add to somebody else's archive where it may only be our own. TargetExists."""
    if request.sole is None or head is None:
        return
    if all(one.work != request.sole for one in head.runs):
        raise TargetExists(
            f"there is an archive at {request.path}, and this copy did not make it",
            field="spec.onExists",
            remedy="Take onExists: Append to add a run to it, or rename.",
        )


def _refuse_strangers(request: ArchiveRequest, archive: Archive) -> None:
    """Refuse to make an archive where somebody keeps other things in its folders. InvalidSpec."""
    if next(archive.objects.list(), None) is None:
        return  # as it mostly is
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
    """Refuse to add to an archive of another stream, or in another format. InvalidSpec."""
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
    """Refuse at once what would be too many objects, as far as the store can tell."""
    known = sum(segment.events or 0 for segment in plan.segments)
    total = known + (parent.events or 0 if parent else 0)
    if plan.format.is_of_events and total > plan.max_events:
        raise TooManyEvents(
            f"{plan.origin} has {total} events, each of which would be an object, and "
            f"{plan.max_events} are allowed",
            field="spec.maxEvents",
        )
