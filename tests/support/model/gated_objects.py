"""An object store in memory, of which a test decides what becomes of each call."""

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
    """The objects of another one, behind a gate.

    Args:
        there: the objects.
        gate: asked before each call what becomes of it.
    """

    def __init__(self, there: MemoryObjects, gate: Callable[[str], Fate]) -> None:
        super().__init__()
        self._there = there
        self._gate = gate

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        self._call(f"put {name}", lambda: self._there.put(name, data))

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object; False when there is one of that name."""
        return self._call(f"put_new {name}", lambda: self._there.put_new(name, data))

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects."""
        for name, data in items:
            self.put(name, data)

    def look(self, name: str) -> ObjectInfo | None:
        """What is known of an object; None when there is none."""
        return self._call(f"look {name}", lambda: self._there.look(name))

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """The bytes [start, end) of an object; None when there is none."""
        return self._call(f"get {name}", lambda: self._there.get(name, start, end))

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """The objects in a folder and below it, in the order of their whole names."""
        return self._call(f"list {prefix}", lambda: self._there.list(prefix, after))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are not there are fine."""
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
    """Another store with the same objects."""
    other = MemoryObjects()
    other.held, other.modified = dict(objects.held), dict(objects.modified)
    return other
