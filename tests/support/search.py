"""The depth of random searches: a little way in `make test`, far in `make test-rest`.

Tests that search have the mark `search`, or `hypothesis`, which Hypothesis sets itself. They run in
both. SLUICE_SEARCH is the factor of the depth.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from hypothesis.stateful import RuleBasedStateMachine

T = TypeVar("T")

FAR: Final = int(os.environ.get("SLUICE_SEARCH", "1"))
"""The depth as a multiple of that in `make test`."""

searches = pytest.mark.search
"""The mark of a test that searches farther with more time."""

WALKS: Final = 10 if FAR > 1 else 5
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


def few(cases: Iterable[object], stay: int | Collection[object]) -> list[Any]:
    """Return cases that are alike as parameters, of which `make test` takes a few.

    Args:
        cases: values of one parameter, or tuples of values.
        stay: the cases of `make test`, or how many of the first ones.
    """
    every = list(cases)
    kept = every[:stay] if isinstance(stay, int) else stay
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in kept else pytest.mark.exhaustive,
        )
        for case in every
    ]


def near(cases: Mapping[str, T], *stay: str) -> dict[str, T]:
    """Return the named cases of many alike; all of them in a far search."""
    return dict(cases) if FAR > 1 else {name: cases[name] for name in stay}


def some(step: int) -> int:
    """Return the distance between the cases to try among many alike: 1 in a far search."""
    return 1 if FAR > 1 else step
