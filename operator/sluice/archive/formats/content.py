"""Read an object's bytes, and compare them with the manifest."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

from sluice.errors import ArchiveDamaged

if TYPE_CHECKING:
    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import StoredObject


class Checked:
    """An object that is read as a whole, into memory, and compared with the manifest's SHA-256.

    Args:
        objects: the store of objects.
        entry: the object's entry in the manifest.

    Attributes:
        entry: see above.

    Raises:
        ArchiveDamaged: the object is missing, or has other bytes.
    """

    def __init__(self, objects: Objects, entry: StoredObject) -> None:
        self.entry = entry
        # One byte more than there should be shows that an object is too long, of any length.
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
        """Return the bytes [start, end). ArchiveDamaged if the object does not have them."""
        data = self._data[start:end]
        if start < 0 or len(data) != end - start:
            raise damaged(self.entry, f"has no bytes {start} to {end}")
        return data


class ContentFile(io.RawIOBase):
    """An object as a read-only file with random access.

    Args:
        content: the object.
    """

    def __init__(self, content: Checked) -> None:
        super().__init__()
        self._content = content
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position, and return the new one."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._content.entry.size}
        self._at = base[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes from the position on, or all that are left if it is negative."""
        left = max(0, self._content.entry.size - self._at)
        size = left if size < 0 else min(size, left)
        data = self._content.range(self._at, self._at + size) if size else b""
        self._at += size
        return data


def damaged(entry: StoredObject, why: str) -> ArchiveDamaged:
    """Return the error for an object that is damaged, missing or another one."""
    return ArchiveDamaged(f"{entry.name} {why}", name=entry.name)
