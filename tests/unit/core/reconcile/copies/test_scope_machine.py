"""`reconcile` of a scope's copy against the same adversary, with changing streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.search import WALKS, run_machine, searches, seeds
from support.simulation.copy_machine import walk
from support.simulation.followed_scopes import FollowedScopeMachine
from support.simulation.scheduled_scopes import ScheduledMachine
from support.simulation.scope_machine import ScopeMachine
from support.simulation.simulated import simulated
from support.simulation.unseen_scopes import UnseenMachine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    """Run the operator at the time and with the engine of the simulation."""
    with simulated():
        yield


@searches
def test_a_scope_comes_to_its_end_whatever_happens() -> None:
    """Under crashes, lost calls and failing streams, no byte is lost or left behind."""
    run_machine(ScopeMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_scope_comes_to_its_end_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(ScopeMachine(), seed)
        machine.teardown()


def test_a_scope_without_an_adversary_is_done() -> None:
    """The simulation itself reaches a success in a few looks."""
    machine = ScopeMachine()
    machine.teardown()
    assert machine.status.attempts == 1
    assert [entry.outcome for entry in machine.status.history] == ["Succeeded"]
    assert machine.status.streams is not None
    assert machine.status.streams.summary == "3/3"


def test_streams_that_fail_are_copied_in_another_run() -> None:
    """The simulation reaches a partial success, and then a complete one."""
    machine = ScopeMachine()
    for _ in range(6):
        machine.go_on(3, 2)
    assert machine.status.condition("Ready").reason == "PartiallySucceeded"
    machine.teardown()
    assert machine.status.attempts == 2
    assert machine.status.run == 2


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_scope_that_drivers_plan_comes_to_its_end_by_any_way(first: int) -> None:
    """The operator learns all of it from the target's log."""
    for seed in range(first, first + WALKS):
        machine = walk(UnseenMachine(), seed)
        machine.teardown()


def test_streams_that_fail_are_planned_by_the_driver_of_another_run() -> None:
    """The simulation reaches a partial success, and then a complete one."""
    machine = UnseenMachine()
    for _ in range(6):
        machine.go_on(3, 2)
    assert machine.status.condition("Ready").reason == "PartiallySucceeded"
    machine.teardown()
    assert (machine.status.attempts, machine.status.run) == (2, 2)


@searches
def test_a_scope_that_is_followed_is_cut_over_whatever_happens() -> None:
    """Streams join, fail and go, followers are replaced, and no live target is ever dropped."""
    run_machine(FollowedScopeMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_scope_that_is_followed_is_cut_over_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(FollowedScopeMachine(), seed)
        machine.teardown()


def test_a_scope_that_is_followed_without_an_adversary_is_cut_over() -> None:
    """A driver copies the first leg, and one follower goes on with all streams."""
    machine = FollowedScopeMachine()
    machine.teardown()
    assert [entry.outcome for entry in machine.status.history] == ["Succeeded", "Succeeded"]
    assert machine.status.history[0].reason == "CameLive"
    assert machine.status.condition("Ready").reason == "CutOver"
    assert machine.status.streams.summary == "3/3"


def test_a_stream_that_joins_is_followed_and_one_that_fails_stops_no_other() -> None:
    """The status counts them apart, and the copy stays ready."""
    machine = FollowedScopeMachine()
    machine.go_on(3, 3)
    machine.go_on(3, 3)
    machine.come("d", 300)
    machine.outside("there a", on=False)
    for _ in range(4):
        machine.go_on(3, 2)
    assert machine.status.condition("Ready").reason == "Following"
    follow = machine.status.follow
    assert (follow.streams, follow.joined, follow.failed, follow.gone) == (2, 1, 1, 1)
    assert [one.stream for one in machine.status.failed_streams] == ["a", "b"]


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_scope_with_a_schedule_makes_its_runs_by_any_way(first: int) -> None:
    """Runs do not overlap, each is recorded once, and nothing is left between two runs."""
    for seed in range(first, first + WALKS):
        machine = walk(ScheduledMachine(), seed)
        machine.teardown()


def test_a_stream_that_fails_is_archived_by_the_next_run() -> None:
    """The simulation reaches a partial success, and an hour later a complete one."""
    machine = ScheduledMachine()
    machine.wait(3600)
    for _ in range(6):
        machine.go_on(3, 2)
    assert machine.status.condition("Ready").reason == "PartiallySucceeded"
    assert (machine.status.run, machine.status.last_success_time) == (1, None)
    assert not machine.cluster.store.holds_something
    machine.mend()
    machine.wait(3600)
    for _ in range(8):
        machine.go_on(3, 3)
    assert machine.status.condition("Ready").reason == "Succeeded"
    assert machine.status.run == 2
    assert machine.status.last_success_time is not None
