from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sluice.core import identity, planner
from sluice.core.claim import MARKER, SCOPE_MARKER, Claimant
from sluice.core.model import StoreAddress, StreamName
from sluice.core.reconcile.scope_results import planned_results
from sluice.core.reconcile.world import Planned, ScopeEnded
from sluice.core.scope import LeftOut, StreamState, Why
from sluice.core.scope_request import Rename, Selector
from sluice.engine import scope_bounds, scope_planning
from sluice.engine.planning import resolve
from sluice.engine.scope_log import ScopeLog
from sluice.engine.scope_planning import resolve_scope
from sluice.engine.stream import Limits, StreamCopy
from sluice.errors import (
    InvalidSpec,
    JournalDamaged,
    PermissionDenied,
    PlanTooLarge,
    SourceNotFound,
    StoreUnavailable,
    TargetExists,
    TargetScopeNotFound,
)
from support.model import Fate, ModelStore, World, segment_name
from support.plans import ADDRESS
from support.scope_drivers import SharedStore, copy_scope
from support.scope_requests import (
    COPIED,
    REQUEST,
    STOPPED,
    drop,
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
    tag,
    wanted,
)
from support.sources import put_scaled_source, put_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.scope import ScopePlan
    from sluice.core.scope_request import OnExists, ScopeRequest
    from sluice.errors import SluiceError
    from sluice.stores.base import Stream

UID = "1f0e9c1a-0000-4000-8000-000000000001"
OWNER = Claimant(cluster="c", namespace="n", name="e", uid=UID, created=0)


@pytest.fixture
def world() -> World:
    """Gives a world with three streams in scope `in`."""
    made = World()
    put(made, "a", "b", "c")
    return made


def scope_of(world: World, request: ScopeRequest = REQUEST) -> ScopePlan:
    """What the plan says of the whole."""
    plan = plan_of(world, request)
    assert plan.scope is not None
    return plan.scope


def left_of(world: World, **changes: object) -> dict[str, tuple[str, ...]]:
    """Which streams are left out, by reason."""
    return {one.why: one.streams for one in scope_of(world, wanted(**changes)).left_out}


# -- what is planned


def test_every_stream_is_planned_as_it_would_be_alone() -> None:
    """With the bounds, configuration and parts of a copy of its own; those with most bytes first.

    However it was scaled and truncated.
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
    """Who it is, from where to where, when the bounds were taken, and what is not copied."""
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
    """What lies between them is how far the bounds are apart."""
    moments = iter(range(1000, 2000, 10))
    monkeypatch.setattr(scope_bounds, "_TOGETHER", 1)
    monkeypatch.setattr(scope_bounds, "_now", lambda: next(moments))
    scope = scope_of(world)
    assert (scope.begin, scope.end) == (1000, 1050)


def test_a_stream_takes_few_calls() -> None:
    """One by itself and two together with others; another two where there are events to count."""
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
    """All streams count together when work is shared out; a big one is divided as it would be."""
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
    """As it is then; that it is looked at again costs the others nothing."""
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
    """What there is to do where others change things while it is looked."""
    site = (ADDRESS, SharedStore(world, gate))
    return resolve_scope(request, source=site, target=site)


@pytest.mark.parametrize("call", ["describe", "infos"])
def test_a_stream_that_is_deleted_meanwhile_fails_and_the_others_are_planned(
    world: World, call: str
) -> None:
    """Whether it is gone when it is described, or when its bounds are taken."""
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
    """It fails by its name; once it is whole it is a stream as others are."""
    tag(world, in_source("b"), *identity.owner_tags("cd" * 16))
    plan = plan_of(world)
    assert [name for name, _ in names_of(plan)] == ["a", "c"]
    assert settled_of(plan) == {"b": "StoreBusy"}
    assert plan.scope is not None
    assert plan.scope.settled[0].trouble is not None
    assert plan.scope.settled[0].trouble.field is None
    tag(world, in_source("b"), *identity.owner_tags("cd" * 16), f"{identity.TAG_COMPLETE}x")
    assert len(plan_of(world).streams) == 3


def test_a_stream_that_nobody_may_read_fails_alone(world: World) -> None:
    """As the store refuses it, by its name."""

    class Guarded(SharedStore):
        def describe(self, name: StreamName) -> Stream | None:
            if name == in_source("c"):
                raise PermissionDenied("not this one")
            return super().describe(name)

    plan = plan_of(world, store=Guarded(world))
    assert [name for name, _ in names_of(plan)] == ["a", "b"]
    assert settled_of(plan) == {"c": "PermissionDenied"}


def test_a_store_that_is_away_is_the_trouble_of_all(world: World) -> None:
    """And it is not asked about every stream."""
    put(world, *(f"s{number}" for number in range(400)))
    asked = [0]

    def gate(what: str) -> Fate:
        asked[0] += what.startswith("describe")
        return Fate.REQUEST_LOST if what.startswith("describe") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        resolve_changing(world, gate)
    assert asked[0] < 400


def test_too_many_streams_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any of them is looked at."""
    monkeypatch.setattr(scope_planning, "MOST_STREAMS", 2)
    with pytest.raises(PlanTooLarge, match="3 streams are selected") as caught:
        plan_of(world)
    assert caught.value.field == "spec.streams"
    assert len(plan_of(world, wanted(exclude=(Selector(type="Exact", value="a"),))).streams) == 2


