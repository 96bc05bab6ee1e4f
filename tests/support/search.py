"""The depth of random searches: a little way in `make test`, far in `make test-rest`.

Tests that search have the mark `search`, or `hypothesis`, which Hypothesis sets itself. They run in
both. SLUICE_SEARCH is the factor of the depth.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hypothesis.stateful import RuleBasedStateMachine

FAR: Final = int(os.environ.get("SLUICE_SEARCH", "1"))
"""The depth as a multiple of that in `make test`."""

searches = pytest.mark.search
"""The mark of a test that searches farther with more time."""

WALKS: Final = 10
"""Number of walks in one test."""

EXAMPLES: Final = 10
"""Number of examples that hypothesis gives a test in a short search."""


def run_machine(machine: type[RuleBasedStateMachine], *, examples: int, steps: int) -> None:
    """Run a state machine.

    Args:
        machine: the state machine.
        examples: number of runs in a short search.
        steps: steps of each run.
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
    """Return `usual` seeds, or the first of each `step` of them; more in a far search."""
    return range(0, usual * FAR, step)


def few(cases: Iterable[object], count: int) -> list[Any]:
    """Return cases that are alike as parameters, of which `make test` takes the first `count`."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if number < count else pytest.mark.exhaustive,
        )
        for number, case in enumerate(cases)
    ]


def some(step: int) -> int:
    """Return the distance between the cases to try among many alike: 1 in a far search."""
    return 1 if FAR > 1 else step
