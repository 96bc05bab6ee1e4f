"""Plan a scope's copy from the state of its stores.

The log in the target store decides, if there is one. Otherwise all streams are planned together:
first the streams are described, then their targets are looked for. The bounds are taken last, so
that all of them are of one short time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.plan import ArchivePlan
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope import selection
from sluice.core.scope.scope import MOST_NAMES, ScopePlan, StreamState, Why
from sluice.core.workloads.answers import Planned, ScopeEnded, ScopePlanned
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.scope_log import run_of
from sluice.core.workloads.unplanned import UnplannedScopeCopy
from sluice.engine.access.source_runs import live, wrong_kind
from sluice.engine.copy.planning import refuse_past_end, refuse_unverified_move
from sluice.engine.scope import moving
from sluice.engine.scope.object_log import log_of
from sluice.engine.scope.planners.archives import ArchivePlanner
from sluice.engine.scope.planners.copies import CopyPlanner
from sluice.engine.scope.planners.restores import RestorePlanner
from sluice.errors import InvalidSpec, ScopeNotFound, SourceNotFound, TargetScopeNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import LeftOut
    from sluice.core.values.model import StoreAddress
    from sluice.core.workloads.plan import Plan
    from sluice.core.workloads.scope_log import ScopeState
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.planners.base import ScopePlanner

    Site = tuple[StoreAddress, Place]
    """The address of a StreamStore, and the store or place for archives at it."""

A = TypeVar("A")
"""An answer about a scope's copy."""


def resolve_scope(
    request: ScopeRequest, *, source: Site, target: Site, again: bool = False
) -> ScopePlanned | ScopeEnded:
    """Return the plan of a scope's copy, or its result as the drivers recorded it.

    Nothing is changed.

    Args:
        request: the copy.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
        again: whether to try failed and stopped streams again.

    Raises:
        SourceNotFound, TargetScopeNotFound: the scope does not exist.
        ArchiveNotFound: there are no archives in the source's folder.
        TargetExists: there are targets that this copy did not make, and `onExists` is Fail.
        InvalidSpec, PlanTooLarge: the selected streams cannot be copied in this way.
        BackendError, JournalDamaged: a store did not answer, or the log cannot be read.
    """
    return answer(
        log_of(target[1], request.scope_id, request).load(),
        source=source,
        target=target,
        again=again,
        plan=partial(plan_next, request, source=source, target=target),
        check=lambda ended: ended,
    )


def answer(
    state: ScopeState | None,
    *,
    source: Site,
    target: Site,
    again: bool,
    plan: Callable[[ScopeEnded | None], A],
    check: Callable[[ScopeEnded], ScopeEnded],
) -> A | ScopePlanned | ScopeEnded:
    """Answer as `resolve_scope` does, with a planner and a check of the caller's choice.

    Args:
        state: the log.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
        again: whether to try failed and stopped streams again.
        plan: plans all there is to do, or, after a run that is over, what that has left.
        check: may hold what drivers say against the stores.
    """
    if state is None:
        return plan(None)
    recorded = at(state.plan, source, target)
    if not state.is_over:
        return ScopePlanned(plan=recorded, recorded=True)
    ended = check(ScopeEnded(plan=recorded, results=state.streams))
    if again and any(one.state is not StreamState.COPIED for one in ended.results):
        return plan(ended)
    return told_kept(ended, source[1], coming=True)


def told_kept(ended: ScopeEnded, source: Place, *, coming: bool) -> ScopeEnded:
    """Add to a result why the source's scope still exists, if all its streams are moved.

    Args:
        ended: the result of the copy.
        source: the store of the source.
        coming: see `scope.moving.why_kept`.
    """
    if any(one.state is not StreamState.COPIED for one in ended.results):
        return ended
    return replace(ended, kept=moving.why_kept(ended.plan, source, coming=coming))


def at(plan: ScopeCopyPlan, source: Site, target: Site) -> ScopeCopyPlan:
    """Return a recorded plan with the present addresses of its stores."""
    return plan.model_copy(update={"sources": (source[0],), "target": target[0]})