def test_nothing_selected_is_nothing_to_do(world: World) -> None:
    """It has ended, and says what was left out."""
    found = resolved(world, wanted(include=(Selector(type="Tag", value="none"),)))
    assert isinstance(found, ScopeEnded)
    assert found.results == ()
    assert found.plan.scope is not None
    assert found.plan.scope.left_out[0].count == 3


def test_streams_are_selected_by_their_tags(world: World) -> None:
    """Those that they have in the store."""
    tag(world, in_source("b"), "color=red", "x")
    selectors = (Selector(type="Tag", value="color=red"), Selector(type="Tag", value="no"))
    assert names_of(plan_of(world, wanted(include=selectors))) == [("b", "b")]


def test_targets_are_renamed(world: World) -> None:
    """In the plan's targets; the copy's identity is of the source's name."""
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
    """A target's that is to be made need not; that is for the driver."""
    world.scopes.discard(scope)
    with pytest.raises(error) as caught:
        plan_of(world)
    assert caught.value.field == field
    if scope == "out":
        assert len(plan_of(world, wanted(make_scope=True)).streams) == 3


# -- what is left out


def test_ephemeral_streams_are_left_out_unless_they_are_wanted(world: World) -> None:
    """Known by their tags, or by the prefix that a marker remembers."""
    tag(world, in_source("a"), *OWNER.tags())
    put(world, "tmp-1", "tmp-2", f"{MARKER}{UID}", SCOPE_MARKER)
    tag(world, in_source(f"{MARKER}{UID}"), *OWNER.tags(), "sluice.dev/prefix=tmp-")
    left = left_of(world)
    assert left[Why.EPHEMERAL] == ("a", "tmp-1", "tmp-2")
    assert left[Why.INTERNAL] == (f"{MARKER}{UID}", SCOPE_MARKER)
    assert Why.EPHEMERAL not in left_of(world, ephemeral=True)
    assert len(plan_of(world, wanted(ephemeral=True)).streams) == 5


def test_an_ephemeral_stream_stands_in_nobodys_way(world: World) -> None:
    """A target that only it would share is no collision."""
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
    """Within one store; another store may have a scope of that name."""
    request = wanted(target="in", rename=(Rename(from_prefix="a", to_prefix="x"),))
    with pytest.raises(InvalidSpec, match="in/b would be copied to itself"):
        plan_of(world, request)
    other = World()
    there = (StoreAddress(uri="tcp://there:1"), SharedStore(other))
    plan = plan_of(world, request, target=there)
    assert (plan.sources, plan.target) == ((ADDRESS,), there[0])
    assert len(plan.streams) == 3


# -- targets that are there


def test_targets_of_others_are_refused_by_name(world: World) -> None:
    """All at once, before anything is made; the first ones are named."""
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
    """Also those that another copy is making."""
    put_others(world, "a")
    put_others(world, "b", tags=identity.owner_tags("cd" * 16))
    plan = plan_of(world, wanted(on_exists="Skip"))
    assert names_of(plan) == [("c", "c")]
    assert plan.scope is not None
    assert plan.scope.left_out == (LeftOut(why=Why.EXISTS, count=2, streams=("a", "b")),)


def test_targets_of_others_may_be_appended_to(world: World) -> None:
    """Once: what is appended is settled. The one that another copy makes fails."""
    put_others(world, "a")
    put_others(world, "b", tags=identity.owner_tags("cd" * 16))
    request = wanted(on_exists="Append")
    plan = plan_of(world, request)
    assert [(one.target.stream, one.append) for one in plan.streams] == [("a", True), ("c", False)]
    assert settled_of(plan) == {"b": "StoreBusy"}
    drop(world, in_target("b"))
    assert run(world, request).counts.copied == 3
    log_of(world).delete()
    forget_log(world)
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == {"a": COPIED, "b": COPIED, "c": COPIED}
    assert [one.bytes for one in found.results] == [13, 13, 13]


