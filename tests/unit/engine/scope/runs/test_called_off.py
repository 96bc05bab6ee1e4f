from collections import Counter
from collections.abc import Callable

import pytest

from sluice.core.scope.scope import StreamResult, StreamState
from sluice.engine.scope.planners.copies import failed
from sluice.engine.scope.query import abandon_scope
from sluice.engine.tasks.limits import Limits
from sluice.errors import SourceNotFound
from support.engine.scope_drivers import (
    MANY,
    InWork,
    SharedStore,
    copy_scope,
    log,
    scope_plan,
    states,
    target_name,
)
from support.engine.scope_requests import REQUEST
from support.model import World

COPIED, FAILED, STOPPED = StreamState.COPIED, StreamState.FAILED, StreamState.STOPPED


class Once(InWork):
    """A listener that calls a function once, when `after` streams have ended."""

    def __init__(self, action: Callable[[], None], after: int) -> None:
        super().__init__()
        self._action = action
        self._left = iter([False] * (after - 1) + [True])

    def ended(self, result: StreamResult) -> None:
        """See ScopeListener."""
        super().ended(result)
        if next(self._left, False):
            self._action()


@pytest.mark.parametrize("after", [1, 5, MANY])
def test_an_abort_beside_a_driver_ends_all_of_it(
    world: World, store: SharedStore, after: int
) -> None:
    """The driver begins no other stream. Neither the log nor staged bytes are left."""
    plan = scope_plan(store, range(MANY))

    def abort() -> None:
        abandon_scope(REQUEST, source=store, target=store, known=None)

    report = copy_scope(plan, store, listener=Once(abort, after), limits=Limits(parallelism=1))
    assert states(report.results) == Counter({COPIED: after, FAILED: MANY - after})
    assert {one.trouble.reason for one in report.results if one.trouble} <= {"CopyAborted"}
    assert len([name for name in world.streams if name.scope == "out"]) == after
    assert world.staging() == []


def test_an_abort_deletes_a_log_that_grows_meanwhile(world: World, store: SharedStore) -> None:
    """Workers record the results of the streams that they have in work, and begin no other."""
    plan = scope_plan(store, range(MANY))
    ended: list[int] = []

    def abort() -> None:
        abandon_scope(REQUEST, source=store, target=store, known=None)
        ended.append(len(listener.results))  # the other workers went on until it was called off

    listener = Once(abort, 5)
    report = copy_scope(plan, store, listener=listener, limits=Limits(parallelism=4))
    assert report.counts.copied <= ended[0] + 3
    assert log(store).load() is None
    assert not [name for name in world.staging() if world.segments[name].data]


def test_a_copy_that_another_driver_stops_is_stopped_here(world: World, store: SharedStore) -> None:
    """This driver begins no other stream, and counts the rest as stopped."""
    plan = scope_plan(store, range(MANY))
    other = log(store)

    def stop() -> None:
        other.load()
        other.call_off()

    report = copy_scope(plan, store, listener=Once(stop, 2), limits=Limits(parallelism=1))
    assert states(report.results) == {COPIED: 2, STOPPED: MANY - 2}
    assert report.trouble is not None
    assert report.trouble.reason == "CopyAborted"
    assert target_name(5) not in world.streams


def test_one_that_cannot_be_planned_is_a_failure_that_stops(
    world: World, store: SharedStore
) -> None:
    """With `stop_at_failure`, no stream is begun after it."""
    error = SourceNotFound("stream in/x does not exist in the source store any more")
    plan = scope_plan(store, range(3), settled=(failed("x", "x", error),))
    report = copy_scope(plan, store, limits=Limits(stop_at_failure=True))
    assert states(report.results) == {FAILED: 1, STOPPED: 3}
    assert report.is_over
    assert target_name(0) not in world.streams
    assert copy_scope(plan, store).results == report.results
