"""What the tests of archives' runs share."""

import pytest

from sluice.archive import parquet, piece, segments
from sluice.core.archive import events
from support.sources import CHUNK


@pytest.fixture(autouse=True)
def small_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of a few chunks, which are of 16 bytes."""
    for module in (segments, events):
        monkeypatch.setattr(module, "CHUNK", CHUNK)
    for module in (piece, segments, parquet):
        monkeypatch.setattr(module, "OBJECT", 4 * CHUNK)
