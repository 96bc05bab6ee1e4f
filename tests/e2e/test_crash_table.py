"""Each process killed at each point of the copy protocol, on a store whose data survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.command import is_alive
from support.crash_lab import CrashLab
from support.crash_scenes import ControllerScene, DriverScene, ExecutorScene, SegmentStoreScene
from support.crash_table import REACHABLE, Cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.cluster]

SCENES = {
    "driver": DriverScene,
    "executor": ExecutorScene,
    "controller": ControllerScene,
    "segment store": SegmentStoreScene,
}


@pytest.fixture(scope="module")
def lab() -> Iterator[CrashLab]:
    with CrashLab() as made:
        yield made


@pytest.mark.parametrize("cell", REACHABLE, ids=lambda cell: cell.name)
def test_nothing_is_lost_repeated_or_reordered_whoever_dies(cell: Cell, lab: CrashLab, tmp_path: Path) -> None:
    """The copy is whole and exact in the end, and nothing else of it is left."""
    hold = lab.hold_up(cell.point, cell.name)
    with SCENES[cell.victim](lab, tmp_path, cell.name) as scene:
        assert hold.reached.wait(60), "the point was not reached"
        dead = scene.kill()
        assert dead
        assert not any(map(is_alive, dead))
        if cell.point.hidden and cell.victim in {"driver", "executor"}:
            lab.assert_hidden(cell.name)
        hold.release(deliver=cell.late)
        scene.go_on()
    lab.assert_copied(cell.name)
