"""Fixtures for the tests on real stores, and in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localstore import Cluster
from support.command.browser import browsing, chromium
from support.store.servers import ended_early

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, announce: Callable[[str], AbstractContextManager[None]]
) -> Iterator[Cluster]:
    """Yield a shared Pravega of four processes.

    A test uses its own scope, and leaves all running.
    """
    servers = Cluster()
    with announce("a Pravega cluster of four processes"):
        servers.start()
    with ended_early(request, servers.stop):
        yield servers


@pytest.fixture(scope="module")
def browser(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Browser]:
    """Yield a browser."""
    with announce("Chromium"):
        chromium()
    with browsing() as found:
        yield found
