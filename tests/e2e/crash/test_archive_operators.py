"""The operator killed at each step of archives and restores: see docs/archive-crash-table.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cluster.local_operator import LocalOperator, opened
from support.crash.archive_crash_scenes import DeletionScene, GatewayDeletionScene
from support.crash.archive_crash_table import REACHABLE, ArchiveCell
from support.crash.crash_runs import Hits, assert_all_reached, die, parameters, write
from support.crash.crash_scenes import OperatorScene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from support.crash.archive_crash_env import ArchiveCrashEnv

pytestmark = pytest.mark.crash

OPERATORS = [cell for cell in REACHABLE if cell.victim == "operator" or cell.point.deed == "delete"]


@pytest.fixture(scope="module")
def local_operator(
    kube: Cluster,
    definitions: list[str],
    archive_env: ArchiveCrashEnv,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalOperator]:
    """Yield an operator on this machine, and a namespace. The test runs its driver pods here."""
    folder = tmp_path_factory.mktemp("sluice-test-archive-crash")
    with opened(kube, folder, archive_env.uri) as made:
        made.tenant.apply(*archive_env.stores(folder))
        yield made


@pytest.fixture(scope="module")
def hits(local_operator: LocalOperator) -> Iterator[Hits]:
    """Yield the table of results, with points and dead processes. It is written at the end."""
    found: Hits = {}
    yield found
    write("crash-table-archives-operator", found)


def scene_of(
    cell: ArchiveCell, env: ArchiveCrashEnv, folder: Path, local_operator: LocalOperator
) -> OperatorScene:
    """Return the work, and the process that dies."""
    if cell.point.deed != "delete":
        return OperatorScene(env, cell.name, folder, local_operator)
    if cell.victim == "gateway":
        return GatewayDeletionScene(env, cell.name, folder, local_operator)
    return DeletionScene(env, cell.name, folder, local_operator)


@pytest.mark.parametrize("cell", parameters(OPERATORS))
def test_a_killed_operator_leaves_an_archive_whole_or_unseen(
    cell: ArchiveCell,
    archive_env: ArchiveCrashEnv,
    local_operator: LocalOperator,
    hits: Hits,
    tmp_path: Path,
) -> None:
    """The driver survives. The next operator reports its end, or deletes the remains."""
    archive_env.prepare(cell)
    die(cell, archive_env, scene_of(cell, archive_env, tmp_path, local_operator), hits)


def test_each_point_was_reached_and_its_victim_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """Each cell of this run reached its point, and its victim died there."""
    assert_all_reached(request, hits)
