"""Fixtures for the tests on real stores."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from localstore import Cluster
from support.store.servers import ended_early


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, announce: Callable[[str], AbstractContextManager[None]]
) -> Iterator[Cluster]:
    """Yield a shared Pravega of four processes: keep to a scope of your own, leave all running."""
    servers = Cluster()
    with announce("a Pravega cluster of four processes"):
        servers.start()
    with ended_early(request, servers.stop):
        yield servers
