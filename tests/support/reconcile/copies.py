"""A StreamCopy and its world, for tests of `reconcile`. Fields without a value are well."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.streamcopy import StreamCopySpec
from sluice.api.status.common import Attempt, ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import Abandon, AddFinalizer, RemoveFinalizer
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.copies.world import PlanSeen, Reading, World
from sluice.core.reconcile.shared.jobs import JobPhase, JobSeen, job_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.scope.progress import Pace, Progress
from sluice.core.values.model import StoreAddress
from sluice.core.values.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Complete, Planned
from support.cases import resources
from support.engine.plans import segment_plan, stream_plan, whole_plan

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.workloads.plan import Plan
    from sluice.errors import SluiceError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "6e1f1a52-7f0b-4b52-9a57-0c7d6ad3d9a1"
COPY_ID = "ab" * 16
PLAN = whole_plan(stream_plan(segment_plan(1000)))
LONGER = whole_plan(stream_plan(segment_plan(2000)))
PLANNED = Planned(plan=PLAN)
RECORDED = Planned(plan=PLAN, recorded=True)
DROP = (Abandon(), RemoveFinalizer())
"""Actions when nothing of a copy is needed any more."""

WHOLE = Complete(digest="d" * 64, bytes=1000, events=1, segments=1)
MAPPED = PositionMap(
    target="out/t",
    same_positions=False,
    sources=(
        MappedSource(
            stream="in/s",
            segments=(
                MappedSegment(segment=0, start=20, end=1020, target_segment=0, shift=-20),
                MappedSegment(segment=1, start=0, end=70, target_segment=1, shift=0),
            ),
        ),
    ),
)
STORE = StoreSeen(
    namespace="team",
    name="local",
    address=StoreAddress(uri="tcp://127.0.0.1:9090"),
    ready=True,
    held=True,
)


def later(seconds: float) -> datetime:
    """Return the time `seconds` seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def spec(**changes: Any) -> StreamCopySpec:
    """Return a copy's spec with some fields set, as YAML has them."""
    return StreamCopySpec.model_validate(resources.COPY["spec"] | changes)


def copy(*, status: StreamCopyStatus | None = None, **changes: Any) -> CopySeen:
    """Return a new copy with some fields of the spec and of CopySeen set."""
    own = {name: value for name, value in changes.items() if name in CopySeen.__slots__}
    fields = {name: value for name, value in changes.items() if name not in own}
    bare = CopySeen(
        name="orders",
        uid=UID,
        generation=1,
        copy_id=COPY_ID,
        spec=spec(**fields),
        status=status or StreamCopyStatus(),
    )
    return replace(bare, **own)


def world(**changes: Any) -> World:
    """Return a world in which both stores are ready and nothing else exists."""
    if "source" in changes:
        changes["sources"] = (changes.pop("source"),)
    return replace(World(now=NOW, sources=(STORE,), target=STORE), **changes)


def job(attempt: int = 1, phase: JobPhase = JobPhase.RUNNING, **changes: Any) -> JobSeen:
    """Return the Job of an attempt, made at NOW. If the Job has ended, it ended then."""
    bare = JobSeen(
        name=job_name(UID, attempt),
        attempt=attempt,
        phase=phase,
        started=NOW,
        ended=NOW if phase in {JobPhase.SUCCEEDED, JobPhase.FAILED} else None,
    )
    return replace(bare, **changes)


def plan_seen(plan: Plan = PLAN) -> PlanSeen:
    """Return the ConfigMap with the plan."""
    return PlanSeen(plan=plan, name=plan_name("orders", UID))


def reading(staged: int, total: int = 1000, *, published: bool = False) -> Reading:
    """Return a reading of the progress, at 100 bytes a second."""
    progress = Progress(bytes=staged, total=total, published=published)
    return Reading(progress=progress, pace=Pace(100.0, (total - staged) / 100))


def trouble(error: SluiceError) -> Trouble:
    """Return an error in the form of a status."""
    return Trouble.of(error)


def after(seen: CopySeen, decision: Decision, **changes: Any) -> CopySeen:
    """Return the copy after a decision was carried out and its status was written and read."""
    finalizer = seen.finalizer
    for action in decision.actions:
        finalizer = isinstance(action, AddFinalizer) or (
            finalizer and not isinstance(action, RemoveFinalizer)
        )
    status = type(decision.status).read(decision.status.dump())
    assert status == decision.status, "a status that was written reads back as it was"
    return replace(seen, status=status, finalizer=finalizer, **changes)


def begun(**changes: Any) -> CopySeen:
    """Return a copy whose first attempt began at NOW."""
    seen = copy(**changes)
    return after(seen, reconcile(seen, world(answer=PLANNED)))


def attempts(*outcomes: str | None) -> tuple[Attempt, ...]:
    """Return a history of these outcomes, one for each attempt; None for a running one."""
    return tuple(
        Attempt(attempt=number, job=job_name(UID, number), start_time=NOW, outcome=outcome)
        for number, outcome in enumerate(outcomes, start=1)
    )


def said(decision: Decision) -> dict[str, str]:
    """Return the conditions of a decision's status, by type."""
    return {found.type: found.status for found in decision.status.conditions}


def reason(decision: Decision) -> str:
    """Return the reason of the condition Ready."""
    found = decision.status.condition(ConditionType.READY)
    assert found is not None
    return found.reason


def message(decision: Decision) -> str:
    """Return the message of the condition Ready."""
    found = decision.status.condition(ConditionType.READY)
    assert found is not None
    return found.message


WORKING = {"Ready": "Unknown", "Succeeded": "Unknown", "Reconciling": "True"}
STALLED = {"Ready": "False", "Succeeded": "False", "Stalled": "True"}
SUSPENDED = {"Ready": "Unknown", "Succeeded": "Unknown", "Suspended": "True"}
DONE = {"Ready": "True", "Succeeded": "True", "Verified": "True"}
