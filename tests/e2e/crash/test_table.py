"""Each process killed at each point of the copy protocol: see docs/crash-table.md.

The witnesses are not Sluice's: the stand-alone hash script, the official Java client, and what the
proxies saw.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.command import is_alive
from support.crash_scenes import (
    ControllerScene,
    DriverScene,
    ExecutorScene,
    OperatorScene,
    SegmentStoreScene,
)
from support.crash_table import REACHABLE, Cell, table
from support.office import Office, opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from localcluster import Cluster
    from support.crash_lab import CrashLab
    from support.crash_scenes import Scene

pytestmark = [pytest.mark.crash, pytest.mark.cluster]

REPORT = Path(__file__).parents[3] / "build" / "crash-table.md"
COMMANDS = {
    "driver": DriverScene,
    "executor": ExecutorScene,
    "controller": ControllerScene,
    "segment store": SegmentStoreScene,
}
POINT_SECONDS = 90.0

Hits = dict[str, list[str]]


def parameters(cells: Iterable[Cell]) -> list[Any]:
    """Cells as parameters; `make test` leaves out all but a dozen."""
    return [
        pytest.param(cell, id=cell.name, marks=[] if cell.telling else [pytest.mark.exhaustive])
        for cell in cells
    ]


@pytest.fixture(scope="module")
def hits() -> Iterator[Hits]:
    """Gives the table of what was reached, killed and found; it is written down in the end."""
    found: Hits = {}
    yield found
    head = ["cell", "what was held up", "dead", "seconds", "lost, duplicated, reordered"]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(table(head, ([name, *row] for name, row in found.items())) + "\n")


@pytest.fixture(scope="module")
def office(
    kube: Cluster,
    definitions: list[str],
    lab: CrashLab,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Office]:
    """Gives an operator on this machine, and a namespace whose driver pods are run here."""
    folder = tmp_path_factory.mktemp("sluice-test-crash")
    with opened(kube, folder, lab.uri) as made:
        yield made


@pytest.mark.parametrize("cell", parameters(c for c in REACHABLE if c.victim in COMMANDS))
def test_nothing_is_lost_twice_or_reordered_whoever_dies(
    cell: Cell, lab: CrashLab, hits: Hits, tmp_path: Path
) -> None:
    """The copy is whole and exact in the end, and nothing else of it is left."""
    prepare(cell, lab)
    die(cell, COMMANDS[cell.victim](lab, cell.name, tmp_path), hits)


@pytest.mark.parametrize("cell", parameters(c for c in REACHABLE if c.victim == "operator"))
def test_a_killed_operator_costs_nothing(
    cell: Cell, lab: CrashLab, office: Office, hits: Hits, tmp_path: Path
) -> None:
    """The driver goes on, and the next operator finds it and says how it ended."""
    prepare(cell, lab)
    die(cell, OperatorScene(lab, cell.name, tmp_path, office), hits)


def test_each_point_was_reached_and_its_victim_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """No cell of this run was passed without what it is about."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    chosen = [
        item.callspec
        for item in items
        if item.path == request.path and item.originalname != request.node.name
    ]
    cells = [spec.params["cell"] for spec in chosen]
    assert {cell.name for cell in cells} == set(hits)
    assert all(row[-1] == "0, 0, 0" for row in hits.values())


def prepare(cell: Cell, lab: CrashLab) -> None:
    """Make the target, if the copy is to append to it."""
    if cell.point.appends:
        lab.make(cell.name)


def die(cell: Cell, scene: Scene, hits: Hits) -> None:
    """Copy, kill the victim at the point, and compare what comes of it."""
    lab, begun = scene.lab, time.monotonic()
    hold = lab.hold_up(cell.point, cell.name)
    with scene:
        assert hold.reached.wait(POINT_SECONDS), "the point was not reached"
        dead = scene.kill()
        assert dead
        assert not any(map(is_alive, dead))
        row = hits[cell.name] = [str(hold.seen), " ".join(map(str, dead)), "", "not finished"]
        if cell.point.hidden and cell.victim == "driver":
            lab.assert_hidden(cell.name)
        hold.release(deliver=cell.late)
        scene.go_on()
    lab.assert_copied(cell.name)
    row[2:] = [f"{time.monotonic() - begun:.0f}", "0, 0, 0"]
