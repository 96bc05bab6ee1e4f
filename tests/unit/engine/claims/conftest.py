"""A store of the model for each test of claims."""

import pytest

from sluice.engine.claims import ownership, scope_lifecycle
from support.engine.claims import fresh
from support.model import ModelStore, World


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run make the same calls in the same order, and know no other run."""
    monkeypatch.setattr(ownership, "AT_ONCE", 1)
    monkeypatch.setattr(scope_lifecycle, "_gates", {})


@pytest.fixture
def world() -> World:
    """Return a store whose clock is ahead."""
    return fresh()


@pytest.fixture
def store(world: World) -> ModelStore:
    """Return a store in which every call succeeds."""
    return ModelStore(world)
