"""The serialization that Pravega's clients use for what they keep in the store.

Numbers are big-endian. Lengths are compact: the first bits of a number tell how many bytes it has.
Text is an unsigned 16-bit length and that many bytes. An object is a format byte (0), a byte of its
version, the number of its revisions, and each of these as a byte of its number, a 32-bit length and
so many bytes; one of several kinds has the kind's byte between the format and the version. A later
version of a client adds revisions to what an earlier one reads.
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
    """Reads values one after the other. ProtocolError where there is none of that kind."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> memoryview:
        """So many bytes."""
        if not 0 <= size <= self.left:
            raise damaged(f"{size} bytes are announced where {self.left} are left")
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """A number of one byte."""
        return self.take(1)[0]

    def boolean(self) -> bool:
        """A truth value."""
        return self.byte() != 0

    def int32(self) -> int:
        """A signed number of four bytes."""
        return int(struct.unpack(">i", self.take(4))[0])

    def int64(self) -> int:
        """A signed number of eight bytes."""
        return int(struct.unpack(">q", self.take(8))[0])

    def double(self) -> float:
        """A floating-point number."""
        return float(struct.unpack(">d", self.take(8))[0])

    def text(self) -> str:
        """A text. What is not UTF-8, as Java writes rare characters, is shown by its codes."""
        (size,) = struct.unpack(">H", self.take(2))
        return bytes(self.take(size)).decode(errors="backslashreplace")

    def count(self) -> int:
        """A compact number of one, two or four bytes, as lengths are."""
        first = self.byte()
        if first < 0x80:  # noqa: PLR2004 - the first bit
            return first
        if first < 0xC0:  # noqa: PLR2004 - the first two bits
            return (first & 0x3F) << 8 | self.byte()
        return (first & 0x3F) << 24 | int.from_bytes(self.take(3))

    def array(self) -> memoryview:
        """Bytes behind their number."""
        return self.take(self.count())

    def items(self, item: Callable[[], _V]) -> list[_V]:
        """Values behind their number."""
        return [item() for _ in range(self.count())]

    def mapping(self, key: Callable[[], _K], value: Callable[[], _V]) -> dict[_K, _V]:
        """Pairs behind their number."""
        return {key(): value() for _ in range(self.count())}

    def format(self) -> None:
        """The byte with which everything begins."""
        if (found := self.byte()) != _FORMAT:
            raise damaged(f"it has the format {found}")

    def revisions(self, known: int) -> list[Input]:
        """An object's revisions, behind its version, which has to be 0.

        Args:
            known: how many of them we can read; an object may have less.
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
    """The error that these are no such bytes."""
    return ProtocolError(f"the state of the reader group cannot be read: {what}", remedy=_ANOTHER)


# Writing: each function gives the bytes of a value.


def int32(value: int) -> bytes:
    """A signed number of four bytes."""
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    """A signed number of eight bytes."""
    return struct.pack(">q", value)


def double(value: float) -> bytes:
    """A floating-point number."""
    return struct.pack(">d", value)


def text(value: str) -> bytes:
    """A text of the characters that names have."""
    data = value.encode()
    return struct.pack(">H", len(data)) + data


def count(value: int) -> bytes:
    """A compact number: below 2^7 one byte, below 2^14 two, below 2^30 four."""
    if value < 1 << 7:
        return struct.pack(">B", value)
    if value < 1 << 14:
        return struct.pack(">H", value | 0x8000)
    return struct.pack(">I", value | 0xC000_0000)


def compact(value: int, *, sign: bool = False) -> bytes:
    """A compact number of one, two, four or eight bytes; not negative.

    Args:
        value: the number.
        sign: whether its form has a bit for the sign, which comes first.
    """
    bit = int(sign)
    for tag, size, code in ((0, 1, ">B"), (1, 2, ">H"), (2, 4, ">I"), (3, 8, ">Q")):
        if value < 1 << (8 * size - 2 - bit):
            return struct.pack(code, value | tag << (8 * size - 2 - bit))
    raise ValueError(f"{value} is too large")


def array(data: bytes) -> bytes:
    """Bytes behind their number."""
    return count(len(data)) + data


def mapping(
    values: Mapping[_K, _V], key: Callable[[_K], bytes], value: Callable[[_V], bytes]
) -> bytes:
    """Pairs behind their number."""
    return count(len(values)) + b"".join(key(k) + value(v) for k, v in values.items())


def versioned(revisions: Sequence[bytes], *, version: int = 0, kind: int | None = None) -> bytes:
    """An object.

    Args:
        revisions: of it.
        version: of it.
        kind: its number among several kinds.
    """
    head = bytes([_FORMAT, *([] if kind is None else [kind]), version, len(revisions)])
    return head + b"".join(_revisions(revisions))


def _revisions(revisions: Sequence[bytes]) -> Iterable[bytes]:
    for number, data in enumerate(revisions):
        yield bytes([number]) + int32(len(data)) + data
