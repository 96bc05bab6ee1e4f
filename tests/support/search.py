"""How far tests search by chance: a little way in `make test`, far in `make test-rest`.

What searches is marked `search`, or `hypothesis` by that itself, and runs in both; SLUICE_SEARCH
says how many times as far.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from hypothesis.stateful import RuleBasedStateMachine

FAR: Final = int(os.environ.get("SLUICE_SEARCH", "1"))
"""How many times as far as in `make test`."""

searches = pytest.mark.search
"""Marks a test that goes the farther the more time there is."""

WALKS: Final = 25
"""Walks in one test."""

EXAMPLES: Final = 40
"""Of a test that hypothesis gives them to, where the search is not to be far."""


def run_machine(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Run a state machine.

    Args:
        machine: which.
        examples: how often, where the search is not to be far.
        steps: of each.
    """
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples * FAR,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )


def seeds(usual: int, step: int = 1) -> range:
    """So many seeds, or of those the first of each `step`; more in a far search."""
    return range(0, usual * FAR, step)


def some(step: int) -> int:
    """The distance between those of many alike that are tried: all in a far search."""
    return 1 if FAR > 1 else step
