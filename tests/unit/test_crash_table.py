"""The crash tables and their pages. The tests in tests/e2e/crash run the cells."""

from pathlib import Path
from types import ModuleType

import pytest

from support.cases import golden
from support.crash import archive_crash_table, crash_table

pytestmark = pytest.mark.crash

DOCS = Path(__file__).parents[2] / "docs"
TABLES = pytest.mark.parametrize("table", [crash_table, archive_crash_table])


@TABLES
def test_the_page_is_the_table(table: ModuleType) -> None:
    """The page has every cell, reachable or not."""
    golden.check(DOCS / table.PAGE, table.page())


@TABLES
def test_the_table_is_whole(table: ModuleType) -> None:
    """Each point meets each victim, and each cell that does not run has a reason."""
    assert len(table.CELLS) == len(table.POINTS) * len(table.VICTIMS)
    assert len({cell.name for cell in table.CELLS}) == len(table.CELLS)
    assert len(table.REACHABLE) >= table.LEAST
    assert all(cell.unreachable for cell in table.CELLS if cell not in table.REACHABLE)


def test_each_victim_of_archives_dies_in_make_test() -> None:
    """Cells that always run are reachable, and have each victim."""
    telling = [cell for cell in archive_crash_table.REACHABLE if cell.telling]
    assert sum(len(point.telling) for point in archive_crash_table.POINTS) == len(telling)
    assert {cell.victim for cell in telling} == set(archive_crash_table.VICTIMS)
