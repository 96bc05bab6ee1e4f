"""A client that is killed at each call of recording a run, before or after its effect."""

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.errors import StoreUnavailable
from support.archiving.archives import Source, take
from support.model.memory_objects import MemoryObjects


class Failing:
    """The choice of the changing call that fails.

    Args:
        at: its number, from 0.
        done: whether it has its effect all the same.
    """

    def __init__(self, at: int, *, done: bool) -> None:
        self.left = at
        self.done = done

    def fails(self) -> bool:
        """Tell whether this call fails."""
        self.left -= 1
        return self.left == -1


class Breaking(MemoryObjects):
    """Objects of which a call fails."""

    def __init__(self, there: MemoryObjects, failing: Failing) -> None:
        super().__init__()
        self.held, self.modified = there.held, there.modified
        self._failing = failing

    def put(self, name: str, data: bytes | bytearray | memoryview) -> None:
        """Put an object, or lose the request or its answer."""
        fails = self._failing.fails()
        if not fails or self._failing.done:
            super().put(name, data)
        if fails:
            raise StoreUnavailable(name)

    def put_new(self, name: str, data: bytes | bytearray | memoryview) -> bool:
        """Put a new object, or lose the request or its answer."""
        fails = self._failing.fails()
        made = super().put_new(name, data) if not fails or self._failing.done else False
        if fails:
            raise StoreUnavailable(name)
        return made


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("form", list(Format))
def test_a_run_that_is_cut_off_anywhere_is_there_or_not(form: Format, *, done: bool) -> None:
    """After a crash at any call the archive is unchanged or has the run, and is whole.

    A repetition records the run, and makes no object twice.
    """
    source = Source()
    objects = MemoryObjects()
    source.write([10, 3000] * 4)
    take(Archive(objects), form, source)
    source.split()
    source.write([20, 0, 700])
    whole = MemoryObjects()
    whole.held, whole.modified = dict(objects.held), dict(objects.modified)
    expected = take(Archive(whole), form, source)
    outcomes = set()
    for at in range(len(whole.held)):
        there = MemoryObjects()
        there.held, there.modified = dict(objects.held), dict(objects.modified)
        try:
            take(Archive(Breaking(there, Failing(at, done=done))), form, source)
        except StoreUnavailable:
            found = verify_archive(Archive(there))
            assert found.problems == []
            outcomes.add(found.runs)
            if found.runs == (1,):
                assert take(Archive(there), form, source) == expected
        assert there.held == whole.held
    assert outcomes == ({(1,), (1, 2)} if done else {(1,)})
