"""A StreamArchive and its world, for tests of `reconcile`; see `copies`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.core.archive.manifest import RecordedCut
from sluice.core.archive.names import Format
from sluice.core.archive.plan import ArchivePlan, SegmentRun
from sluice.core.archive.recorded import Recorded, RunFacts
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.scheduled.seen import times
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.values.model import KeyRange, StoreAddress, StreamConfig, StreamName
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import ArchiveRunPlan, Plan
from support.cases import resources
from support.reconcile import copies
from support.reconcile.copies import COPY_ID, NOW, UID, job, world

if TYPE_CHECKING:
    from datetime import datetime

    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.world import PlanSeen, World

EVERY_HOUR = {"cron": "0 * * * *"}


def spec(**changes: Any) -> StreamArchiveSpec:
    """Return an archive's spec with some fields set, as YAML has them."""
    return StreamArchiveSpec.model_validate(resources.ARCHIVE["spec"] | changes)


def archive(
    *, status: StreamArchiveStatus | None = None, at: datetime = NOW, **changes: Any
) -> ArchiveSeen:
    """Return an archive made at NOW and seen at `at`, with some fields of spec and seen set."""
    own = {name: value for name, value in changes.items() if name in _OWN}
    fields = {name: value for name, value in changes.items() if name not in own}
    bare = ArchiveSeen(
        name="orders",
        uid=UID,
        generation=1,
        copy_id=COPY_ID,
        spec=spec(**fields),
        status=status or StreamArchiveStatus(),
    )
    return seen_at(replace(bare, **own), at)


_OWN = frozenset({"requested_at", "finalizer", "deleted", "force_orphan", "generation"})


def seen_at(seen: ArchiveSeen, at: datetime) -> ArchiveSeen:
    """Return the archive as the operator sees it at a time."""
    due, later = times(seen.spec, seen.status, created=NOW, now=at)
    return replace(seen, due=due, later=later)


def after(
    seen: ArchiveSeen, decision: Decision, *, at: datetime = NOW, **changes: Any
) -> ArchiveSeen:
    """Return the archive at a time after a decision was carried out."""
    found = copies.after(seen, decision, **changes)
    assert isinstance(found, ArchiveSeen)
    return seen_at(found, at)


def plan(size: int = 1000, *, run: int = 1) -> ArchiveRunPlan:
    """Return the plan of a run of one segment with `size` new bytes."""
    cut = RecordedCut.model_validate({"time": 0, "offsets": [{"segment": 0, "offset": size}]})
    return ArchiveRunPlan(
        sources=(StoreAddress(uri="tcp://127.0.0.1:9090"),),
        target=StoreAddress(backend="s3", uri="s3://archives"),
        archive=ArchivePlan(
            copy_id=COPY_ID,
            source=StreamName(scope="in", stream="orders"),
            store_uri="tcp://127.0.0.1:9090",
            path="in/orders",
            format=Format.SEGMENTS,
            run=run,
            begin=cut,
            end=cut,
            segments=(
                SegmentRun(
                    epoch=0,
                    id=0,
                    keys=KeyRange(low=0, high=1),
                    created=1,
                    start=0,
                    done=0,
                    begin=0,
                    end=size,
                    sealed=False,
                ),
            ),
            config=StreamConfig(),
            max_events=1_000_000,
        ),
    )


PLAN = plan()
PLANNED = Planned(plan=PLAN)


def recorded(run: int = 1, *, runs: int = 1, **changes: Any) -> Recorded:
    """Return a run in the archive, with others before it."""
    numbers = range(run - runs + 1, run + 1)
    bare = Recorded(
        run=run,
        head=run,
        sha256="e" * 64,
        count=runs,
        runs=tuple(
            RunFacts(run=number, time=NOW, bytes=1000 * number, events=number, verified=True)
            for number in numbers
        ),
        added=1000,
        verified=True,
    )
    return bare.model_copy(update=changes)


def plan_seen(found: Plan = PLAN) -> PlanSeen:
    """Return the ConfigMap with the plan."""
    return copies.plan_seen(found)


def ended(attempt: int = 1, **changes: Any) -> World:
    """Return the world after an attempt's driver has ended, with its run recorded."""
    found = world(
        jobs=(job(attempt, JobPhase.SUCCEEDED),), plan=plan_seen(), answer=recorded(attempt)
    )
    return replace(found, **changes)


def begun(**changes: Any) -> ArchiveSeen:
    """Return an archive whose first attempt began at NOW."""
    seen = archive(**changes)
    return after(seen, reconcile_archive(seen, world(answer=PLANNED)))


def done(**changes: Any) -> ArchiveSeen:
    """Return an archive whose first run is recorded."""
    seen = begun(**changes)
    return after(seen, reconcile_archive(seen, ended()))


def status(decision: Decision) -> StreamArchiveStatus:
    """Return the status of a decision on an archive."""
    assert isinstance(decision.status, StreamArchiveStatus)
    return decision.status
