"""The operator killed at each step of archives and restores: see docs/archive-crash-table.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.archive_crash_scenes import DeletionScene, GatewayDeletionScene
from support.archive_crash_table import REACHABLE, ArchiveCell
from support.crash_runs import Hits, assert_all_reached, die, parameters, write
from support.crash_scenes import OperatorScene
from support.office import Office, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from support.archive_crash_lab import ArchiveCrashLab

pytestmark = pytest.mark.crash

OPERATORS = [cell for cell in REACHABLE if cell.victim == "operator" or cell.point.deed == "delete"]


@pytest.fixture(scope="module")
def office(
    kube: Cluster,
    definitions: list[str],
    archive_lab: ArchiveCrashLab,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Office]:
    """Gives an operator on this machine, and a namespace whose driver pods are run here."""
    folder = tmp_path_factory.mktemp("sluice-test-archive-crash")
    with opened(kube, folder, archive_lab.uri) as made:
        made.tenant.apply(*archive_lab.stores(folder))
        yield made


@pytest.fixture(scope="module")
def hits(office: Office) -> Iterator[Hits]:
    """Gives the table of what was reached, killed and found; it is written down in the end."""
    found: Hits = {}
    yield found
    write("crash-table-archives-operator", found)


def scene_of(
    cell: ArchiveCell, lab: ArchiveCrashLab, folder: Path, office: Office
) -> OperatorScene:
    """The work, and who dies."""
    if cell.point.deed != "delete":
        return OperatorScene(lab, cell.name, folder, office)
    if cell.victim == "gateway":
        return GatewayDeletionScene(lab, cell.name, folder, office)
    return DeletionScene(lab, cell.name, folder, office)


@pytest.mark.parametrize("cell", parameters(OPERATORS))
def test_a_killed_operator_leaves_an_archive_whole_or_unseen(
    cell: ArchiveCell, archive_lab: ArchiveCrashLab, office: Office, hits: Hits, tmp_path: Path
) -> None:
    """The driver goes on, and the next operator says how it ended, or deletes what is left."""
    archive_lab.prepare(cell)
    die(cell, archive_lab, scene_of(cell, archive_lab, tmp_path, office), hits)


def test_each_point_was_reached_and_its_victim_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """No cell of this run was passed without what it is about."""
    assert_all_reached(request, hits)
