"""A hostile tenant beside a neighbour, at a real API server and operator.

The operator runs with all rights, so every refusal is its own.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from support.store.servers import ended_early
from support.tenants.evil import plotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localcluster import Cluster
    from support.tenants.evil import Evil


@pytest.fixture(scope="session")
def evil(
    request: pytest.FixtureRequest,
    kube: Cluster,
    definitions: list[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Evil]:
    """Yield the scene of all tests."""
    assert definitions
    stack = ExitStack()
    scene = stack.enter_context(plotted(kube, tmp_path_factory.mktemp("evil")))
    with ended_early(request, stack.close):
        yield scene


@pytest.fixture(autouse=True)
def _nothing_of_the_neighbours(evil: Evil) -> Iterator[None]:
    """Check after each act that the neighbour's Secret is unchanged, and disclosed nowhere."""
    before, heard = evil.login(), len(evil.hidden.heard)
    yield
    assert evil.login() == before
    told = evil.told()
    assert not [form for form in evil.tells() if form in told]
    assert evil.hidden.heard[heard:] == []
