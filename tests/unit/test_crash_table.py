"""What the crash table says of itself; the cells are run by tests/e2e/crash."""

from pathlib import Path

import pytest

from support import golden
from support.crash_points import POINTS
from support.crash_table import CELLS, LEAST, REACHABLE, VICTIMS, page

pytestmark = pytest.mark.crash

PAGE = Path(__file__).parents[2] / "docs" / "crash-table.md"


def test_the_page_is_the_table() -> None:
    """docs/crash-table.md has every cell, reachable or not."""
    golden.check(PAGE, page())


def test_the_table_is_whole() -> None:
    """Each point meets each victim, and what is not run says why."""
    assert len(CELLS) == len(POINTS) * len(VICTIMS)
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert len(REACHABLE) >= LEAST
    assert all(cell.unreachable for cell in CELLS if cell not in REACHABLE)


def test_each_victim_dies_in_make_test() -> None:
    """The dozen that always runs can be reached, and has each victim."""
    telling = [cell for cell in REACHABLE if cell.telling]
    assert sum(len(point.telling) for point in POINTS) == len(telling) >= 12
    assert {cell.victim for cell in telling} == set(VICTIMS)
