from __future__ import annotations

import pytest

from sluice.core.scope.scope import LeftOut, Why
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import ScopeEnded
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.errors import TargetExists
from support.engine.scope_drivers import SharedStore
from support.engine.scope_requests import (
    COPIED,
    drop,
    forget_log,
    in_source,
    in_target,
    log_of,
    names_of,
    one_of,
    plan_of,
    put,
    put_others,
    resolved,
    run,
    settled_of,
    states_of,
    wanted,
)
from support.model import ModelStore, World, segment_name


@pytest.fixture
def world() -> World:
    """Return a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def test_targets_of_others_are_refused_by_name(world: World) -> None:
    """The refusal names the first targets, and comes before any stream is made."""
    put(world, *(f"s{number}" for number in range(7)))
    put_others(world, *(f"s{number}" for number in range(7)), "unconcerned")
    with pytest.raises(TargetExists, match=r"7 streams .* s0, s1, s2, s3, s4 and 2 more") as caught:
        plan_of(world)
    assert caught.value.field == "spec.onExists"
    drop_many(world, range(1, 7))
    with pytest.raises(TargetExists, match=r"1 stream is .*: s0$"):
        plan_of(world)


def drop_many(world: World, numbers: range) -> None:
    """Delete targets again."""
    for number in numbers:
        drop(world, in_target(f"s{number}"))


def test_targets_of_others_may_be_skipped(world: World) -> None:
    """This includes targets that another copy is making."""
    put_others(world, "a")
    put_others(world, "b", tags=identity.owner_tags("cd" * 16))
    plan = plan_of(world, wanted(on_exists="Skip"))
    assert names_of(plan) == [("c", "c")]
    assert plan.scope is not None
    assert plan.scope.left_out == (LeftOut(why=Why.EXISTS, count=2, streams=("a", "b")),)


def test_targets_of_others_may_be_appended_to(world: World) -> None:
    """An appended stream is settled. A target that another copy is making fails."""
    put_others(world, "a")
    put_others(world, "b", tags=identity.owner_tags("cd" * 16))
    request = wanted(on_exists="Append")
    plan = plan_of(world, request)
    assert [(one.target.stream, one.append) for one in plan.streams] == [("a", True), ("c", False)]
    assert settled_of(plan) == {"b": "StoreBusy"}
    drop(world, in_target("b"))
    live = (*identity.owner_tags("cd" * 16), f"{identity.TAG_FOLLOWING}{'cd' * 16}")
    put_others(world, "b", tags=live)
    assert settled_of(plan_of(world, request)) == {"b": "StoreBusy"}
    drop(world, in_target("b"))
    assert run(world, request).counts.copied == 3
    log_of(world).delete()
    forget_log(world)
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == {"a": COPIED, "b": COPIED, "c": COPIED}
    assert [one.bytes for one in found.results] == [13, 13, 13]


def test_no_stream_is_appended_to_itself(world: World) -> None:
    """If a store has two addresses, each stream of its own scope is a failure."""
    request = wanted(on_exists="Append", target="in")
    elsewhere = StoreAddress(uri="tcp://another.name:9090")
    found = resolved(world, request, target=(elsewhere, SharedStore(world)))
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == dict.fromkeys("abc", "InvalidSpec")


def test_targets_that_this_copy_finished_are_settled(world: World) -> None:
    """The result has their content, and a new stream is planned."""
    report = run(world)
    forget_log(world)
    found = resolved(world)
    assert isinstance(found, ScopeEnded)
    assert found.results == report.results
    put(world, "d")
    plan = plan_of(world)
    assert names_of(plan) == [("d", "d")]
    assert plan.scope is not None
    assert plan.scope.settled == report.results


def test_a_target_that_this_copy_has_begun_keeps_its_plan(world: World) -> None:
    """A journal decides the stream's bounds, even if the log is lost."""
    store = ModelStore(world)
    begun = resolve(one_of("b"), [store], store).plan
    assert begun is not None
    driver = StreamCopyWork(begun, 0, [store], store)
    driver.journal.begin(begun)
    driver.look()
    driver.perform(driver.look())
    world.segments[segment_name(in_source("b"), 0)].data += b"more"
    plan = plan_of(world)
    assert next(one for one in plan.streams if one.target.stream == "b") == begun
