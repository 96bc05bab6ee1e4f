import threading
from collections.abc import Iterator

import pytest

from sluice.engine.scope import runner
from sluice.engine.scope.following import runner as following


@pytest.fixture(autouse=True)
def short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pause between two looks at workers, and leave three workers."""
    monkeypatch.setattr(runner, "POLL", 0.01)
    monkeypatch.setattr(following, "WORKERS", 3)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Assert that all workers end with their runner."""
    before = set(threading.enumerate())
    yield
    left = {one for one in threading.enumerate() if one.name.startswith(("stream-", "scope-"))}
    assert left <= before
