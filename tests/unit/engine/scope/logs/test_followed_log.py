"""The log of a scope whose streams are followed: joining streams, wishes, and the live state."""

import pytest

from sluice.core.scope.request import Rename, Selector
from sluice.core.scope.scope import StreamResult, StreamState
from sluice.core.values.trouble import Trouble
from sluice.core.values.wish import Wish
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.scope_log import ScopeState
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.planning import resolve_scope
from sluice.errors import JournalDamaged, SourceNotFound
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SCOPE_ID, SharedStore, copied
from support.engine.scope_requests import REQUEST, put
from support.following.followed_scopes import FOLLOW, KEY
from support.model import World


def plan_of(world: World, *, follow: bool = True) -> ScopeCopyPlan:
    """Return the plan of all streams in the scope."""
    site = (ADDRESS, SharedStore(world))
    found = resolve_scope(FOLLOW if follow else REQUEST, source=site, target=site)
    return found.plan


def alone(plan: ScopeCopyPlan, stream: str, *settled: StreamResult) -> ScopeCopyPlan:
    """Return the plan of one stream, with these results of other streams."""
    streams = tuple(one for one in plan.streams if one.name == stream)
    scope = plan.scope.model_copy(update={"settled": settled})
    return plan.model_copy(update={"streams": streams, "scope": scope})


def failed(stream: str) -> StreamResult:
    """Return the result of a stream that cannot be copied."""
    trouble = Trouble.of(SourceNotFound("it is gone"))
    return StreamResult(stream=stream, target=stream, state=StreamState.FAILED, trouble=trouble)


@pytest.fixture
def world() -> World:
    """Return a world with three streams in the source's scope."""
    made = World()
    put(made, "a", "b", "c")
    return made


def log_of(world: World) -> ScopeLog:
    """Return a driver's view of the log."""
    store = SharedStore(world)
    return ScopeLog(store, SCOPE_ID, "out", source="in", move=False, following=FOLLOW)


def loaded(world: World) -> ScopeState:
    """Return the present state in the log."""
    state = log_of(world).load()
    assert state is not None
    return state


def test_of_two_drivers_that_have_a_stream_join_the_first_decides(world: World) -> None:
    """The second driver gets the plan of the first. Each stream has one place, also in results."""
    whole = plan_of(world)
    one, other = log_of(world), log_of(world)
    one.begin(alone(whole, "a"))
    other.begin(alone(whole, "a"))
    first = one.join(alone(whole, "b"), 1)
    second = other.join(alone(whole, "b"), 1)
    assert [item.name for item in first.items] == [item.name for item in second.items] == ["a", "b"]
    other.join(alone(whole, "c"), 2)
    one.load()
    one.ended({2: copied(2)})
    state = loaded(world)
    assert [item.name for item in state.plan.items] == ["a", "b", "c"]
    assert set(state.results) == {2}
    assert not state.is_over


def test_a_stream_without_a_plan_joins_with_its_result(world: World) -> None:
    """If two drivers find the same stream, the log names it once."""
    whole = plan_of(world)
    one, other = log_of(world), log_of(world)
    one.begin(alone(whole, "a"))
    other.begin(alone(whole, "a"))
    one.join(alone(whole, "", failed("x")), 1)
    other.join(alone(whole, "", failed("x")), 1)
    state = loaded(world)
    assert [result.stream for result in state.streams] == ["a", "x"]
    assert state.counts.failed == 1


def test_nobody_joins_what_is_over(world: World) -> None:
    """All streams have ended, so the log takes neither streams nor wishes."""
    whole = plan_of(world)
    log = log_of(world)
    log.begin(alone(whole, "a"))
    log.ended({0: copied(0)})
    assert [item.name for item in log.join(alone(whole, "b"), 1).items] == ["a"]
    assert loaded(world).is_over
    assert not log.wish(Wish(cutover="Drain"))


