"""What an archive needs of an object store.

Little, so that a bucket and a directory can both be one: whole objects that are there or not,
ranges of them, names in order, and one condition, that an object is made only if there is none of
its name. Everything blocks, and raises the errors of `sluice.errors` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Buffer = bytes | bytearray | memoryview


class ObjectInfo(NamedTuple):
    """An object that is there.

    Attributes:
        name: its name.
        size: in bytes.
        modified: when it was made or replaced, by the store's clock, in ms.
    """

    name: str
    size: int
    modified: int


class Objects(Protocol):
    """The objects of an archive. Safe to use from several threads.

    What a method has returned from outlasts a crash, of this process or of the store.
    """

    def put(self, name: str, data: Buffer) -> None:
        """Make an object, or replace it: whole, or not at all."""
        ...

    def put_new(self, name: str, data: Buffer) -> bool:
        """Make an object; False when there is one of that name, which stays as it is.

        Of any number of callers one gets True. Only where its answer was lost may it get False
        instead: then the object holds its data.
        """
        ...

    def put_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Make or replace many small objects, in any order."""
        ...

    def look(self, name: str) -> ObjectInfo | None:
        """What is known of an object; None when there is none."""
        ...

    def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
        """The bytes [start, end) of an object, to its end without `end`; None when there is none.

        Fewer where it is shorter.
        """
        ...

    def get_many(self, names: Sequence[str]) -> list[bytes | None]:
        """Many small objects at once, in the order of `names`."""
        ...

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """The objects whose names begin with `prefix`, a folder with its slash, in order of names.

        Args:
            prefix: a folder.
            after: only names behind this one.
        """
        ...

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """The folders directly in the folder `prefix`, with their slashes, in order of names."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are not there are fine."""
        ...