def forget_log(world: World) -> None:
    """Delete the log, as what tidies up does at the end."""
    log = log_of(world)
    log.load()
    log.delete()


def test_targets_that_this_copy_finished_are_settled(world: World) -> None:
    """With what they hold; a stream that came since is planned."""
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
    """A journal that is there though the log is lost decides the stream's bounds."""
    store = ModelStore(world)
    begun = resolve(one_of("b"), [store], store).plan
    assert begun is not None
    driver = StreamCopy(begun, 0, [store], store)
    driver.ledger.begin(begun)
    driver.look()
    driver.perform(driver.look())
    world.segments[segment_name(in_source("b"), 0)].data += b"more"
    plan = plan_of(world)
    assert next(one for one in plan.streams if one.target.stream == "b") == begun


# -- what is written down


def test_a_recorded_plan_wins(world: World) -> None:
    """Over what the scope has become, over another plan, and without a look at the source."""
    plan = plan_of(world)
    known = plan_of(world, wanted(exclude=(Selector(type="Exact", value="a"),)))
    log_of(world).begin(plan)
    put(world, "d")
    found = resolved(world, known=known)
    assert found == Planned(plan=plan, recorded=True)
    world.scopes.discard("in")
    assert resolved(world, again=True) == Planned(plan=plan, recorded=True)
    log = log_of(world)
    log.load()
    log.ended({0: planned_results(plan)[0].model_copy(update={"state": StreamState.COPIED})})
    assert resolved(world) == Planned(plan=plan, recorded=True)


def test_a_recorded_plan_is_for_the_stores_as_they_are_now(world: World) -> None:
    """An address may change while a copy is suspended; the plan's hash does not."""
    plan = plan_of(world)
    log_of(world).begin(plan)
    moved = (StoreAddress(uri="tcp://moved:1"), SharedStore(world))
    found = resolved(world, source=moved, target=moved)
    assert (found.plan.sources, found.plan.target) == ((moved[0],), moved[0])
    assert (found.plan.hash, found.plan.streams) == (plan.hash, plan.streams)


def test_a_known_plan_holds_until_it_is_recorded(world: World) -> None:
    """It is not planned anew while nobody has begun; only for other stores, or when asked."""
    known = plan_of(world)
    put(world, "d")
    found = resolved(world, known=known)
    assert found == Planned(plan=known)
    assert len(plan_of(world, known=known, again=True).streams) == 4
    other = (StoreAddress(uri="tcp://there:1"), SharedStore(world))
    assert len(plan_of(world, known=known, target=other).streams) == 4
    assert len(plan_of(world, wanted(scope_id="00" * 16), known=known).streams) == 4


def test_a_damaged_log_is_refused(world: World) -> None:
    """Nobody guesses what drivers have done."""
    log_of(world).begin(plan_of(world))
    world.segments[log_of(world).name].data[9:12] = b"xxx"
    with pytest.raises(JournalDamaged):
        resolved(world)


# -- once it is over


def failed_once(world: World) -> ScopeEnded:
    """A copy of which one stream failed for good."""
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
    """In the plan's order, as the drivers wrote it down; the source is not needed."""
    found = failed_once(world)
    assert states_of(found) == {"a": COPIED, "b": "SourceReplaced", "c": COPIED} or states_of(
        found
    ) == {"a": COPIED, "b": "SourceNotFound", "c": COPIED}


def test_what_failed_is_tried_again_when_asked(world: World) -> None:
    """In a run of its own with bounds of now; what is copied is settled, and nothing new comes."""
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
    """There is nothing to run then."""
    failed_once(world)
    found = resolved(world, again=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == {"a": COPIED, "b": "SourceNotFound", "c": COPIED}


def test_what_was_stopped_is_tried_again_when_asked(world: World) -> None:
    """Streams that were not begun since another one had failed."""
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
    """When it is tried again the others are tried all the same."""
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
    """What is staged is not copied again, though the source has grown."""

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
    """Though its log is gone, the streams, and the scope: applied again it does nothing."""
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
    """Whoever asks after a move that left something over is told what."""
    request = wanted(move=True, exclude=(Selector(type="Exact", value="b"),))
    report = run(world, request)
    found = resolved(world, request)
    assert isinstance(found, ScopeEnded)
    assert found.kept == report.kept == "the scope in is kept: it has 1 stream (b)"