def holds(
    known: Plan, request: ScopeRequest, source: Site, target: Site, state: ScopeState | None
) -> bool:
    """Tell whether a known plan, which no driver has recorded yet, is still to be carried out."""
    if state is not None and not state.is_over:
        return False  # a driver has begun another one
    if (known.sources, known.target) != ((source[0],), target[0]):
        return False
    if isinstance(known, UnplannedScopeCopy):
        following = 1 if state is None else state.run + 1
        return known.scoping.scope_id == request.scope_id and known.run == following
    return (
        isinstance(known, ScopeCopyPlan)
        and known.scope.scope_id == request.scope_id
        and (state is None or run_of(known) > state.run)
    )


def plan_next(
    request: ScopeRequest, ended: ScopeEnded | None, *, source: Site, target: Site
) -> ScopePlanned | ScopeEnded:
    """Plan the first run, or the run after one that is over."""
    if ended is None:
        return plan_scope(request, source=source, target=target)
    return next_run(request, ended, source=source, target=target)


def leave_to_driver(
    request: ScopeRequest, ended: ScopeEnded | None, *, source: Site, target: Site
) -> Planned:
    """Return the request for a driver to plan, where only a driver can read the source.

    This takes the place of `plan_next`.

    Raises:
        TargetScopeNotFound: the target's scope does not exist, and is not to be made.
    """
    if not (request.make_scope or live(target[1]).scope_exists(request.target)):
        raise _no_target_scope(request)
    run = 1 if ended is None else run_of(ended.plan) + 1
    plan = UnplannedScopeCopy(sources=(source[0],), target=target[0], scoping=request, run=run)
    return Planned(plan=plan)


def plan_scope(request: ScopeRequest, *, source: Site, target: Site) -> ScopePlanned | ScopeEnded:
    """Plan all selected streams. Return ScopeEnded if nothing is left to copy.

    Raises:
        SluiceError: as `resolve_scope`.
    """
    refuse_unverified_move(move=request.move, verify=request.verify)
    _refuse_unfollowable(request)
    planner = planner_of(request, source, target)
    try:
        choice = planner.choose(one_store=source[0].uri == target[0].uri)
        tables = planner.tables()
    except ScopeNotFound:
        if not (request.move and planner.moved((), planner.there() or ())):
            raise SourceNotFound(
                f"scope {request.source!r} does not exist in the source store",
                field="spec.source.scope",
            ) from None
        return _planned(planner, source, target)
    there = planner.there()
    if there is None and not request.make_scope:
        raise _no_target_scope(request)
    names = frozenset(there or ())
    fresh, exists = planner.stand(choice.chosen, [one for one in choice.chosen if one[1] in names])
    if exists and request.on_exists == "Fail":
        raise planner.exist(exists)
    if request.move:
        planner.moved(choice.chosen, there or ())
    planner.bind(fresh)
    skipped = selection.left_out(dict.fromkeys((one.stream for one in exists), Why.EXISTS))
    left_out = selection.joined(choice.left_out, skipped)
    return _planned(planner, source, target, left_out=left_out, tables=tables)


def _refuse_unfollowable(request: ScopeRequest) -> None:
    """Raise InvalidSpec for a request to follow what has an end, or is not compared."""
    if not request.follow:
        return
    wrong = (
        (request.restore is not None, "spec.source.archive", "a scope, not archives"),
        (request.archive is not None, "spec.target.archive", "into a scope, not into archives"),
        (request.on_exists == "Append", "spec.onExists", "into streams of its own"),
        (request.move, "spec.sourceOnComplete", "sources that are retained"),
        (not request.verify, "spec.mode", "sources only behind bytes that are verified"),
    )
    for is_wrong, field, what in wrong:
        if is_wrong:
            raise InvalidSpec(
                f"a copy of a scope follows {what}",
                field=field,
                remedy="Change the field, or make a copy that does not follow its sources.",
            )
    refuse_past_end(request.stop_time)


def _no_target_scope(request: ScopeRequest) -> TargetScopeNotFound:
    return TargetScopeNotFound(
        f"scope {request.target!r} does not exist in the target store",
        field="spec.target.scope",
        remedy="Make the scope first, or take scopePolicy: CreateIfAbsent.",
    )


