from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.scope.request import Selector
from sluice.core.scope.scope import StreamState
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned, ScopeEnded, ScopePlanned
from sluice.core.workloads.scope_log import planned_results
from sluice.engine.tasks.limits import Limits
from sluice.errors import (
    JournalDamaged,
    PermissionDenied,
)
from support.engine.scope_drivers import SharedStore, copy_scope
from support.engine.scope_requests import (
    COPIED,
    STOPPED,
    drop,
    forget_log,
    in_source,
    log_of,
    names_of,
    plan_of,
    put,
    put_others,
    resolved,
    run,
    settled_of,
    states_of,
    wanted,
)
from support.model import World, segment_name

if TYPE_CHECKING:
    from sluice.core.scope.request import OnExists


@pytest.fixture
def world() -> World:
    """Return a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def test_a_recorded_plan_wins(world: World) -> None:
    """It holds whatever the scope has now and whatever plan is given. The source is not read."""
    plan = plan_of(world)
    known = plan_of(world, wanted(exclude=(Selector(type="Exact", value="a"),)))
    log_of(world).begin(plan)
    put(world, "d")
    found = resolved(world, known=known)
    assert found == ScopePlanned(plan=plan, recorded=True)
    world.scopes.discard("in")
    assert resolved(world, again=True) == ScopePlanned(plan=plan, recorded=True)
    log = log_of(world)
    log.load()
    log.ended({0: planned_results(plan)[0].model_copy(update={"state": StreamState.COPIED})})
    assert resolved(world) == ScopePlanned(plan=plan, recorded=True)


def test_a_recorded_plan_is_for_the_stores_as_they_are_now(world: World) -> None:
    """A store's address may change while a copy is suspended. The plan's hash stays the same."""
    plan = plan_of(world)
    log_of(world).begin(plan)
    moved = (StoreAddress(uri="tcp://moved:1"), SharedStore(world))
    found = resolved(world, source=moved, target=moved)
    assert (found.plan.sources, found.plan.target) == ((moved[0],), moved[0])
    assert (found.plan.hash, found.plan.streams) == (plan.hash, plan.streams)


def test_a_known_plan_holds_until_it_is_recorded(world: World) -> None:
    """A new plan is made only on request, for other stores, or for another copy."""
    known = plan_of(world)
    put(world, "d")
    found = resolved(world, known=known)
    assert found == Planned(plan=known)
    assert len(plan_of(world, known=known, again=True).streams) == 4
    other = (StoreAddress(uri="tcp://there:1"), SharedStore(world))
    assert len(plan_of(world, known=known, target=other).streams) == 4
    assert len(plan_of(world, wanted(scope_id="00" * 16), known=known).streams) == 4


def test_a_damaged_log_is_refused(world: World) -> None:
    """Without the log, Sluice does not know what drivers have done."""
    log_of(world).begin(plan_of(world))
    world.segments[log_of(world).name].data[9:12] = b"xxx"
    with pytest.raises(JournalDamaged):
        resolved(world)


def failed_once(world: World) -> ScopeEnded:
    """Run a copy of which one stream fails for good."""
    plan = plan_of(world)
    drop(world, in_source("b"))
    report = copy_scope(plan, SharedStore(world))
    assert report.is_over
    found = resolved(world)
    assert isinstance(found, ScopeEnded)
    assert found.results == report.results
    assert (found.plan, found.kept) == (plan, None)
    return found


def test_what_came_of_each_stream_is_told(world: World) -> None:
    """The results are in the plan's order, as the drivers recorded them, without the source."""
    found = failed_once(world)
    assert states_of(found) == {"a": COPIED, "b": "SourceNotFound", "c": COPIED}


def test_what_failed_is_tried_again_when_asked(world: World) -> None:
    """A new run takes the present bounds.

    Copied streams are settled, and no new stream is added.
    """
    before = failed_once(world)
    put(world, "b", "new", sizes=(7, 8))
    found = resolved(world, again=True)
    assert isinstance(found, Planned)
    assert not found.recorded
    assert names_of(found.plan) == [("b", "b")]
    assert found.plan.bytes == 31
    assert settled_of(found.plan) == {"a": COPIED, "c": COPIED}
    assert found.plan.scope is not None
    assert found.plan.scope.run == 2
    assert before.plan.scope is not None
    assert found.plan.scope.left_out == before.plan.scope.left_out
    assert resolved(world, known=found.plan) == Planned(plan=found.plan)
    report = copy_scope(found.plan, SharedStore(world))
    assert states_of(report) == {"a": COPIED, "b": COPIED, "c": COPIED}
    ended = resolved(world, known=found.plan, again=True)
    assert isinstance(ended, ScopeEnded)
    assert ended.results == report.results


