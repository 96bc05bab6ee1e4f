from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sluice.core.claims.claim import MARKER, SCOPE_MARKER, Claimant
from sluice.core.copy import planner
from sluice.core.scope.request import Rename, Selector
from sluice.core.scope.scope import LeftOut, Why
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.engine.copy.planning import resolve
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.planners import base as scope_planner_module
from sluice.engine.scope.planners import copies as copy_planner
from sluice.engine.scope.planning import resolve_scope
from sluice.errors import (
    InvalidSpec,
    PermissionDenied,
    PlanTooLarge,
    SourceNotFound,
    StoreUnavailable,
    TargetScopeNotFound,
)
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore
from support.engine.scope_requests import (
    COPIED,
    REQUEST,
    drop,
    in_source,
    names_of,
    one_of,
    plan_of,
    put,
    resolved,
    run,
    settled_of,
    states_of,
    tag,
    wanted,
)
from support.engine.sources import put_scaled_source, put_source
from support.model import Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.scope.request import ScopeRequest
    from sluice.core.scope.scope import ScopePlan
    from sluice.errors import SluiceError
    from sluice.stores.reading import Stream

UID = "1f0e9c1a-0000-4000-8000-000000000001"
OWNER = Claimant(cluster="c", namespace="n", name="e", uid=UID, created=0)


@pytest.fixture
def world() -> World:
    """Return a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def scope_of(world: World, request: ScopeRequest = REQUEST) -> ScopePlan:
    """Return the plan's part about the whole scope."""
    plan = plan_of(world, request)
    assert plan.scope is not None
    return plan.scope


def left_of(world: World, **changes: object) -> dict[str, tuple[str, ...]]:
    """Return the streams that are left out, by reason."""
    return {one.why: one.streams for one in scope_of(world, wanted(**changes)).left_out}


def test_every_stream_is_planned_as_it_would_be_alone() -> None:
    """It has the bounds, configuration and parts of a copy of its own. Large streams come first.

    This holds however it was scaled and truncated.
    """
    world = World()
    put_source(world, [40, 40], [9], name=in_source("big"))
    put_source(world, [5], name=in_source("small"))
    put_source(world, [], name=in_source("empty"))
    put_scaled_source(world, [[5], [6]], [("split", 0), ("truncate", 0)], name=in_source("cut"))
    put_scaled_source(world, [[7], [8]], [("split", 0), ("merge", 1)], name=in_source("scaled"))
    world.segments[segment_name(in_source("small"), 0)].start = 13
    plan = plan_of(world)
    store = ModelStore(world)
    for (name, target), stream in zip(names_of(plan), plan.streams, strict=True):
        assert name == target
        assert stream == resolve(one_of(name), [store], store).plan
    sizes = [stream.bytes for stream in plan.streams]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 5


def test_the_whole_is_told(world: World) -> None:
    """The plan has the copy id, both scopes, the time of its bounds, and the streams left out."""
    world.tables |= {StreamName(scope="in", stream="kv"), StreamName(scope="out", stream="other")}
    before = time.time_ns() // 1_000_000
    scope = scope_of(world, wanted(make_scope=True, include=(Selector(type="Exact", value="a"),)))
    after = time.time_ns() // 1_000_000
    assert (scope.scope_id, scope.source, scope.target) == (REQUEST.scope_id, "in", "out")
    assert (scope.make_scope, scope.run, scope.move) == (True, 1, False)
    assert before <= scope.begin <= scope.end <= after
    assert scope.left_out == (LeftOut(why=Why.NOT_SELECTED, count=2, streams=("b", "c")),)
    assert scope.tables == ("kv",)


def test_the_moments_of_the_first_and_the_last_bounds_are_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time between them shows how far the bounds are apart."""
    moments = iter(range(1000, 2000, 10))
    monkeypatch.setattr(copy_planner, "_TOGETHER", 1)
    monkeypatch.setattr(scope_planner_module, "_now", lambda: next(moments))
    scope = scope_of(world)
    assert (scope.begin, scope.end) == (1000, 1050)


def test_a_stream_takes_few_calls() -> None:
    """It takes one call by itself and two shared calls, and two more to count events."""
    for sizes, expected in (((), 2), ((5,), 3)):
        world, calls = World(), Counter[str]()

        def gate(what: str, calls: Counter[str] = calls) -> Fate:
            calls[what.split(maxsplit=1)[0]] += 1
            return Fate.DONE

        put(world, *(f"s{number}" for number in range(200)), sizes=sizes)
        plan = plan_of(world, store=SharedStore(world, gate))
        assert len(plan.streams) == 200
        assert calls["describe"] == 200
        batches = -(-200 // 64)
        assert calls["infos"] + calls["attributes"] == expected * batches + 1
        assert sum(calls.values()) < 200 + (expected + 3) * batches


def test_small_streams_are_not_divided_for_the_sake_of_tasks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All streams count together for the division of work. A big stream is divided as usual."""
    monkeypatch.setattr(planner, "LEAST_PART_BYTES", 16)
    monkeypatch.setattr(planner, "CHUNK", 16)
    put_source(world, [300], name=in_source("big"))
    parts = {
        name: [len(segment.parts) for segment in stream.segments]
        for (name, _), stream in zip(
            names_of(plan_of(world, wanted(tasks=2))),
            plan_of(world, wanted(tasks=2)).streams,
            strict=True,
        )
    }
    assert parts == {"big": [4], "a": [1], "b": [1], "c": [1]}


