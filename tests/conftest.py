"""Fixtures that bring up the real store, each only when a test asks for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from localstore import Standalone
from localstore.accounts import ADMIN, READER


@pytest.fixture(scope="session")
def standalone(request: pytest.FixtureRequest) -> Iterator[Standalone]:
    """Gives a Pravega standalone server that all tests share: keep to a scope of your own."""
    server = Standalone()
    with _announced(request, "Pravega standalone"):
        server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def standalone_auth(request: pytest.FixtureRequest) -> Iterator[Standalone]:
    """Gives a second standalone server, where one must log in; its `users` say as whom."""
    server = Standalone(users=[ADMIN, READER])
    with _announced(request, "Pravega standalone with authentication"):
        server.start()
    yield server
    server.stop()


@contextmanager
def _announced(request: pytest.FixtureRequest, what: str) -> Iterator[None]:
    """Says on the terminal what takes so long, even while pytest captures output."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    terminal = request.config.pluginmanager.getplugin("terminalreporter")
    started = time.monotonic()
    with capture.global_and_fixture_disabled():
        terminal.write(f"\nstarting {what} ... ", flush=True)
        yield
        terminal.write(f"up in {time.monotonic() - started:.1f} s\n", flush=True)
