"""Fixtures that the tests of archives' runs share."""

import pytest

from support.archiving.archive_runs import make_objects_small


@pytest.fixture(autouse=True)
def small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce objects to a few chunks, and chunks to 16 bytes."""
    make_objects_small(monkeypatch)
