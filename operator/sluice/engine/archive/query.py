"""Answer the operator's questions on an archive, and abandon runs while no driver writes to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice.api.status.common import MOST_GAPS
from sluice.archive.runs.leases import delete_leases
from sluice.archive.runs.notes import Notes
from sluice.core.archive.reached import Reached
from sluice.core.archive.recorded import MOST_RUNS, LostBytes, Recorded, RunFacts
from sluice.core.scope.progress import Progress
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import ArchiveRunPlan
from sluice.engine.archive.planning import PATH_FIELD, resolve_archive
from sluice.errors import ArchiveNotFound

if TYPE_CHECKING:
    from sluice.archive.objects.objects import Objects
    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.core.archive.head import RunEntry
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.archive.request import ArchiveRequest
    from sluice.core.values.model import StoreAddress
    from sluice.stores.base import Store


def ask_archive(
    request: ArchiveRequest,
    *,
    source: tuple[StoreAddress, Store],
    target: tuple[StoreAddress, ArchiveRoot],
) -> Recorded | Planned:
    """Tell whether a run is recorded, and otherwise its plan. Change nothing.

    Args:
        request: the run.
        source: the store of the stream, with its address.
        target: the place that holds the archive, with its address.

    Raises:
        ArchiveNotFound: the run was let go meanwhile.
        SpecError, BackendError, IntegrityError: as `resolve_archive`.
    """
    archive = _archive(request, target[1])
    found = resolve_archive(request, source[1], archive)
    if found.plan is not None:
        plan = ArchiveRunPlan(sources=(source[0],), target=target[0], archive=found.plan)
        return Planned(plan=plan, recorded=found.noted)
    if found.entry is None:
        raise ArchiveNotFound(f"the archive at {request.path} is gone", field=PATH_FIELD)
    return told_of(archive, found.entry)


class ArchiveWatch:
    """A meter of a run's progress.

    Args:
        plan: the run's plan.
        root: the place that holds the archive, on connections of its own.
    """

    def __init__(self, plan: ArchivePlan, root: ArchiveRoot) -> None:
        self._plan = plan
        self._archive = root.archive(plan.path, field=PATH_FIELD)
        self._notes = Notes(self._archive.objects, plan.copy_id)
        self._reached: Reached | None = None

    def measure(self) -> Progress:
        """Return the present progress. Follow a new plan, made since another run was recorded."""
        for note in self._notes.read_on():
            if note.plan is not None:
                self._reached = Reached(note.plan)
            if self._reached is not None:
                self._reached.take(note)
        if self._reached is not None and self._notes.are_there:
            total = self._reached.plan.bytes
            return Progress(bytes=self._reached.bytes, total=total, published=False)
        head = self._archive.head()
        runs = head.runs if head else ()
        done = any(one.work == self._plan.copy_id for one in runs)
        return Progress(
            bytes=self._plan.bytes if done else 0, total=self._plan.bytes, published=done
        )


def abandon_archive(request: ArchiveRequest, root: ArchiveRoot) -> str:
    """Abandon an unfinished run. None of its drivers may be at work any more.

    Its objects are swept after the grace time, unless another run puts the same objects.

    Returns:
        The deleted objects, in words for people.
    """
    there = delete_notes(_archive(request, root).objects, request.copy_id)
    return f"the notes of a run of {request.path}" if there else "nothing"


def delete_notes(objects: Objects, copy_id: str) -> bool:
    """Delete a run's notes and the leases of its drivers. Tell whether there were notes."""
    there = Notes(objects, copy_id).delete()
    delete_leases(objects, copy_id)
    return there


def _archive(request: ArchiveRequest, root: ArchiveRoot) -> Archive:
    return root.archive(request.path, field=PATH_FIELD)


def told_of(archive: Archive, entry: RunEntry, *, most_gaps: int = MOST_GAPS) -> Recorded:
    """Return the facts of an archive and of one of its recorded runs.

    Args:
        archive: the archive.
        entry: the run.
        most_gaps: how many gaps to list one by one.

    Raises:
        ArchiveNotFound: the archive's head does not list the run any more.
    """
    signed = archive.signed_head()
    if signed is None or entry not in signed[0].runs:
        raise ArchiveNotFound(f"run {entry.run} is not in the archive any more")
    head, sha256 = signed
    gaps = []
    for segment in archive.manifest(entry).segments:
        gaps += [
            LostBytes(segment=segment.id, begin=gap.start, end=gap.end)
            for gap in segment.gaps
            if gap.run == entry.run
        ]
        if segment.lost is not None and segment.lost.run == entry.run:
            gaps.append(LostBytes(segment=segment.id, begin=segment.end))
    return Recorded(
        run=entry.run,
        head=head.number,
        sha256=sha256,
        count=len(head.runs),
        runs=tuple(
            RunFacts(
                run=one.run,
                time=datetime.fromtimestamp(one.time // 1000, UTC),
                bytes=one.bytes,
                events=one.events,
                verified=one.verified,
            )
            for one in head.runs[-MOST_RUNS:]
        ),
        added=head.added(entry.run, entry)[0],
        verified=entry.verified,
        lost=sum(gap.end - gap.begin for gap in gaps if gap.end is not None),
        gaps=tuple(gaps[:most_gaps]),
    )
