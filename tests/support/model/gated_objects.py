"""An object store in memory whose calls meet a fate that a test decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sluice.errors import StoreUnavailable
from support.model import Fate
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sluice.archive.objects.objects import Buffer, ObjectInfo

T = TypeVar("T")


class GatedObjects(MemoryObjects):
    """The objects of another store, behind a gate.

    Args:
        there: the other store.
        gate: callback before each call; it returns the call's fate.
    """

    def __init__(self, there: MemoryObjects, gate: Callable[[str], Fate]) -> None:
        super().__init__()
        self._there = there
        self._gate = gate

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        self._call(f"put {name}", lambda: self._there.put(name, data))

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists."""
        return self._call(f"put_new {name}", lambda: self._there.put_new(name, data))

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects."""
        for name, data in items:
            self.put(name, data)

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        return self._call(f"look {name}", lambda: self._there.look(name))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object; None if it does not exist."""
        return self._call(f"get {name}", lambda: self._there.get(name, start, end))

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Return the objects in a folder and below it, in the order of their whole names."""
        return self._call(f"list {prefix}", lambda: self._there.list(prefix, after))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are no error."""
        self._call(f"delete {len(names)}", lambda: self._there.delete(names))

    def _call(self, what: str, action: Callable[[], T]) -> T:
        fate = self._gate(what)
        if fate is Fate.REQUEST_LOST:
            raise StoreUnavailable(what)
        value = action()
        if fate is Fate.REPLY_LOST:
            raise StoreUnavailable(what)
        return value


def copied(objects: MemoryObjects) -> MemoryObjects:
    """Return another store with the same objects."""
    other = MemoryObjects()
    other.held, other.modified = dict(objects.held), dict(objects.modified)
    return other
