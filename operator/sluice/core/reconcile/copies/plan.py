"""Choose the plan that a copy follows, and decide what to write of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.archive.plan import ArchivePlan
from sluice.core.copy.plan import pinned
from sluice.core.reconcile.copies.actions import DropPlan, WritePlan, WriteResults
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Following, Planned
from sluice.core.workloads.plan import ScopeCopyPlan, StreamCopyPlan, refusal
from sluice.core.workloads.scope_log import planned_results
from sluice.core.workloads.unplanned import Unplanned

if TYPE_CHECKING:
    from sluice.core.archive.manifest import Parent
    from sluice.core.reconcile.copies.actions import Action
    from sluice.core.reconcile.copies.statuses.base import CopyStatus
    from sluice.core.reconcile.copies.world import World
    from sluice.core.workloads.plan import Plan


def plan_to_write(world: World, status: CopyStatus) -> tuple[Planned, tuple[Action, ...]]:
    """Choose the plan to follow, and the actions that write it.

    A plan that a driver has recorded holds. Otherwise the plan in the ConfigMap holds, since a
    user may have approved it. A new run takes new bounds.
    """
    answer = world.answer
    assert isinstance(answer, Planned)  # noqa: S101 - for the type checker
    written = world.plan
    if written is None:
        damaged = (DropPlan(),) if world.damaged else ()
        return answer, (*damaged, *_results(answer.plan, world), WritePlan(answer.plan))
    approved = not answer.recorded and status.value.plan_hash == written.plan.hash
    # Bounds, and an archive's run, may come from the approved plan. The stores' addresses are
    # always those of their StreamStores now.
    held = written.plan if approved and _follows(written.plan, answer.plan) else answer.plan
    stores = answer.plan.sources
    if isinstance(held, StreamCopyPlan):
        stores = pinned(held.streams[0], stores)
    plan = held.model_copy(update={"sources": stores, "target": answer.plan.target})
    # Written again if it is the same: the ConfigMap may be gone since it was last seen.
    anew = () if plan == written.plan else (DropPlan(),)
    planned = replace(answer, plan=plan)
    return planned, (*_results(plan, world), *anew, WritePlan(plan))


def _follows(written: Plan, now: Plan) -> bool:
    """Tell whether a written plan can still be carried out.

    The plan of an archive's run can only while its parent is still the last run. An `Unplanned`
    has no bounds that a user could have approved.
    """
    if isinstance(written, Unplanned) or isinstance(now, Unplanned):
        return False
    if type(written) is not type(now):
        return False
    before, parents = _parents(written), _parents(now)
    return all(parents.get(path, parent) == parent for path, parent in before.items())


def _parents(plan: Plan) -> dict[str, Parent | None]:
    """Give the parent of each run in a plan, by the path of its archive."""
    return {run.path: run.parent for run in plan.items if isinstance(run, ArchivePlan)}


def _results(plan: Plan, world: World) -> tuple[Action, ...]:
    """Publish the planned streams of a scope, so that users can look at each.

    They are written before the plan: a suspended copy is left alone as soon as it has a plan. Of
    streams that are followed more is published already.
    """
    followed = isinstance(world.answer, Following) and world.results is not None
    if followed or not isinstance(plan, ScopeCopyPlan):
        return ()
    results = planned_results(plan)
    return () if world.results == results_hash(results) else (WriteResults(results),)


def too_large(planned: Planned) -> Trouble | None:
    """Tell why a plan cannot be written into a ConfigMap; None if it can."""
    error = refusal(planned.plan)
    return None if error is None else Trouble.of(error)