def test_a_stream_that_is_truncated_meanwhile_is_bound_by_itself(world: World) -> None:
    """It gets its present bounds, and other streams are not checked again."""
    name = in_source("twice")
    put_scaled_source(world, [[7], [8]], [("split", 0)], name=name)

    def gate(what: str) -> Fate:
        if what.startswith("infos") and len(world.streams[name].made) > 1:
            world.truncate(name)
        return Fate.DONE

    found = resolve_changing(world, gate)
    assert isinstance(found, Planned)
    twice = next(one for one in found.plan.streams if one.target.stream == "twice")
    assert [one.id for one in twice.segments] == [one.id for one in world.streams[name].segments]
    assert len(found.plan.streams) == 4


def resolve_changing(
    world: World, gate: Callable[[str], Fate], request: ScopeRequest = REQUEST
) -> Planned | ScopeEnded:
    """Resolve the copy while other clients change the stores."""
    site = (ADDRESS, SharedStore(world, gate))
    return resolve_scope(request, source=site, target=site)


@pytest.mark.parametrize("call", ["describe", "infos"])
def test_a_stream_that_is_deleted_meanwhile_fails_and_the_others_are_planned(
    world: World, call: str
) -> None:
    """It may be gone before its description or before its bounds are taken."""
    looked = [False]

    def gate(what: str) -> Fate:
        if looked[0] and what.startswith(call) and in_source("b") in world.streams:
            drop(world, in_source("b"))
        looked[0] |= what.startswith("list_key_value_tables" if call == "infos" else "list")
        return Fate.DONE

    found = resolve_changing(world, gate)
    assert isinstance(found, Planned)
    assert names_of(found.plan) == [("a", "a"), ("c", "c")]
    assert settled_of(found.plan) == {"b": "SourceNotFound"}


def test_a_stream_that_another_copy_is_making_is_no_source(world: World) -> None:
    """It fails by its name. Once it is whole or live, it is an ordinary stream."""
    tag(world, in_source("b"), *identity.owner_tags("cd" * 16))
    plan = plan_of(world)
    assert [name for name, _ in names_of(plan)] == ["a", "c"]
    assert settled_of(plan) == {"b": "StoreBusy"}
    assert plan.scope is not None
    assert plan.scope.settled[0].trouble is not None
    assert plan.scope.settled[0].trouble.field is None
    for mark in (f"{identity.TAG_COMPLETE}x", f"{identity.TAG_FOLLOWING}{'cd' * 16}"):
        tag(world, in_source("b"), *identity.owner_tags("cd" * 16), mark)
        assert len(plan_of(world).streams) == 3


def test_a_stream_that_nobody_may_read_fails_alone(world: World) -> None:
    """The failure has the store's refusal and the stream's name."""

    class Guarded(SharedStore):
        def describe(self, name: StreamName) -> Stream | None:
            if name == in_source("c"):
                raise PermissionDenied("not this one")
            return super().describe(name)

    plan = plan_of(world, store=Guarded(world))
    assert [name for name, _ in names_of(plan)] == ["a", "b"]
    assert settled_of(plan) == {"c": "PermissionDenied"}


def test_a_store_that_is_away_is_the_trouble_of_all(world: World) -> None:
    """The store is not asked about every stream."""
    put(world, *(f"s{number}" for number in range(400)))
    asked = [0]

    def gate(what: str) -> Fate:
        asked[0] += what.startswith("describe")
        return Fate.REQUEST_LOST if what.startswith("describe") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        resolve_changing(world, gate)
    assert asked[0] < 400


