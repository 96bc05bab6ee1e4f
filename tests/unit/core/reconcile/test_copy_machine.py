"""`reconcile` against an adversary: crashes, stale looks, two operators, and what people do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from support.copy_machine import CopyMachine, walk
from support.simulated import simulated

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = int(os.environ.get("SLUICE_MACHINE_EXAMPLES", "50"))
WALKS = 8 * EXAMPLES


@pytest.fixture(autouse=True)
def _simulated() -> Iterator[None]:
    """The operator runs at the time and with the engine of the simulation."""
    with simulated():
        yield


def test_a_copy_comes_to_its_end_whatever_happens() -> None:
    """Under crashes, lost calls, stale looks and people, nothing is lost, left or lied about."""
    run_state_machine_as_test(
        CopyMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("first", range(0, WALKS, 50))
def test_a_copy_comes_to_its_end_by_any_way(first: int) -> None:
    """As above, along many ways that are the same in each run; a failure's number is its seed."""
    for seed in range(first, first + 50):
        machine = walk(CopyMachine(), seed)
        machine.teardown()


def test_a_copy_without_an_adversary_is_done() -> None:
    """The simulation itself comes to a success, in a few looks."""
    machine = CopyMachine()
    machine.teardown()
    assert machine.status.attempts == 1
    assert [entry.outcome for entry in machine.status.history] == ["Succeeded"]
