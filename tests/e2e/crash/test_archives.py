"""Each process killed at each step of archives and restores: see docs/archive-crash-table.md.

The witnesses are not Sluice's: the stand-alone hash script, a program that knows only the format,
and the records of the proxies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.crash.archive_crash_scenes import GatewayScene
from support.crash.archive_crash_table import REACHABLE, ArchiveCell
from support.crash.crash_runs import Hits, assert_all_reached, die, parameters, write
from support.crash.crash_scenes import DriverScene, ExecutorScene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.crash.archive_crash_env import ArchiveCrashEnv
    from support.crash.crash_scenes import Scene

# The first test that needs the gateway compiles it.
pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200)]

COMMANDS = [cell for cell in REACHABLE if cell.victim != "operator" and cell.point.deed != "delete"]


@pytest.fixture(scope="module")
def hits() -> Iterator[Hits]:
    """Yield the table of results, with points and dead processes. It is written at the end."""
    found: Hits = {}
    yield found
    write("crash-table-archives", found)


def scene_of(cell: ArchiveCell, env: ArchiveCrashEnv, folder: Path) -> Scene:
    """Return the work, and the process that dies."""
    match cell.victim:
        case "driver":
            return DriverScene(env, cell.name, folder)
        case "executor":
            return ExecutorScene(env, cell.name, folder)
        case _:
            return GatewayScene(env, cell.name, folder)


@pytest.mark.parametrize("cell", parameters(COMMANDS))
def test_an_archive_is_whole_or_not_seen_whoever_dies(
    cell: ArchiveCell, archive_env: ArchiveCrashEnv, hits: Hits, tmp_path: Path
) -> None:
    """During the victim's death and at the end, an archive is whole or hidden."""
    archive_env.prepare(cell)
    die(cell, archive_env, scene_of(cell, archive_env, tmp_path), hits)


def test_each_point_was_reached_and_its_victim_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """Each cell of this run reached its point, and its victim died there."""
    assert_all_reached(request, hits)