def test_nobody_joins_a_copy_that_follows_none(world: World) -> None:
    """A record of a stream that joins such a copy counts as damage."""
    whole = plan_of(world, follow=False)
    log = log_of(world)
    log.begin(alone(whole, "a"))
    with pytest.raises(JournalDamaged):
        log.join(alone(whole, "b"), 1)
    with pytest.raises(JournalDamaged):
        log_of(world).load()


def test_a_plan_by_which_other_streams_would_join_is_not_believed(world: World) -> None:
    """It could read another scope or other streams, rename targets, or delete sources."""
    whole = plan_of(world)
    chosen = (Selector(type="Exact", value="secret"),)
    for changes in (
        {"source": "other"},
        {"move": True},
        {"scope_id": "11" * 16},
        {"include": chosen},
        {"rename": (Rename(from_prefix="a", to_prefix="b"),)},
    ):
        request = FOLLOW.model_copy(update=changes)
        scope = whole.scope.model_copy(update={"following": request})
        forged = whole.model_copy(update={"scope": scope})
        with pytest.raises(JournalDamaged, match="another copy"):
            log_of(world).begin(forged)
        with pytest.raises(JournalDamaged, match="another copy"):
            log_of(world).load()
        log_of(world).discard()


def test_only_the_owner_can_wish_that_sources_are_sealed(world: World) -> None:
    """Another key does not count.

    Neither does a consent from before the last change of the wish.
    """
    log = log_of(world)
    log.begin(plan_of(world))
    seal = Wish(cutover="SealAndDrain")
    assert log.wish(seal, KEY)
    assert loaded(world).may_seal(KEY)
    assert not loaded(world).may_seal("a guess")
    assert not loaded(world).may_seal("")
    consent = loaded(world).consent
    assert log.wish(Wish(), KEY)
    assert not loaded(world).may_seal(KEY)
    assert log.wish(seal, "a guess")
    assert not loaded(world).may_seal(KEY)
    assert loaded(world).consent != consent
    assert log.wish(seal, KEY)
    assert loaded(world).may_seal(KEY)


def test_a_wish_that_is_written_again_is_not_recorded_again(world: World) -> None:
    """The log does not grow, and the wish still holds."""
    log = log_of(world)
    log.begin(plan_of(world))
    log.wish(Wish(idle_seconds=5), KEY)
    size = log.end
    log.wish(Wish(idle_seconds=5), KEY)
    assert log.end == size
    assert loaded(world).wish == Wish(idle_seconds=5)


def test_that_all_are_followed_is_recorded_once(world: World) -> None:
    """The first driver records it for all drivers. Streams that join later do not change it."""
    whole = plan_of(world)
    one, other = log_of(world), log_of(world)
    one.begin(alone(whole, "a"))
    other.begin(alone(whole, "a"))
    assert not loaded(world).live
    assert one.live()
    assert other.live()
    one.load()
    length = one.end
    one.live()
    assert log_of(world).load() is not None
    assert one.end == length
    one.join(alone(whole, "b", failed("x")), 1)
    state = loaded(world)
    assert state.live
    assert state.joined == 2
    assert state.begun == alone(whole, "a")
    assert [item.name for item in state.plan.items] == ["a", "b"]


def test_a_run_that_was_called_off_is_not_recorded_as_live(world: World) -> None:
    """`live` returns False to a driver that finishes the first leg after the abort."""
    driver, owner = log_of(world), log_of(world)
    driver.begin(alone(plan_of(world), "a"))
    owner.load()
    owner.call_off()
    assert not driver.live()
    assert not loaded(world).live


def test_a_run_that_is_over_is_live_no_more(world: World) -> None:
    """A later run begins with no live state and no joined streams."""
    whole = plan_of(world)
    log = log_of(world)
    log.begin(alone(whole, "a"))
    log.live()
    log.stopped()
    scope = whole.scope.model_copy(update={"run": 2})
    log.begin(whole.model_copy(update={"scope": scope}))
    state = loaded(world)
    assert (state.run, state.live, state.joined) == (2, False, 0)
