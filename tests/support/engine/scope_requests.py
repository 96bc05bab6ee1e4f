"""Requests to copy scope `in` of a model store to scope `out`, and the answers to them."""

import copy
from typing import Any

from sluice.core.copy.planner import CopyRequest
from sluice.core.copy.steps import Step
from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import StreamState
from sluice.core.values.model import StreamConfig, StreamName
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.plan import Plan
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.planning import resolve_scope
from sluice.engine.scope.query import abandon_scope, ask_scope
from sluice.engine.scope.report import ScopeReport
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SCOPE_ID, SharedStore, copy_scope
from support.engine.sources import go, put_source
from support.model import ModelStore, World, segment_name

REQUEST = ScopeRequest(scope_id=SCOPE_ID, source="in", target="out")


def wanted(**changes: Any) -> ScopeRequest:
    """Return the request with some fields changed."""
    return REQUEST.model_copy(update=changes)


def in_source(stream: str) -> StreamName:
    """Return the name of a stream in the source's scope."""
    return StreamName(scope="in", stream=stream)


def in_target(stream: str) -> StreamName:
    """Return the name of a stream in the target's scope."""
    return StreamName(scope="out", stream=stream)


def put(world: World, *names: str, sizes: tuple[int, ...] = (5,)) -> None:
    """Put streams of one segment into the source's scope."""
    for number, name in enumerate(names):
        put_source(world, sizes, name=in_source(name), seed=100 * number)


def tag(world: World, name: StreamName, *tags: str) -> None:
    """Give a stream these tags, in place of those it has."""
    world.streams[name].config = world.streams[name].config.model_copy(update={"tags": tags})


def put_others(world: World, *names: str, tags: tuple[str, ...] = ()) -> None:
    """Put another client's streams into the target's scope."""
    for name in names:
        ModelStore(world).create_stream(in_target(name), StreamConfig(tags=tags))


def drop(world: World, name: StreamName) -> None:
    """Delete a stream, as another client does."""
    for segment in world.streams.pop(name).readable:
        world.segments.pop(segment_name(name, segment.id))


def resolved(
    world: World, request: ScopeRequest = REQUEST, store: ModelStore | None = None, **given: Any
) -> Planned | ScopeEnded:
    """Return the answer to a request, and check that asking changes nothing."""
    before = copy.deepcopy((world.scopes, world.streams, world.segments))
    site = (ADDRESS, store or SharedStore(world))
    sites: dict[str, Any] = {"source": site, "target": site} | given
    found = (ask_scope if "known" in sites else resolve_scope)(request, **sites)
    assert (world.scopes, world.streams, world.segments) == before
    return found


def plan_of(world: World, request: ScopeRequest = REQUEST, **given: Any) -> Plan:
    """Return the plan in the answer to a request."""
    found = resolved(world, request, **given)
    assert isinstance(found, Planned)
    return found.plan


def names_of(plan: Plan) -> list[tuple[str, str]]:
    """Return the sources and targets of a plan, in its order."""
    return [(one.sources[0].stream.stream, one.target.stream) for one in plan.streams]


def states_of(found: ScopeEnded | ScopeReport) -> dict[str, str]:
    """Return each stream's state, or its reason if it failed."""
    return {
        one.stream: one.trouble.reason if one.trouble else one.state.value for one in found.results
    }


def settled_of(plan: Plan) -> dict[str, str]:
    """Return the state of each stream outside the plan, or its reason if it failed."""
    assert plan.scope is not None
    return {
        one.stream: one.trouble.reason if one.trouble else one.state.value
        for one in plan.scope.settled
    }


def run(world: World, request: ScopeRequest = REQUEST, **given: Any) -> ScopeReport:
    """Plan and run a copy as drivers do."""
    return copy_scope(plan_of(world, request, **given), SharedStore(world))


def log_of(world: World) -> ScopeLog:
    """Return the copy's log."""
    return ScopeLog(ModelStore(world), SCOPE_ID, "out")


def forget_log(world: World) -> None:
    """Delete the log, as the clean-up at the end does."""
    log = log_of(world)
    log.load()
    log.delete()


def abandoned(
    world: World,
    request: ScopeRequest = REQUEST,
    *,
    known: Plan | None = None,
    source: bool = True,
) -> str:
    """Abandon the copy and return the outcome."""
    store = SharedStore(world)
    return abandon_scope(request, source=store if source else None, target=store, known=known)


def begin(world: World, plan: Plan, name: str, until: type[Step] | None = None) -> StreamCopyWork:
    """Return a driver of one stream of a plan that died before a step of kind `until`."""
    store = ModelStore(world)
    log_of(world).begin(plan)
    place = next(i for i, one in enumerate(plan.streams) if one.target.stream == name)
    driver = StreamCopyWork(plan.streams[place], place, [store], store)
    driver.plan = driver.journal.begin(driver.plan)
    if until is not None:
        go(driver, world, until)
    return driver


def one_of(name: str, request: ScopeRequest = REQUEST) -> CopyRequest:
    """Return the request to copy one stream under its own name."""
    return request.of(name, name)


COPIED = StreamState.COPIED.value
STOPPED = StreamState.STOPPED.value