def test_too_many_streams_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal comes before any stream is described."""
    monkeypatch.setattr(scope_planner_module, "MOST_STREAMS", 2)
    with pytest.raises(PlanTooLarge, match="3 streams are selected") as caught:
        plan_of(world)
    assert caught.value.field == "spec.streams"
    assert len(plan_of(world, wanted(exclude=(Selector(type="Exact", value="a"),))).streams) == 2


def test_nothing_selected_is_nothing_to_do(world: World) -> None:
    """The copy has ended at once. Its plan names the streams left out."""
    found = resolved(world, wanted(include=(Selector(type="Tag", value="none"),)))
    assert isinstance(found, ScopeEnded)
    assert found.results == ()
    assert found.plan.scope is not None
    assert found.plan.scope.left_out[0].count == 3


def test_streams_are_selected_by_their_tags(world: World) -> None:
    """The tags are those in the store."""
    tag(world, in_source("b"), "color=red", "x")
    selectors = (Selector(type="Tag", value="color=red"), Selector(type="Tag", value="no"))
    assert names_of(plan_of(world, wanted(include=selectors))) == [("b", "b")]


def test_targets_are_renamed(world: World) -> None:
    """The plan's targets have the new names, and the copy's identity has the source's name."""
    plan = plan_of(world, wanted(rename=(Rename(from_prefix="a", to_prefix="x"),)))
    assert names_of(plan) == [("a", "x"), ("b", "b"), ("c", "c")]
    assert plan.streams[0].copy_id == identity.stream_copy_id(REQUEST.scope_id, "a")


def test_a_move_without_verification_is_refused(world: World) -> None:
    """Its sources would be deleted."""
    with pytest.raises(InvalidSpec) as caught:
        plan_of(world, wanted(move=True, verify=False))
    assert caught.value.field == "spec.sourceOnComplete"


@pytest.mark.parametrize(
    ("scope", "error", "field"),
    [
        ("in", SourceNotFound, "spec.source.scope"),
        ("out", TargetScopeNotFound, "spec.target.scope"),
    ],
)
def test_scopes_have_to_be_there(
    world: World, scope: str, error: type[SluiceError], field: str
) -> None:
    """A target scope that the copy may make need not exist: the driver makes it."""
    world.scopes.discard(scope)
    with pytest.raises(error) as caught:
        plan_of(world)
    assert caught.value.field == field
    if scope == "out":
        assert len(plan_of(world, wanted(make_scope=True)).streams) == 3


# -- streams that are left out


def test_ephemeral_streams_are_left_out_unless_they_are_wanted(world: World) -> None:
    """Their tags identify them, or a prefix with a marker."""
    tag(world, in_source("a"), *OWNER.tags())
    put(world, "tmp-1", "tmp-2", f"{MARKER}{UID}", SCOPE_MARKER)
    tag(world, in_source(f"{MARKER}{UID}"), *OWNER.tags(), "sluice.dev/prefix=tmp-")
    left = left_of(world)
    assert left[Why.EPHEMERAL] == ("a", "tmp-1", "tmp-2")
    assert left[Why.INTERNAL] == (f"{MARKER}{UID}", SCOPE_MARKER)
    assert Why.EPHEMERAL not in left_of(world, ephemeral=True)
    assert len(plan_of(world, wanted(ephemeral=True)).streams) == 5


def test_an_ephemeral_stream_stands_in_nobodys_way(world: World) -> None:
    """A target that only such a stream would share is no collision."""
    put(world, "tmp-a")
    renaming = (Rename(from_prefix="tmp-", to_prefix=""),)
    with pytest.raises(InvalidSpec, match="a and tmp-a would both be copied to a"):
        plan_of(world, wanted(rename=renaming))
    tag(world, in_source("tmp-a"), *OWNER.tags())
    assert len(plan_of(world, wanted(rename=renaming)).streams) == 3


def test_what_this_copy_made_in_the_scope_that_it_copies_is_not_copied(world: World) -> None:
    """A scope that is copied into itself does not grow with every look."""
    request = wanted(target="in", rename=(Rename(from_prefix="", to_prefix="new-"),))
    assert run(world, request).counts.copied == 3
    log = ScopeLog(ModelStore(world), REQUEST.scope_id, "in")
    assert log.load() is not None
    log.delete()
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == {"a": COPIED, "b": COPIED, "c": COPIED}
    assert found.plan.scope is not None
    assert found.plan.scope.left_out == (
        LeftOut(why=Why.OWN, count=3, streams=("new-a", "new-b", "new-c")),
    )


def test_a_stream_is_not_copied_to_itself(world: World) -> None:
    """This is so within one store. Another store may have a scope of that name."""
    request = wanted(target="in", rename=(Rename(from_prefix="a", to_prefix="x"),))
    with pytest.raises(InvalidSpec, match="in/b would be copied to itself"):
        plan_of(world, request)
    other = World()
    there = (StoreAddress(uri="tcp://there:1"), SharedStore(other))
    plan = plan_of(world, request, target=there)
    assert (plan.sources, plan.target) == ((ADDRESS,), there[0])
    assert len(plan.streams) == 3
