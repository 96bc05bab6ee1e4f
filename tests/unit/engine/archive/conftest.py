"""What the tests of archives' runs share."""

import pytest

from support.engine.archive_runs import make_objects_small


@pytest.fixture(autouse=True)
def small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of a few chunks, which are of 16 bytes."""
    make_objects_small(monkeypatch)
