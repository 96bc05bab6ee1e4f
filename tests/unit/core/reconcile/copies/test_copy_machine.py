"""`reconcile` against an adversary: crashes, stale looks, two operators, and users' changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.search import WALKS, run_machine, searches, seeds
from support.simulation.copy_machine import CopyMachine, walk
from support.simulation.followed_machine import FollowedMachine
from support.simulation.hooked_machine import HookedMachine
from support.simulation.hosted_machine import PLATFORM, HostedMachine
from support.simulation.simulated import simulated

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    """Run the operator at the time and with the engine of the simulation."""
    with simulated():
        yield


@searches
def test_a_copy_comes_to_its_end_whatever_happens() -> None:
    """Under crashes, lost calls, stale looks and users' changes, no byte is lost or left behind."""
    run_machine(CopyMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_copy_comes_to_its_end_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(CopyMachine(), seed)
        machine.teardown()


def test_a_copy_without_an_adversary_is_done() -> None:
    """The simulation itself reaches a success in a few looks."""
    machine = CopyMachine()
    machine.teardown()
    assert machine.status.attempts == 1
    assert [entry.outcome for entry in machine.status.history] == ["Succeeded"]


@searches
def test_a_copy_in_stores_with_a_foreign_login_comes_to_its_end_whatever_happens() -> None:
    """Its drivers run beside the login, and leave nothing there or in the store."""
    run_machine(HostedMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_copy_in_stores_with_a_foreign_login_comes_to_its_end_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(HostedMachine(), seed)
        machine.teardown()


def test_a_copy_in_stores_with_a_foreign_login_and_without_an_adversary_is_done() -> None:
    """It needs one attempt, as any copy."""
    machine = HostedMachine()
    machine.teardown()
    assert machine.status.attempts == 1
    assert machine.status.driver_namespace == PLATFORM


@searches
def test_a_copy_with_hooks_comes_to_its_end_whatever_happens() -> None:
    """Each hook runs once for a run, and no byte is copied before the hook that precedes it."""
    run_machine(HookedMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_copy_with_hooks_comes_to_its_end_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(HookedMachine(), seed, moves=100)
        machine.teardown()


def test_a_copy_with_hooks_and_without_an_adversary_is_done() -> None:
    """Each hook has run once."""
    machine = HookedMachine()
    machine.teardown()
    assert machine.status.attempts == 1
    assert machine.cluster.succeeded == {"before": 1, "after": 1}


@searches
def test_a_copy_that_follows_is_cut_over_whatever_happens() -> None:
    """Followers are replaced, the request is written, and no live target is ever dropped."""
    run_machine(FollowedMachine, examples=3, steps=50)


@searches
@pytest.mark.parametrize("first", seeds(WALKS, WALKS))
def test_a_copy_that_follows_is_cut_over_by_any_way(first: int) -> None:
    """The same holds along random walks that each run repeats. A failure's number is its seed."""
    for seed in range(first, first + WALKS):
        machine = walk(FollowedMachine(), seed)
        machine.teardown()


def test_a_copy_that_follows_without_an_adversary_is_cut_over() -> None:
    """A driver copies the first leg, and one follower goes on."""
    machine = FollowedMachine()
    machine.teardown()
    assert [entry.outcome for entry in machine.status.history] == ["Succeeded", "Succeeded"]
    assert machine.status.condition("Ready").reason == "CutOver"
