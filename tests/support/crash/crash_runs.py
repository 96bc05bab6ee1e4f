"""What a test of the crash table does with a cell, and what it keeps of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from support.command.sluice_command import is_alive
from support.crash.crash_table import table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.crash.breakpoint import Breakpoint
    from support.crash.crash_env import CrashEnv
    from support.crash.crash_points import Point
    from support.crash.crash_scenes import Scene
    from support.crash.crash_table import Cell

BUILD = Path(__file__).parents[3] / "build"
POINT_SECONDS = 90.0
HEAD = ("cell", "what was held up", "dead", "seconds", "lost, duplicated, reordered")

Hits = dict[str, list[str]]
"""For each cell what was reached, killed and found."""


class Site(Protocol):
    """Where something is killed."""

    def hold_up(self, point: Point, target: str) -> Breakpoint:
        """Hold up what is sent at a point of the work for a target, from now on."""

    def assert_halfway(self, cell: Cell) -> None:
        """What is there after the death is as it may be."""

    def assert_finished(self, cell: Cell) -> None:
        """What is there in the end is as it should be."""


def parameters(cells: Iterable[Cell]) -> list[Any]:
    """Cells as parameters; `make test` leaves out all but a few."""
    return [
        pytest.param(cell, id=cell.name, marks=[] if cell.telling else [pytest.mark.exhaustive])
        for cell in cells
    ]


def write(name: str, hits: Hits) -> None:
    """Write the table of what was found down, as `build/NAME.md`."""
    BUILD.mkdir(exist_ok=True)
    rows = ([cell, *row] for cell, row in hits.items())
    (BUILD / f"{name}.md").write_text(table(HEAD, rows) + "\n")


def assert_all_reached(request: pytest.FixtureRequest, hits: Hits) -> None:
    """No cell of this file that was to run was passed without what it is about."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [
        item.callspec
        for item in items
        if item.path == request.path and item.originalname != request.node.name
    ]
    assert {spec.params["cell"].name for spec in chosen} == set(hits)
    assert all(row[-1] == "0, 0, 0" for row in hits.values())


def prepare(cell: Cell, env: CrashEnv) -> None:
    """Make the target, if the copy is to append to it."""
    if cell.point.appends:
        env.make(cell.name)


def die(cell: Cell, env: Site, scene: Scene, hits: Hits) -> None:
    """Work, kill the victim at the point, and compare what comes of it."""
    begun = time.monotonic()
    hold = env.hold_up(cell.point, cell.name)
    with scene:
        assert hold.reached.wait(POINT_SECONDS), "the point was not reached"
        dead = scene.kill()
        assert dead
        assert not any(map(is_alive, dead))
        row = hits[cell.name] = [str(hold.seen), " ".join(map(str, dead)), "", "not finished"]
        env.assert_halfway(cell)
        hold.release(deliver=cell.late)
        scene.go_on()
    env.assert_finished(cell)
    row[2:] = [f"{time.monotonic() - begun:.0f}", "0, 0, 0"]
