"""Two streams for each test of verification."""

from __future__ import annotations

import pytest

from support.engine.plans import SOURCE, TARGET
from support.engine.sources import put_scaled_source
from support.engine.verifying import (
    MOVES,
    SHAPES,
)
from support.model import World


@pytest.fixture
def twins() -> World:
    """Return a world with two equal streams, which were scaled."""
    world = World()
    for name in (SOURCE, TARGET):
        put_scaled_source(world, SHAPES, MOVES, name=name)
    return world
