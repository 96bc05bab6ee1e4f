import pytest

from sluice.core.copy.planner import SourceRequest
from sluice.core.values import identity
from sluice.core.values.model import StreamConfig, StreamName
from sluice.engine.copy.bounds import COUNT_TRIES
from sluice.engine.copy.planning import Resolved, make_plan, resolve
from sluice.engine.copy.targets import claim
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import SluiceError
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, copy_all, planned, put_source, split
from support.model import EVENT_COUNT, Fate, ModelStore, World, segment_name

FIRST = segment_name(SOURCE, 0)


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments, of 3 and of 0 events."""
    made = World()
    put_source(made, [5, 6, 7], [])
    return made


def test_bounds_identity_and_events_are_taken(world: World) -> None:
    """A plan holds each segment's bounds, creation time and event count from the store."""
    plan = make_plan(REQUEST, [ModelStore(world)])
    assert [(s.start, s.end, s.created, s.events) for s in plan.segments] == [
        (0, 42, 1001, 3),
        (0, 0, 1002, 0),
    ]
    assert plan.config.tags == ("team=a",)


def test_planning_changes_nothing(world: World) -> None:
    """Planning without a copy leaves no trace in the store."""
    before = set(world.segments)
    assert resolve(REQUEST, [ModelStore(world)], ModelStore(world)).recorded is False
    assert set(world.segments) == before
    assert list(world.streams) == [SOURCE]


@pytest.mark.parametrize(
    ("pauses_after", "expected"),
    [(0, 3), (5, 8), (COUNT_TRIES - 1, 22), (COUNT_TRIES, None)],
    ids=["holds still", "after a while", "at the last try", "never in time"],
)
def test_a_live_segment_is_counted_only_if_it_holds_still(
    world: World, pauses_after: int, expected: int | None
) -> None:
    """A count belongs to a bound only if no write came between; otherwise it stays unknown."""
    asked = [0]

    def gate(what: str) -> Fate:
        if what.startswith("attributes") and asked[0] < pauses_after:
            asked[0] += 1
            world.segments[FIRST].data += b"\0" * 10
            world.segments[FIRST].attributes[EVENT_COUNT] += 1
        return Fate.DONE

    plan = make_plan(REQUEST, [ModelStore(world, gate)])
    assert plan.segments[0].events == expected
    assert plan.segments[0].end == 42 + 10 * min(pauses_after, COUNT_TRIES)


def test_events_of_a_truncated_segment_are_unknown(world: World) -> None:
    """The store's count includes truncated events, so the events are counted later."""
    world.segments[FIRST].start = 13
    segment = make_plan(REQUEST, [ModelStore(world)]).segments[0]
    assert (segment.start, segment.events) == (13, None)


def test_a_wholly_truncated_segment_has_no_events(world: World) -> None:
    """Without a byte left the segment has no event, whatever the store counted."""
    world.segments[FIRST].start = 42
    segment = make_plan(REQUEST, [ModelStore(world)]).segments[0]
    assert (segment.start, segment.end, segment.events) == (42, 42, 0)


def test_a_recorded_plan_holds(world: World) -> None:
    """Once a plan is recorded, later looks return it, whatever the source has become."""
    store = ModelStore(world)
    plan = planned(store)
    CopyJournal(store, COPY, TARGET).begin(plan)
    world.segments[FIRST].data += b"more"
    assert resolve(REQUEST, [store], store) == Resolved(plan, recorded=True)
    del world.streams[SOURCE]
    assert resolve(REQUEST, [store], store) == Resolved(plan, recorded=True)


def test_a_recorded_plan_keeps_its_parts(world: World) -> None:
    """With more tasks or longer parts, a copy goes on with its planned parts."""
    store = ModelStore(world)
    plan = split(planned(store))
    assert plan.segments[0].cuts
    CopyJournal(store, COPY, TARGET).begin(plan)
    other = REQUEST.model_copy(update={"tasks": 64, "part_bytes": 1 << 30})
    found = resolve(other, [store], store)
    assert found == Resolved(plan, recorded=True)
    assert found.plan is not None
    assert found.plan.hash == plan.hash


