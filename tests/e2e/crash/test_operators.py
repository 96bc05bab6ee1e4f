"""The operator killed at each point of the copy protocol: see docs/crash-table.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cluster.local_operator import LocalOperator, opened
from support.crash.crash_runs import Hits, assert_all_reached, die, parameters, prepare, write
from support.crash.crash_scenes import OperatorScene
from support.crash.crash_table import REACHABLE, Cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from support.crash.crash_env import CrashEnv

pytestmark = [pytest.mark.crash, pytest.mark.cluster, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def local_operator(
    kube: Cluster,
    definitions: list[str],
    env: CrashEnv,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalOperator]:
    """Yield an operator on this machine, and a namespace. The test runs its driver pods here."""
    folder = tmp_path_factory.mktemp("sluice-test-crash")
    with opened(kube, folder, env.uri) as made:
        yield made


@pytest.fixture(scope="module")
def hits(local_operator: LocalOperator) -> Iterator[Hits]:
    """Yield the table of results, with points and dead processes. It is written at the end."""
    found: Hits = {}
    yield found
    write("crash-table-operator", found)


@pytest.mark.parametrize("cell", parameters(c for c in REACHABLE if c.victim == "operator"))
def test_a_killed_operator_costs_nothing(
    cell: Cell, env: CrashEnv, local_operator: LocalOperator, hits: Hits, tmp_path: Path
) -> None:
    """The driver survives the operator. The next operator finds it and reports its end."""
    prepare(cell, env)
    die(cell, env, OperatorScene(env, cell.name, tmp_path, local_operator), hits)


def test_each_point_was_reached_and_its_operator_died(
    request: pytest.FixtureRequest, hits: Hits
) -> None:
    """Each cell of this run reached its point, and its operator died there."""
    assert_all_reached(request, hits)
