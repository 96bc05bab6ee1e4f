"""The course of a test of the crash table with a cell, and its records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from support.command.sluice_command import is_alive
from support.crash.archive_crash_table import ArchiveCell
from support.crash.crash_table import table
from support.until import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.crash.breakpoint import Breakpoint
    from support.crash.crash_env import CrashEnv
    from support.crash.crash_points import Point
    from support.crash.crash_scenes import Scene
    from support.crash.crash_table import Cell

BUILD = Path(__file__).parents[3] / "build"
HEAD = ("cell", "what was held up", "dead", "seconds", "lost, duplicated, reordered")

Hits = dict[str, list[str]]
"""For each cell: the point that was reached, the dead processes, and the result."""


class Site(Protocol):
    """An environment in which a process is killed."""

    def hold_up(self, point: Point, target: str) -> Breakpoint:
        """Hold up the traffic at a point of the work for a target, from now on."""

    def assert_halfway(self, cell: Cell) -> None:
        """Check that the stores' state after the death is allowed."""

    def assert_finished(self, cell: Cell) -> None:
        """Check that the stores' state in the end is right."""


def parameters(cells: Iterable[Cell]) -> list[Any]:
    """Return cells as parameters. `make test` leaves out those of archives that are not telling."""
    return [
        pytest.param(cell, id=cell.name, marks=pytest.mark.exhaustive if _is_alike(cell) else [])
        for cell in cells
    ]


def _is_alike(cell: Cell) -> bool:
    return isinstance(cell, ArchiveCell) and not cell.telling


def write(name: str, hits: Hits) -> None:
    """Write the table of results as `build/NAME.md`."""
    BUILD.mkdir(exist_ok=True)
    rows = ([cell, *row] for cell, row in hits.items())
    (BUILD / f"{name}.md").write_text(table(HEAD, rows) + "\n")


def assert_all_reached(request: pytest.FixtureRequest, hits: Hits) -> None:
    """Check that each chosen cell of this file reached its point and lost nothing."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [
        item.callspec
        for item in items
        if item.path == request.path and item.originalname != request.node.name
    ]
    assert {spec.params["cell"].name for spec in chosen} == set(hits)
    assert all(row[-1] == "0, 0, 0" for row in hits.values())


def prepare(cell: Cell, env: CrashEnv) -> None:
    """Make the target, if the copy is to append to it, or let a copy follow a source of its own."""
    if cell.point.appends:
        env.make(cell.name)
    if cell.point.follows:
        env.follow(cell.name, cell.point.step)


def die(cell: Cell, env: Site, scene: Scene, hits: Hits) -> None:
    """Work, kill the victim at the point, and check the result."""
    begun = time.monotonic()
    hold = env.hold_up(cell.point, cell.name)
    with scene:
        assert hold.reached.wait(PATIENCE), "the point was not reached"
        dead = scene.kill()
        assert dead
        assert not any(map(is_alive, dead))
        row = hits[cell.name] = [str(hold.seen), " ".join(map(str, dead)), "", "not finished"]
        env.assert_halfway(cell)
        hold.release(deliver=cell.late)
        scene.go_on()
    env.assert_finished(cell)
    row[2:] = [f"{time.monotonic() - begun:.0f}", "0, 0, 0"]
