import pytest

from sluice.archive.runs.archive import Archive
from support.archiving.sweeps import Clock
from support.model.memory_objects import MemoryObjects


@pytest.fixture
def clock() -> Clock:
    """Return the clock of the store and its clients."""
    return Clock()


@pytest.fixture
def objects(clock: Clock) -> MemoryObjects:
    """Return an empty store."""
    return MemoryObjects(clock)


@pytest.fixture
def archive(objects: MemoryObjects) -> Archive:
    """Return an archive without a run."""
    return Archive(objects)
