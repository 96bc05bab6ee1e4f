"""An object's bytes, read from the store in ranges or as a whole."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Protocol

from sluice.errors import ArchiveDamaged

if TYPE_CHECKING:
    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import StoredObject


class Content(Protocol):
    """The bytes of an object that a manifest lists.

    Attributes:
        entry: what the manifest says of it.
    """

    entry: StoredObject

    def range(self, start: int, end: int) -> bytes:
        """The bytes [start, end), which are within the object. ArchiveDamaged if they are not."""
        ...


class Remote:
    """An object that is read in ranges. Nobody has compared it with its SHA-256.

    What is read is to be compared with the digests of its chunks.

    Args:
        objects: where it is.
        entry: what the manifest says of it.
    """

    def __init__(self, objects: Objects, entry: StoredObject) -> None:
        self.entry = entry
        self._objects = objects

    def range(self, start: int, end: int) -> bytes:
        """The bytes [start, end)."""
        data = self._objects.get(self.entry.name, start, end)
        if data is None:
            raise damaged(self.entry, "is missing")
        return _whole(data, start, end, self.entry)


class Checked:
    """An object that was read as a whole and is, byte for byte, the one of the manifest.

    Args:
        objects: where it is.
        entry: what the manifest says of it.

    Raises:
        ArchiveDamaged: it is not there, or another one.
    """

    def __init__(self, objects: Objects, entry: StoredObject) -> None:
        self.entry = entry
        # One byte more than there should be tells of a longer one, however long that is.
        data = objects.get(entry.name, 0, entry.size + 1)
        if data is None:
            raise damaged(entry, "is missing")
        if len(data) != entry.size:
            raise damaged(entry, f"has not {entry.size} bytes, as it should")
        found = hashlib.sha256(data).hexdigest()
        if found != entry.sha256:
            raise damaged(entry, f"holds other bytes: their SHA-256 is {found}")
        self._data = data

    def range(self, start: int, end: int) -> bytes:
        """The bytes [start, end)."""
        return _whole(self._data[start:end], start, end, self.entry)


class ContentFile(io.RawIOBase):
    """An object as a file that can be read anywhere in it.

    Args:
        content: the object.
    """

    def __init__(self, content: Content) -> None:
        super().__init__()
        self._content = content
        self._at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere else."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._content.entry.size}
        self._at = base[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Bytes from here on."""
        left = max(0, self._content.entry.size - self._at)
        size = left if size < 0 else min(size, left)
        data = self._content.range(self._at, self._at + size) if size else b""
        self._at += size
        return data


def damaged(entry: StoredObject, why: str) -> ArchiveDamaged:
    """The error that an object is not what it should be."""
    return ArchiveDamaged(f"{entry.name} {why}", name=entry.name)


def _whole(data: bytes, start: int, end: int, entry: StoredObject) -> bytes:
    if start < 0 or len(data) != end - start:
        raise damaged(entry, f"has no bytes {start} to {end}")
    return data
