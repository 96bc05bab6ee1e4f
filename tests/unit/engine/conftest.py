"""Fixtures that the engine's tests share."""

import pytest

from sluice.core.events import digest
from sluice.core.pace import slicing
from sluice.engine.slices import slices
from support.engine.sources import CHUNK


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce chunks to 16 bytes, so that small segments have several chunks, parts and slices."""
    for module in (digest, slicing, slices):
        monkeypatch.setattr(module, "CHUNK", CHUNK)
