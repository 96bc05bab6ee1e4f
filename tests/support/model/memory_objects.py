"""An object store in memory. The contract tests prove that it behaves as the real ones."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from sluice.archive.objects.objects import ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sluice.archive.objects.objects import Buffer


class MemoryObjects:
    """`Objects` that are lost with this instance.

    Args:
        clock: the store's clock, in seconds.

    Attributes:
        held: the objects by name.
        modified: the time at which each object was made or replaced, in ms.
        got: bytes that each reading call returned.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.held: dict[str, bytes] = {}
        self.modified: dict[str, int] = {}
        self.got: list[int] = []
        self._clock = clock
        self._lock = threading.Lock()

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it."""
        with self._lock:
            self.held[name] = bytes(data)
            self.modified[name] = round(self._clock() * 1000)

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists."""
        with self._lock:
            if name in self.held:
                return False
            self.held[name] = bytes(data)
            self.modified[name] = round(self._clock() * 1000)
        return True

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects."""
        for name, data in items:
            self.put(name, data)

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        data = self.held.get(name)
        return None if data is None else ObjectInfo(name, len(data), self.modified[name])

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object; None if it does not exist."""
        data = self.held.get(name)
        if data is None:
            return None
        part = data[start:end]
        self.got.append(len(part))
        return part

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Return many small objects, in the order of `names`."""
        return [self.get(name) for name in names]

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Return the objects in a folder and below it, in the order of their whole names."""
        with self._lock:
            names = sorted(one for one in self.held if one.startswith(prefix) and one > after)
        return (found for name in names if (found := self.look(name)) is not None)

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders directly in a folder."""
        rest = [one.name.removeprefix(prefix) for one in self.list(prefix)]
        return tuple(sorted({f"{prefix}{one.partition('/')[0]}/" for one in rest if "/" in one}))

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are no error."""
        with self._lock:
            for name in names:
                self.held.pop(name, None)
                self.modified.pop(name, None)
