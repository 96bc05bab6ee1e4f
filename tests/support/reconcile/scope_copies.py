"""A ScopeCopy and its world, for tests of `reconcile`; see `support.reconcile.copies`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.api.kinds.scopecopy import ScopeCopySpec
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.core.reconcile.copies.actions import WriteResults
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.world import Reading
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.progress import Pace, Progress
from sluice.core.scope.scope import Counts, LeftOut, ScopePlan, StreamResult, StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.errors import SourceNotFound
from support.cases import resources
from support.engine.plans import segment_plan, stream_plan, whole_scope
from support.reconcile.copies import COPY_ID, NOW, UID, after, job, plan_seen, world

if TYPE_CHECKING:
    from sluice.api.status.common import CopyingStatus
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.world import World
    from sluice.core.workloads.plan import ScopeCopyPlan
    from sluice.errors import SluiceError

TAKEN = round(NOW.timestamp() * 1000)
"""The time at which the first stream's bounds were taken, in ms since 1970."""

GONE = SourceNotFound("there is no stream in/b")
SUCCEEDED = job(phase=JobPhase.SUCCEEDED)


def spec(**changes: Any) -> ScopeCopySpec:
    """Return a copy's spec with some fields set, as YAML has them."""
    return ScopeCopySpec.model_validate(resources.SCOPE["spec"] | changes)


def scope(*, status: ScopeCopyStatus | None = None, **changes: Any) -> CopySeen:
    """Return a new copy with some fields of the spec and of CopySeen set."""
    own = {name: value for name, value in changes.items() if name in CopySeen.__slots__}
    fields = {name: value for name, value in changes.items() if name not in own}
    bare = CopySeen(
        name="shop",
        uid=UID,
        generation=1,
        copy_id=COPY_ID,
        spec=spec(**fields),
        status=status or ScopeCopyStatus(),
    )
    return replace(bare, **own)


def stream(name: str, size: int = 1000) -> StreamPlan:
    """Return the plan of one stream of the scope."""
    return stream_plan(
        segment_plan(size),
        copy=COPY_ID,
        source=StreamName(scope="in", stream=name),
        target=StreamName(scope="out", stream=name),
    )


def scope_plan(*streams: StreamPlan, **changes: Any) -> ScopeCopyPlan:
    """Return a plan of these streams, with some fields of ScopePlan set."""
    bare = ScopePlan(scope_id=COPY_ID, source="in", target="out", begin=TAKEN, end=TAKEN + 1250)
    whole = bare.model_copy(update=changes)
    return whole_scope(whole, *streams)


def copied(name: str, size: int = 1000, **changes: Any) -> StreamResult:
    """Return the result of a stream whose target is whole."""
    bare = StreamResult(
        stream=name,
        target=name,
        state=StreamState.COPIED,
        bytes=size,
        events=1,
        digest="d" * 64,
    )
    return bare.model_copy(update=changes)


def failed(name: str, error: SluiceError = GONE, size: int = 1000) -> StreamResult:
    """Return the result of a stream that cannot be copied."""
    return StreamResult(
        stream=name,
        target=name,
        state=StreamState.FAILED,
        bytes=size,
        trouble=Trouble.of(error),
    )


def stopped(name: str, size: int = 1000) -> StreamResult:
    """Return the result of a stream that was not begun."""
    return StreamResult(stream=name, target=name, state=StreamState.STOPPED, bytes=size)


PLAN = scope_plan(stream("a", 3000), stream("b"), stream("c"))
PLANNED = Planned(plan=PLAN)
RECORDED = Planned(plan=PLAN, recorded=True)
AGAIN = Planned(plan=scope_plan(stream("b"), run=2, settled=(copied("a", 3000), copied("c"))))
WHOLE = ScopeEnded(plan=PLAN, results=(copied("a", 3000), copied("b"), copied("c")))
PARTLY = ScopeEnded(plan=PLAN, results=(copied("a", 3000), failed("b"), copied("c")))
FAILED = ScopeEnded(plan=PLAN, results=(failed("a", size=3000), failed("b"), failed("c")))
LEFT_OUT = (
    LeftOut(why=Why.INTERNAL, count=2, streams=("_RGone", "_RGtwo")),
    LeftOut(why=Why.EXISTS, count=1, streams=("d",)),
)


def reading(staged: int, *, total: int = 5000, published: bool = False, **counts: int) -> Reading:
    """Return a reading of the progress, at 100 bytes a second, with streams by their states."""
    streams = Counts(total=3, **counts)
    progress = Progress(bytes=staged, total=total, published=published, streams=streams)
    return Reading(progress=progress, pace=Pace(100.0, (total - staged) / 100))


def begun(**changes: Any) -> CopySeen:
    """Return a copy whose first attempt began at NOW."""
    seen = scope(**changes)
    return after(seen, reconcile(seen, world(answer=PLANNED)))


def ended(answer: ScopeEnded, **changes: Any) -> World:
    """Return the world after the driver has ended, with any results published."""
    found = world(
        jobs=(SUCCEEDED,),
        plan=plan_seen(PLAN),
        answer=answer,
        results=results_hash(answer.results),
    )
    return replace(found, **changes)


def over(answer: ScopeEnded, **changes: Any) -> CopySeen:
    """Return a copy whose first attempt has ended with this answer."""
    seen = begun(**changes)
    return after(seen, reconcile(seen, ended(answer)))


def published(decision: Decision) -> tuple[StreamResult, ...] | None:
    """Return the results that a decision publishes; None if it publishes none."""
    found = [action for action in decision.actions if isinstance(action, WriteResults)]
    assert len(found) <= 1
    return found[0].results if found else None


def status(decision: Decision) -> ScopeCopyStatus:
    """Return the status of a decision on a scope."""
    return of_scope(decision.status)


def of_scope(found: CopyingStatus) -> ScopeCopyStatus:
    """Return a status of a scope's copy."""
    assert isinstance(found, ScopeCopyStatus)
    return found
