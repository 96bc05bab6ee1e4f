"""Read and write the serialization in which Pravega's clients keep data in the store.

Numbers are big-endian. Lengths are compact: a number's first bits say how many bytes it has. Text
is an unsigned 16-bit length and that many bytes.

An object is a format byte (0), a version byte, the number of its revisions, and the revisions. Each
revision is a byte with its number, a 32-bit length and that many bytes. An object of one of several
kinds has the kind's byte between format and version. Later versions of a client add revisions to
those that earlier versions read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_K = TypeVar("_K")
_V = TypeVar("_V")

_FORMAT: Final = 0
_ANOTHER: Final = "Another version of a client may have written it."


class Input:
    """Bytes from which values are read one after the other.

    All methods raise ProtocolError if the next bytes are not a value of the kind asked for.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that were not read yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> memoryview:
        """Read so many bytes."""
        if not 0 <= size <= self.left:
            raise damaged(f"{size} bytes are announced where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """Read a number of one byte."""
        return self.take(1)[0]

    def boolean(self) -> bool:
        """Read a truth value."""
        return self.byte() != 0

    def int32(self) -> int:
        """Read a signed number of four bytes."""
        return int(struct.unpack(">i", self.take(4))[0])

    def int64(self) -> int:
        """Read a signed number of eight bytes."""
        return int(struct.unpack(">q", self.take(8))[0])

    def double(self) -> float:
        """Read a floating-point number of eight bytes."""
        return float(struct.unpack(">d", self.take(8))[0])

    def text(self) -> str:
        """Read a text. Bytes that are not UTF-8, as in Java's modified UTF-8, become escapes."""
        (size,) = struct.unpack(">H", self.take(2))
        return bytes(self.take(size)).decode(errors="backslashreplace")

    def count(self) -> int:
        """Read a compact number of one, two or four bytes, such as a length."""
        first = self.byte()
        if first < 0x80:  # noqa: PLR2004 - the first bit
            return first
        if first < 0xC0:  # noqa: PLR2004 - the first two bits
            return (first & 0x3F) << 8 | self.byte()
        return (first & 0x3F) << 24 | int.from_bytes(self.take(3))

    def array(self) -> memoryview:
        """Read a count, and that many bytes."""
        return self.take(self.count())

    def items(self, item: Callable[[], _V]) -> list[_V]:
        """Read a count, and that many values."""
        return [item() for _ in range(self.count())]

    def mapping(self, key: Callable[[], _K], value: Callable[[], _V]) -> dict[_K, _V]:
        """Read a count, and that many pairs of key and value."""
        return {key(): value() for _ in range(self.count())}

    def format(self) -> None:
        """Read the format byte, with which each object begins. It must be 0."""
        if (found := self.byte()) != _FORMAT:
            raise damaged(f"it has the format {found}")

    def revisions(self, known: int) -> list[Input]:
        """Read an object's version, which must be 0, and its revisions.

        Args:
            known: how many revisions the caller can read; an object may have fewer.
        """
        version, count = self.byte(), self.byte()
        if version != 0 or count > known:
            raise damaged(f"an object has version {version} with {count} revisions")
        found = []
        for number in range(count):
            if (revision := self.byte()) != number:
                raise damaged(f"revision {revision} stands where {number} is due")
            found.append(Input(self.take(self.int32())))
        return found


def damaged(what: str) -> ProtocolError:
    """Return the error for bytes that cannot be read."""
    return ProtocolError(f"the state of the reader group cannot be read: {what}", remedy=_ANOTHER)


# Writing: each function returns the bytes of a value.


def int32(value: int) -> bytes:
    """Write a signed number of four bytes."""
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    """Write a signed number of eight bytes."""
    return struct.pack(">q", value)


def double(value: float) -> bytes:
    """Write a floating-point number of eight bytes."""
    return struct.pack(">d", value)


def text(value: str) -> bytes:
    """Write a text. It may only have characters that names have."""
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def count(value: int) -> bytes:
    """Write a compact number: below 2^7 in one byte, below 2^14 in two, below 2^30 in four."""
    if value < 1 << 7:
        return struct.pack(">B", value)
    if value < 1 << 14:
        return struct.pack(">H", value | 0x8000)
    return struct.pack(">I", value | 0xC000_0000)


def compact(value: int, *, sign: bool = False) -> bytes:
    """Write a compact number of one, two, four or eight bytes.

    Args:
        value: the number, which must not be negative.
        sign: whether the form begins with a bit for the sign.

    Raises:
        ValueError: the number is too large.
    """
    bit = int(sign)
    for tag, size, code in ((0, 1, ">B"), (1, 2, ">H"), (2, 4, ">I"), (3, 8, ">Q")):
        if value < 1 << (8 * size - 2 - bit):
            return struct.pack(code, value | tag << (8 * size - 2 - bit))
    raise ValueError(f"{value} is too large")


def array(data: bytes) -> bytes:
    """Write a count, and that many bytes."""
    return count(len(data)) + data


def mapping(
    values: Mapping[_K, _V], key: Callable[[_K], bytes], value: Callable[[_V], bytes]
) -> bytes:
    """Write a count, and that many pairs of key and value."""
    return count(len(values)) + b"".join(key(k) + value(v) for k, v in values.items())


def versioned(revisions: Sequence[bytes], *, version: int = 0, kind: int | None = None) -> bytes:
    """Write an object.

    Args:
        revisions: the bytes of its revisions.
        version: its version.
        kind: the number of its kind, for an object of one of several kinds.
    """
    head = bytes([_FORMAT, *([] if kind is None else [kind]), version, len(revisions)])
    return head + b"".join(_revisions(revisions))


def _revisions(revisions: Sequence[bytes]) -> Iterable[bytes]:
    for number, data in enumerate(revisions):
        yield bytes([number]) + int32(len(data)) + data
