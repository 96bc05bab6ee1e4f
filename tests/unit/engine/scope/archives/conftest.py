"""Fixtures that the tests of scopes in archives share."""

import threading
from collections.abc import Iterator

import pytest

from support.archiving.archive_runs import make_objects_small
from support.archiving.scope_roots import Env
from support.engine.scope_drivers import put_scope
from support.model import World


@pytest.fixture(autouse=True)
def small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce objects to a few chunks, and chunks to 16 bytes."""
    make_objects_small(monkeypatch)


@pytest.fixture
def env() -> Env:
    """Return a scope of a few small streams, no two alike, and a root of archives."""
    world = World()
    put_scope(world, [[9, 1], [1]], [[40, 0, 30]], [[]], [[5], [6], [7]])
    return Env(world)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Assert that all workers end with their runner."""
    before = set(threading.enumerate())
    yield
    assert {one for one in threading.enumerate() if one.name.startswith("stream-")} <= before