def planner_of(
    request: ScopeRequest, source: Site, target: Site, *, earlier: ScopePlan | None = None
) -> ScopePlanner:
    """Return the planner for a scope's copy between two places.

    Args:
        request: the copy.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
        earlier: the plan of the run before; a restore stays with what it has chosen.

    Raises:
        InvalidSpec: a place is not of the kind that the request names, both places hold archives,
            or archives are to be moved.
    """
    (address, origin), (_, goal) = source, target
    if isinstance(origin, ArchiveRoot) != (request.restore is not None):
        raise wrong_kind(request.source, "spec.source", archives=request.restore is not None)
    if isinstance(goal, ArchiveRoot) != (request.archive is not None):
        raise wrong_kind(request.target, "spec.target", archives=request.archive is not None)
    if isinstance(origin, ArchiveRoot):
        if isinstance(goal, ArchiveRoot):
            raise InvalidSpec(
                "archives are not copied to archives",
                field="spec.target.archive",
                remedy="Mirror the bucket or the directory with its own tools, or restore into a "
                "scope.",
            )
        if request.move:
            raise InvalidSpec(
                "archives are not moved: their runs are let go by their retention",
                field="spec.sourceOnComplete",
                remedy="Take sourceOnComplete: Retain.",
            )
        assert request.restore is not None  # noqa: S101 - for the type checker
        return RestorePlanner(request, request.restore, origin, goal, earlier=earlier)
    if isinstance(goal, ArchiveRoot):
        return ArchivePlanner(request, origin, goal, address.uri)
    return CopyPlanner(request, origin, goal)


def next_run(
    request: ScopeRequest, ended: ScopeEnded, *, source: Site, target: Site
) -> ScopePlanned | ScopeEnded:
    """Plan the streams that a run did not copy: with new bounds, or as their journals have them.

    A restore stays with the run of the scope that it has chosen: its streams are of one time. If it
    has chosen none, as the folder had no records, it stays without one.

    Args:
        request: the copy.
        ended: the run that is over.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
    """
    refuse_unverified_move(move=request.move, verify=request.verify)
    before = ended.plan.scope
    planner = planner_of(request, source, target, earlier=before)
    planner.settled = [one for one in ended.results if one.state is StreamState.COPIED]
    planner.known = {one.copy_id: one for one in ended.plan.streams}
    chosen = [
        selection.Chosen(one.stream, one.target)
        for one in ended.results
        if one.state is not StreamState.COPIED
    ]
    there = planner.there()
    fresh, exists = planner.stand(chosen, chosen if there is not None else [])
    skipped: tuple[LeftOut, ...] = ()
    if request.on_exists == "Skip":
        skipped = selection.left_out(dict.fromkeys((one.stream for one in exists), Why.EXISTS))
    else:
        for one in exists:
            planner.fail(one, planner.exist([one]))
    planner.look_at([one.stream for one, _ in fresh])
    planner.bind(fresh)
    return _planned(
        planner,
        source,
        target,
        left_out=selection.joined(before.left_out, skipped),
        tables=before.tables,
        run=run_of(ended.plan) + 1,
    )


def _planned(
    planner: ScopePlanner,
    source: Site,
    target: Site,
    *,
    left_out: Sequence[LeftOut] = (),
    tables: Sequence[str] = (),
    run: int = 1,
) -> ScopePlanned | ScopeEnded:
    """Return the planner's findings as an answer, with the largest streams first."""
    request, (begin, end) = planner.request, planner.taken
    items = sorted(planner.plans, key=lambda one: (-one.bytes, one.origin))
    settled = tuple(sorted(planner.settled, key=lambda one: one.stream))
    plan = ScopeCopyPlan(
        sources=(source[0],),
        target=target[0],
        streams=tuple(one for one in items if isinstance(one, StreamPlan)),
        runs=tuple(one for one in items if isinstance(one, ArchivePlan)),
        scope=ScopePlan(
            scope_id=request.scope_id,
            source=request.source,
            target=request.target,
            make_scope=request.make_scope,
            run=run,
            begin=begin,
            end=end,
            left_out=tuple(left_out),
            tables=tuple(tables[:MOST_NAMES]),
            settled=settled,
            move=request.move,
            restored=planner.restored,
            series=request.series,
            following=request if request.follow else None,
        ),
    )
    if items or (request.follow and run == 1):
        return ScopePlanned(plan=plan)
    # No driver will come, since there is nothing to do.
    return told_kept(ScopeEnded(plan=plan, results=settled), source[1], coming=False)
