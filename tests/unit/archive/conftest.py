import pytest

from sluice.archive.runs.archive import Archive
from support.engine.sweeps import Clock
from support.model.memory_objects import MemoryObjects


@pytest.fixture
def clock() -> Clock:
    """Gives the clock of the store, and of those who work there."""
    return Clock()


@pytest.fixture
def objects(clock: Clock) -> MemoryObjects:
    """Gives an empty store."""
    return MemoryObjects(clock)


@pytest.fixture
def archive(objects: MemoryObjects) -> Archive:
    """Gives an archive without a run."""
    return Archive(objects)
