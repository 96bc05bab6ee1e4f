"""The store of objects that an archive needs, as a Protocol.

It needs little, so that a bucket and a directory can both serve: atomic puts of whole objects,
reads of ranges, listings in the order of names, and one condition: make an object only if none of
its name exists. All calls block, and raise only the errors of `sluice.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Buffer = bytes | bytearray | memoryview


class ObjectInfo(NamedTuple):
    """An existing object.

    Attributes:
        name: its name.
        size: its size in bytes.
        modified: when it was made or replaced, in ms of the store's clock.
    """

    name: str
    size: int
    modified: int


class Objects(Protocol):
    """The objects of an archive. They are safe to use from several threads.

    When a method has returned, its effect outlasts a crash of this process or of the store.
    """

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it: whole, or not at all."""
        ...

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object. Return False if one of that name exists, which stays as it is.

        Of any number of callers, one gets True. If its answer was lost, it may get False instead;
        then the object holds its data.
        """
        ...

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects, in any order."""
        ...

    def look(self, name: str) -> ObjectInfo | None:
        """Return an object's size and time; None if it does not exist."""
        ...

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the bytes [start, end) of an object, or fewer where it is shorter.

        Args:
            name: its name.
            start: first byte.
            end: byte after the last one; None for the object's end.

        Returns:
            The bytes; None if the object does not exist.
        """
        ...

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Read many small objects at once, in the order of `names`."""
        ...

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects in a folder and below it, in the order of their whole names.

        Args:
            prefix: the folder, with its slash; empty for all objects.
            after: yield only names behind this one.
        """
        ...

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the folders directly in folder `prefix`, with their slashes, in order of names."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects. Missing ones are no error."""
        ...