def test_a_complete_copy_needs_no_source(world: World) -> None:
    """A finished copy is found by its target alone, with its digest."""
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store))
    del world.streams[SOURCE]
    assert resolve(REQUEST, [store], store) == Resolved(None, digest=report.digest)


def test_a_copy_that_died_before_tidying_is_gone_on_with(world: World) -> None:
    """A whole target with a journal is unfinished: the journal still has to be deleted."""
    plan = planned(ModelStore(world))
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        return Fate.REQUEST_LOST if what.startswith("delete ") else Fate.DONE

    (report,) = copy_all(ModelStore(world), plan, target=ModelStore(world, gate), patience=0)
    assert report.error is not None
    store = ModelStore(world)
    assert resolve(REQUEST, [store], store) == Resolved(plan, recorded=True)
    assert calls[-1].startswith("delete ")


def _of(scope: str, stream: str) -> dict[str, object]:
    """Return the change that gives a request another source."""
    return {"sources": (SourceRequest(stream=StreamName(scope=scope, stream=stream)),)}


def test_a_scope_is_made_with_the_target_and_not_before(world: World) -> None:
    """Planning makes no scope. The copy first looks for it: not every user may make one."""
    name = StreamName(scope="new", stream="t")
    request = REQUEST.model_copy(update={"target": name, "make_scope": True})
    calls: list[str] = []

    def noted(call: str) -> Fate:
        calls.append(call)
        return Fate.DONE

    store = ModelStore(world, noted)
    plan = planned(store, request)
    assert "new" not in world.scopes
    assert claim(plan, store)
    assert name in world.streams
    assert not claim(plan, store)
    assert [call.split()[0] for call in calls].count("create_scope") == 1


def test_a_plan_without_a_new_scope_has_the_text_of_older_versions(world: World) -> None:
    """So both have the same hash."""
    assert "makeScope" not in planned(ModelStore(world)).model_dump_json(by_alias=True)


@pytest.mark.parametrize(
    ("request_change", "spoil", "reason", "field"),
    [
        (
            {"sources": (SourceRequest(stream=StreamName(scope="in", stream="no")),)},
            None,
            "SourceNotFound",
            "source.stream",
        ),
        (
            {"sources": (SourceRequest(stream=StreamName(scope="no", stream="s")),)},
            None,
            "SourceNotFound",
            "source.stream",
        ),
        (
            {"target": StreamName(scope="no", stream="t")},
            None,
            "TargetScopeNotFound",
            "target.scope",
        ),
        ({}, (), "TargetExists", "target.stream"),
        ({}, identity.owner_tags("cd" * 16), "TargetExists", "target.stream"),
    ],
    ids=["no stream", "no source scope", "no target scope", "foreign target", "another's target"],
)
def test_what_is_not_there_or_not_ours_is_refused(
    world: World,
    request_change: dict[str, StreamName],
    spoil: tuple[str, ...] | None,
    reason: str,
    field: str,
) -> None:
    """The refusal of unknown names and foreign targets names the field, and nothing is made."""
    store = ModelStore(world)
    if spoil is not None:
        store.create_stream(TARGET, StreamConfig(tags=spoil))
    before = set(world.segments)
    with pytest.raises(SluiceError) as caught:
        resolve(REQUEST.model_copy(update=request_change), [store], store)
    assert (caught.value.reason, caught.value.field) == (reason, f"spec.{field}")
    assert set(world.segments) == before


def test_a_source_that_goes_while_it_is_planned_is_refused(world: World) -> None:
    """A stream that is deleted between the two calls of planning has no bounds."""

    def gate(what: str) -> Fate:
        if what.startswith("infos"):
            world.segments.pop(FIRST, None)
        return Fate.DONE

    with pytest.raises(SluiceError) as caught:
        make_plan(REQUEST, [ModelStore(world, gate)])
    assert caught.value.reason == "SourceReplaced"
