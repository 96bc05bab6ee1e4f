import threading
from collections.abc import Iterator

import pytest

from sluice.engine.scope import runner
from support.engine.scope_drivers import MANY, SharedStore, put_scope
from support.model import World


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pause between the calling thread's looks at its workers."""
    monkeypatch.setattr(runner, "POLL", 0.01)


@pytest.fixture
def world() -> World:
    """Return a world with many small streams."""
    made = World()
    put_scope(made, *([[9, number], [number]] for number in range(MANY)))
    return made


@pytest.fixture
def store(world: World) -> SharedStore:
    """Return the world's store."""
    return SharedStore(world)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Assert that all workers end with their runner."""
    before = set(threading.enumerate())
    yield
    assert {one for one in threading.enumerate() if one.name.startswith("stream-")} <= before