def test_what_cannot_be_tried_again_stays_failed(world: World) -> None:
    """No run is needed then."""
    failed_once(world)
    found = resolved(world, again=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == {"a": COPIED, "b": "SourceNotFound", "c": COPIED}


def test_what_was_stopped_is_tried_again_when_asked(world: World) -> None:
    """They are streams that were not begun because another stream had failed."""
    plan = plan_of(world)
    drop(world, in_source("a"))
    limits = Limits(stop_at_failure=True, parallelism=1)
    report = copy_scope(plan, SharedStore(world), limits=limits)
    assert list(states_of(report).values()).count(STOPPED) == 2
    ended = resolved(world)
    assert states_of(ended) == states_of(report)
    put(world, "a")
    again = plan_of(world, again=True)
    assert len(again.streams) == 3
    assert copy_scope(again, SharedStore(world)).counts.copied == 3


@pytest.mark.parametrize(
    ("on_exists", "expected"),
    [("Fail", "TargetExists"), ("Skip", None), ("Append", "Planned")],
)
def test_a_target_that_somebody_made_meanwhile_concerns_that_stream_only(
    world: World, on_exists: OnExists, expected: str | None
) -> None:
    """The other streams are tried again all the same."""
    request = wanted(on_exists=on_exists)
    plan = plan_of(world, request)
    drop(world, in_source("b"))
    drop(world, in_source("c"))
    copy_scope(plan, SharedStore(world))
    put(world, "b", "c")
    put_others(world, "b")
    again = plan_of(world, request, again=True)
    assert again.scope is not None
    planned = {name for name, _ in names_of(again)}
    assert planned == ({"b", "c"} if expected == "Planned" else {"c"})
    assert settled_of(again).get("b") == (expected if on_exists == "Fail" else None)
    assert [one.count for one in again.scope.left_out] == ([1] if on_exists == "Skip" else [])


def test_a_stream_that_was_given_up_goes_on_as_its_journal_has_it(world: World) -> None:
    """Staged bytes are not copied again, though the source has grown."""

    class Refusing(SharedStore):
        def merge(self, target: str, source: str, *args: object, **more: object) -> None:
            if target.startswith("out/b"):
                raise PermissionDenied("not this one")
            super().merge(target, source, *args, **more)  # type: ignore[arg-type]

    plan = plan_of(world)
    report = copy_scope(plan, Refusing(world))
    assert states_of(report)["b"] == "PermissionDenied"
    world.segments[segment_name(in_source("b"), 0)].data += b"more"
    again = plan_of(world, again=True)
    assert again.streams == tuple(one for one in plan.streams if one.target.stream == "b")


# -- moves


def test_a_moved_scope_is_found_moved(world: World) -> None:
    """This holds without its log, its streams and its scope: a repetition does nothing."""
    request = wanted(move=True)
    report = run(world, request)
    assert report.kept is None
    assert "in" not in world.scopes
    ended = resolved(world, request)
    assert isinstance(ended, ScopeEnded)
    assert ended.kept is None
    forget_log(world)
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert {one.stream for one in found.results} == {"a", "b", "c"}
    assert set(states_of(found).values()) == {COPIED}
    world.scopes.add("in")
    put(world, "d")
    plan = plan_of(world, request)
    assert names_of(plan) == [("d", "d")]
    assert settled_of(plan) == {"a": COPIED, "b": COPIED, "c": COPIED}


def test_a_scope_that_is_kept_says_why(world: World) -> None:
    """A later question about the unfinished move gets the same reason."""
    request = wanted(move=True, exclude=(Selector(type="Exact", value="b"),))
    report = run(world, request)
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert found.kept == report.kept == "it has 1 stream (b)"


def test_an_empty_scope_to_which_no_driver_comes_is_not_said_to_be_gone(world: World) -> None:
    """No driver deletes the scope any more, so the answer says that it is empty.

    Its other streams may be gone by now, or the copy found no stream to move.
    """
    request = wanted(move=True, exclude=(Selector(type="Exact", value="b"),))
    run(world, request)
    forget_log(world)
    drop(world, in_source("b"))
    for one in (request, wanted(move=True, scope_id="00" * 16)):
        found = resolved(world, one)
        assert isinstance(found, ScopeEnded)
        assert found.kept is not None
        assert "it is empty, so delete it if it is not needed" in found.kept
    world.scopes.discard("in")
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert found.kept is None
