from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from bench.__main__ import expanded
from bench.model import Goal, Measurement
from bench.report import Report

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

GROUPS = {"engine": ["a", "b"], "operator": ["c"]}
FOUND = Measurement("wait_s", (0.3, 0.7, 1 / 3), Goal("<", 0.5), {"asked": 0.1, "done": 0.3})


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return a report with one measurement."""
    monkeypatch.setattr("bench.report.describe_machine", dict)
    found = Report(pairs=1, scale=1)
    found.measurements.append(FOUND)
    return found


def shown(table: Table) -> list[list[str]]:
    """Return the cells of the table as it is printed."""
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]


def test_the_median_is_what_the_goal_is_about() -> None:
    """One slow run of three does not miss the goal; a value at the bound does."""
    assert (FOUND.value, FOUND.met) == (1 / 3, True)
    assert Measurement("wait_s", (0.5,), Goal("<", 0.5)).met is False


def test_seconds_stand_among_the_results(report: Report, tmp_path: Path) -> None:
    """The JSON has a measurement's unit, goal, samples and phases, without rounding."""
    report.write(tmp_path / "latest.json")
    results = json.loads((tmp_path / "latest.json").read_text())["results"]
    assert results == {
        "wait_s": {
            "value": 1 / 3,
            "unit": "s",
            "goal": "< 0.5",
            "met": True,
            "samples": [0.3, 0.7, 1 / 3],
            "base": [],
            "phaseSeconds": {"asked": 0.1, "done": 0.3},
            "counts": {},
        }
    }


def test_seconds_have_a_line_in_the_table(report: Report) -> None:
    """The columns for speeds and CPU seconds, which only comparisons have, are empty."""
    assert shown(report.table()) == [["wait_s", "0.33 s", "< 0.5", "yes", "-", "-", "-"]]


def test_phases_have_a_table_of_their_own(report: Report) -> None:
    """Each line has the phase's seconds, and the sum up to its end."""
    (table,) = report.phases()
    assert shown(table) == [["asked", "0.10", "0.10"], ["done", "0.30", "0.40"]]


@pytest.mark.parametrize(
    ("only", "keys"),
    [
        (None, ["a", "b", "c"]),
        (["operator"], ["c"]),
        (["engine"], ["a", "b"]),
        (["b", "c", "operator"], ["b", "c"]),
    ],
)
def test_groups_stand_for_their_keys(only: list[str] | None, keys: list[str]) -> None:
    """A key that is named twice counts once, and no name means all keys."""
    assert expanded(only, GROUPS) == keys
