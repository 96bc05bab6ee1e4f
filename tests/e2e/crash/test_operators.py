"""The operator killed at each point of the copy protocol: see docs/crash-table.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.crash_runs import Hits, assert_all_reached, die, parameters, prepare, write
from support.crash_scenes import OperatorScene
from support.crash_table import REACHABLE, Cell
from support.office import Office, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from support.crash_lab import CrashLab

pytestmark = [pytest.mark.crash, pytest.mark.cluster]


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


@pytest.fixture(scope="module")
def hits(office: Office) -> Iterator[Hits]:
    """Gives the table of what was reached, killed and found; it is written down in the end."""
    found: Hits = {}
    yield found
    write("crash-table-operator", found)


@pytest.mark.parametrize("cell", parameters(c for c in REACHABLE if c.victim == "operator"))
def test_a_killed_operator_costs_nothing(
    cell: Cell, lab: CrashLab, office: Office, hits: Hits, tmp_path: Path
) -> None:
    """The driver goes on, and the next operator finds it and says how it ended."""
    prepare(cell, lab)
    die(cell, lab, OperatorScene(lab, cell.name, tmp_path, office), hits)


def test_each_point_was_reached_and_its_operator_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """No cell of this run was passed without what it is about."""
    assert_all_reached(request, hits)
