"""The plan that a copy goes by: which one holds, and what is written down of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.archive.plan import ArchivePlan
from sluice.core.copy.plan import pinned
from sluice.core.reconcile.copies.actions import DropPlan, WritePlan, WriteResults
from sluice.core.reconcile.copies.scope_results import results_hash
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import ScopeCopyPlan, StreamCopyPlan, refusal
from sluice.core.workloads.scope_log import planned_results
from sluice.core.workloads.unplanned import Unplanned

if TYPE_CHECKING:
    from sluice.core.archive.manifest import Parent
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.copy_status import CopyStatus
    from sluice.core.reconcile.copies.world import World
    from sluice.core.workloads.plan import Plan


def plan_to_write(world: World, status: CopyStatus) -> tuple[Planned, tuple[Action, ...]]:
    """The plan to go by, and what has to be written for it.

    The plan that a driver began to carry out holds; otherwise the one that was written down, which
    somebody may have looked at and approved; a new run takes the bounds anew.
    """
    answer = world.answer
    assert isinstance(answer, Planned)  # noqa: S101 - for the type checker
    written = world.plan
    if written is None:
        damaged = (DropPlan(),) if world.damaged else ()
        return answer, (*damaged, *_results(answer.plan, world), WritePlan(answer.plan))
    approved = not answer.recorded and status.value.plan_hash == written.plan.hash
    # The bounds may be those of before, and the run of an archive that they are of; the stores are
    # where their StreamStores say now.
    held = written.plan if approved and _follows(written.plan, answer.plan) else answer.plan
    stores = answer.plan.sources
    if isinstance(held, StreamCopyPlan):
        stores = pinned(held.streams[0], stores)
    plan = held.model_copy(update={"sources": stores, "target": answer.plan.target})
    # Written again if it is the same: the ConfigMap may be gone since it was last seen.
    anew = () if plan == written.plan else (DropPlan(),)
    planned = Planned(plan=plan, recorded=answer.recorded)
    return planned, (*_results(plan, world), *anew, WritePlan(plan))


def _follows(written: Plan, now: Plan) -> bool:
    """Whether a plan can still be carried out: that of a run only on what it was made to follow.

    What a driver is to plan is no plan that somebody has approved.
    """
    if isinstance(written, Unplanned) or isinstance(now, Unplanned):
        return False
    if type(written) is not type(now):
        return False
    before, parents = _parents(written), _parents(now)
    return all(parents.get(path, parent) == parent for path, parent in before.items())


def _parents(plan: Plan) -> dict[str, Parent | None]:
    """What each run of a plan was made to follow, by the paths of the archives."""
    return {run.path: run.parent for run in plan.items if isinstance(run, ArchivePlan)}


def _results(plan: Plan, world: World) -> tuple[Action, ...]:
    """A scope's plan can be looked at stream by stream.

    That is written first: a copy that is suspended is left alone as soon as there is a plan.
    """
    if not isinstance(plan, ScopeCopyPlan):
        return ()
    results = planned_results(plan)
    return () if world.results == results_hash(results) else (WriteResults(results),)


def too_large(planned: Planned) -> Trouble | None:
    """Why a plan cannot be written down."""
    error = refusal(planned.plan)
    return None if error is None else Trouble.of(error)
