"""Planning a scope's copy: what is to be done about it, by what the stores hold.

The log in the target store decides, if there is one. Otherwise all streams are planned together:
first they are described, then it is looked which targets are there, and the bounds come last, so
that they are of one short time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluice.core import identity, selection
from sluice.core.claim import is_ephemeral
from sluice.core.plan import Plan
from sluice.core.reconcile.world import Planned, ScopeEnded
from sluice.core.scope import MOST_NAMES, MOST_STREAMS, ScopePlan, StreamState, Why
from sluice.core.scope_log import run_of
from sluice.engine import pool, scope_moving, whose
from sluice.engine.planning import refuse_unverified_move
from sluice.engine.scope_bounds import ScopePlanner
from sluice.engine.scope_log import ScopeLog
from sluice.errors import (
    PlanTooLarge,
    ScopeNotFound,
    SourceNotFound,
    TargetExists,
    TargetScopeNotFound,
)
from sluice.stores.base import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluice.core.model import StoreAddress
    from sluice.core.scope import LeftOut
    from sluice.core.scope_log import ScopeState
    from sluice.core.scope_request import ScopeRequest
    from sluice.core.selection import Choice, Chosen
    from sluice.engine.scope_bounds import Seen
    from sluice.stores.base import Store

    Site = tuple[StoreAddress, Store]
    """A store and its address."""

_FEW: Final = 5
"""Names in a message; the plan and the status have more."""


def resolve_scope(
    request: ScopeRequest,
    *,
    source: Site,
    target: Site,
    known: Plan | None = None,
    again: bool = False,
) -> Planned | ScopeEnded:
    """What there is to do of a scope's copy, or what came of it as its drivers say.

    Nothing is changed.

    Args:
        request: what is wanted.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
        known: a plan that was written down for it; it holds until a driver has begun another one.
        again: whether what failed or was stopped is to be tried again.

    Raises:
        SourceNotFound, TargetScopeNotFound: there is no such scope.
        TargetExists: there are targets that are not ours, and `onExists` is Fail.
        InvalidSpec, PlanTooLarge: what is selected cannot be copied in this way.
        BackendError, JournalDamaged: a store did not answer, or its log cannot be read.
    """
    return answer(
        request, source=source, target=target, known=known, again=again, check=lambda ended: ended
    )


def answer(
    request: ScopeRequest,
    *,
    source: Site,
    target: Site,
    known: Plan | None,
    again: bool,
    check: Callable[[ScopeEnded], ScopeEnded],
) -> Planned | ScopeEnded:
    """As `resolve_scope`, where `check` may hold what drivers say against the stores."""
    state = ScopeLog(target[1], request.scope_id, request.target).load()
    if state is not None and not state.is_over:
        return Planned(plan=_at(state.plan, source, target), recorded=True)
    if known is not None and not again and _holds(known, request, source, target, state):
        return Planned(plan=known)
    if state is None:
        return plan_scope(request, source=source, target=target)
    ended = check(ScopeEnded(plan=_at(state.plan, source, target), results=state.streams))
    if again and any(one.state is not StreamState.COPIED for one in ended.results):
        return next_run(request, ended, source=source, target=target)
    return told_kept(ended, source[1], coming=True)


def told_kept(ended: ScopeEnded, source: Store, *, coming: bool) -> ScopeEnded:
    """The same, and why the source's scope is there still, if all of it was moved.

    Args:
        ended: what came of the copy.
        source: the store of the source.
        coming: see `scope_moving.why_kept`.
    """
    if any(one.state is not StreamState.COPIED for one in ended.results):
        return ended
    return replace(ended, kept=scope_moving.why_kept(ended.plan, source, coming=coming))


def _at(plan: Plan, source: Site, target: Site) -> Plan:
    """A recorded plan, with the stores where they are now."""
    return plan.model_copy(update={"sources": (source[0],), "target": target[0]})


def _holds(
    known: Plan, request: ScopeRequest, source: Site, target: Site, state: ScopeState | None
) -> bool:
    """Whether a plan that no driver has recorded yet is the one to carry out."""
    return (
        known.scope is not None
        and known.scope.scope_id == request.scope_id
        and (known.sources, known.target) == ((source[0],), target[0])
        and (state is None or run_of(known) > state.run)
    )


def plan_scope(request: ScopeRequest, *, source: Site, target: Site) -> Planned | ScopeEnded:
    """The plan of everything that is selected; ScopeEnded where all of it is done. See above."""
    refuse_unverified_move(move=request.move, verify=request.verify)
    planner = ScopePlanner(request, source[1], target[1])
    one_store = source[0].uri == target[0].uri
    try:
        choice, seen = _chosen(planner, one_store=one_store)
        tables = source[1].list_key_value_tables(request.source)
    except ScopeNotFound:
        if not (request.move and planner.moved((), _targets(request, target[1]) or ())):
            raise SourceNotFound(
                f"scope {request.source!r} does not exist in the source store",
                field="spec.source.scope",
            ) from None
        return _planned(planner, source, target)
    there = _targets(request, target[1])
    if there is None and not request.make_scope:
        raise TargetScopeNotFound(
            f"scope {request.target!r} does not exist in the target store",
            field="spec.target.scope",
            remedy="Make the scope first, or take scopePolicy: CreateIfAbsent.",
        )
    names = frozenset(there or ())
    fresh, exists = planner.stand(choice.chosen, [one for one in choice.chosen if one[1] in names])
    if exists and request.on_exists == "Fail":
        raise _exist(request, exists)
    if request.move:
        planner.moved(choice.chosen, there or ())
    planner.bind(fresh, seen)
    skipped = selection.left_out(dict.fromkeys((one.stream for one in exists), Why.EXISTS))
    left_out = selection.joined(choice.left_out, skipped)
    return _planned(planner, source, target, left_out=left_out, tables=tables)


def next_run(
    request: ScopeRequest, ended: ScopeEnded, *, source: Site, target: Site
) -> Planned | ScopeEnded:
    """The plan of what is not copied in the end: freshly bound, or as its own journal has it.

    Args:
        request: what is wanted.
        ended: the run that is over.
        source: the store to read from, with its address.
        target: the store to write to, with its address.
    """
    refuse_unverified_move(move=request.move, verify=request.verify)
    planner = ScopePlanner(request, source[1], target[1])
    planner.settled = [one for one in ended.results if one.state is StreamState.COPIED]
    planner.known = {one.copy_id: one for one in ended.plan.streams}
    chosen = [
        selection.Chosen(one.stream, one.target)
        for one in ended.results
        if one.state is not StreamState.COPIED
    ]
    there = _targets(request, target[1])
    fresh, exists = planner.stand(chosen, chosen if there is not None else [])
    skipped: tuple[LeftOut, ...] = ()
    if request.on_exists == "Skip":
        skipped = selection.left_out(dict.fromkeys((one.stream for one in exists), Why.EXISTS))
    else:
        for one in exists:
            planner.fail(one, _exist(request, [one]))
    planner.bind(fresh, planner.describe([one.stream for one, _ in fresh]))
    before = ended.plan.scope
    left_out = () if before is None else before.left_out
    return _planned(
        planner,
        source,
        target,
        left_out=selection.joined(left_out, skipped),
        tables=() if before is None else before.tables,
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
) -> Planned | ScopeEnded:
    """What was found, as an answer: the biggest streams first."""
    request, (begin, end) = planner.request, planner.taken
    streams = sorted(planner.plans, key=lambda one: (-one.bytes, one.origin))
    settled = tuple(sorted(planner.settled, key=lambda one: one.stream))
    plan = Plan(
        sources=(source[0],),
        target=target[0],
        streams=tuple(streams),
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
        ),
    )
    if streams:
        return Planned(plan=plan)
    # No driver has anything to do, and none comes.
    return told_kept(ScopeEnded(plan=plan, results=settled), source[1], coming=False)


def _chosen(planner: ScopePlanner, *, one_store: bool) -> tuple[Choice, Mapping[str, Seen]]:
    """What is chosen of the source's scope, and each of its streams as it is. ScopeNotFound."""
    request, store = planner.request, planner.source
    names = store.list_streams(request.source, internal=True)
    tags = selection.tags_of(request)
    found = pool.each(lambda tag: frozenset(store.list_streams(request.source, tag)), tags)
    tagged = dict(zip(tags, found, strict=True))
    wanted = selection.selected(names, tagged=tagged, request=request)
    left: dict[str, Why] = {}
    if not request.ephemeral:
        prefixes = whose.claimed_prefixes(store, request.source)
        left = dict.fromkeys((n for n in wanted if n.startswith(prefixes)), Why.EPHEMERAL)
    if len(wanted) - len(left) > MOST_STREAMS:
        raise PlanTooLarge(
            f"{len(wanted) - len(left)} streams are selected, and a plan has at most "
            f"{MOST_STREAMS}",
            field="spec.streams",
            remedy="Select a part of them, and copy the others with another ScopeCopy.",
        )
    seen = planner.describe([name for name in wanted if name not in left])
    for name, stream in seen.items():
        own = stream.config.tags if isinstance(stream, Stream) else ()
        if one_store and request.source == request.target and _is_own(name, own, request):
            left[name] = Why.OWN
        elif is_ephemeral(own) and not request.ephemeral:
            left[name] = Why.EPHEMERAL
    choice = selection.choose(names, tagged=tagged, left=left, request=request, one_store=one_store)
    return choice, seen


def _is_own(name: str, tags: tuple[str, ...], request: ScopeRequest) -> bool:
    """Whether a stream is a target that this very copy has made."""
    return any(
        identity.is_ours(tags, identity.stream_copy_id(request.scope_id, origin))
        for origin in selection.origins_of(name, request.rename)
    )


def _targets(request: ScopeRequest, store: Store) -> list[str] | None:
    """The streams in the target's scope; None where there is no such scope."""
    try:
        return store.list_streams(request.target, internal=True)
    except ScopeNotFound:
        return None


def _exist(request: ScopeRequest, exists: Sequence[Chosen]) -> TargetExists:
    """Targets are there that this copy did not make."""
    names = ", ".join(one.target for one in exists[:_FEW])
    more = f" and {len(exists) - _FEW} more" if len(exists) > _FEW else ""
    what = "stream is" if len(exists) == 1 else "streams are"
    return TargetExists(
        f"{len(exists)} {what} in the scope {request.target} already, and this copy did not make "
        f"them: {names}{more}",
        field="spec.onExists",
        remedy="Take onExists: Skip to leave them out or Append to append to them, or rename.",
    )
