"""Each process of a copy killed at each point of the protocol: see docs/crash-table.md.

The witnesses are not Sluice's: the stand-alone hash script, the official Java client, and the
records of the proxies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.crash.crash_runs import Hits, assert_all_reached, die, parameters, prepare, write
from support.crash.crash_scenes import (
    ControllerScene,
    DriverScene,
    ExecutorScene,
    SegmentStoreScene,
)
from support.crash.crash_table import REACHABLE, Cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.crash.crash_env import CrashEnv

pytestmark = [pytest.mark.crash, pytest.mark.cluster, pytest.mark.exhaustive]

COMMANDS = {
    "driver": DriverScene,
    "executor": ExecutorScene,
    "controller": ControllerScene,
    "segment store": SegmentStoreScene,
}


@pytest.fixture(scope="module")
def hits() -> Iterator[Hits]:
    """Yield the table of results, with points and dead processes. It is written at the end."""
    found: Hits = {}
    yield found
    write("crash-table", found)


@pytest.mark.parametrize("cell", parameters(c for c in REACHABLE if c.victim in COMMANDS))
def test_nothing_is_lost_twice_or_reordered_whichever_process_dies(
    cell: Cell, env: CrashEnv, hits: Hits, tmp_path: Path
) -> None:
    """Whichever process dies, the copy is exact at the end and leaves nothing else."""
    prepare(cell, env)
    die(cell, env, COMMANDS[cell.victim](env, cell.name, tmp_path), hits)


def test_each_point_was_reached_and_its_victim_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """Each cell of this run reached its point, and its victim died there."""
    assert_all_reached(request, hits)
