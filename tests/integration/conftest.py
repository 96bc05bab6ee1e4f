"""Fixtures for the tests on real stores."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from localstore import Cluster


@pytest.fixture(scope="module")
def cluster(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Cluster]:
    """Gives a Pravega of four processes."""
    servers = Cluster()
    with announce("a Pravega cluster of four processes"):
        servers.start()
    yield servers
    servers.stop()
