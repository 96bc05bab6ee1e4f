"""Encode and decode the frames of the segment store's protocol, without I/O.

A frame is an int32 type, an int32 length and that many bytes of payload, all big-endian. Each
message (see `messages`) names its frame type and its layout, a string with one letter per field.
One encoder and one decoder walk the layouts, so each bounds check exists once.

Bytes from a server are not trusted. For any bytes the decoders return a value or raise
ProtocolError. They never hold more than one frame of at most `MAX_READ` bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar
from uuid import UUID

from sluice.errors import ProtocolError
from sluice.stores.allowance import Held

if TYPE_CHECKING:
    from sluice.stores.reading import Buffer

VERSION: Final = 16
"""The protocol version that Sluice speaks."""

OLDEST_VERSION: Final = 5
"""The oldest version whose messages mean the same as in `VERSION`."""

MAX_PAYLOAD: Final = (1 << 24) - 1
"""Bytes of payload in a frame that Sluice sends, at most."""

MAX_SHORT: Final = 1 << 20
"""Bytes of payload in a received frame without a segment's data, at most. The longest ones are
refusals with a server's stack trace."""

MAX_READ: Final = (2 << 20) + (64 << 10)
"""Bytes of payload in the answer to a read, at most: the data that the store (0.13.0) gives at a
time, and the other fields."""

MAX_DATA: Final = MAX_PAYLOAD - 64
"""Bytes of data that fit into one append, beside its other fields."""

NOT_SET: Final = -(1 << 63)
"""The store's value for an attribute, or a last event number, that was never set."""

_HEADER: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")
_STRING: Final = struct.Struct(">H")
_SCALARS: Final = {
    "q": struct.Struct(">q"),  # long
    "i": struct.Struct(">i"),  # int
    "b": struct.Struct(">b"),  # byte
    "?": struct.Struct(">?"),  # boolean
}


class FrameType(IntEnum):
    """The frame types that Sluice sends or understands."""

    HELLO = -127
    SETUP_APPEND = 1
    APPEND_SETUP = 2
    APPEND_BLOCK_END = 4
    DATA_APPENDED = 7
    CONDITIONAL_CHECK_FAILED = 8
    READ_SEGMENT = 9
    SEGMENT_READ = 10
    GET_SEGMENT_INFO = 11
    SEGMENT_INFO = 12
    CREATE_SEGMENT = 20
    SEGMENT_CREATED = 21
    SEAL_SEGMENT = 28
    SEGMENT_SEALED = 29
    DELETE_SEGMENT = 30
    SEGMENT_DELETED = 31
    GET_ATTRIBUTE = 34
    ATTRIBUTE = 35
    UPDATE_ATTRIBUTE = 36
    ATTRIBUTE_UPDATED = 37
    TRUNCATE_SEGMENT = 38
    SEGMENT_TRUNCATED = 39
    WRONG_HOST = 50
    SEGMENT_IS_SEALED = 51
    SEGMENT_ALREADY_EXISTS = 52
    NO_SUCH_SEGMENT = 53
    INVALID_EVENT_NUMBER = 55
    SEGMENT_IS_TRUNCATED = 56
    OPERATION_UNSUPPORTED = 57
    MERGE_SEGMENTS = 58
    SEGMENTS_MERGED = 59
    AUTH_TOKEN_CHECK_FAILED = 60
    ERROR_MESSAGE = 61
    CONDITIONAL_BLOCK_END = 89
    KEEP_ALIVE = 100


class Frame(NamedTuple):
    """A whole frame. `payload` is valid until the next frame is received."""

    type: FrameType
    payload: memoryview


class Message:
    """Base of all messages, which are frozen dataclasses.

    `LAYOUT` has a letter for each field, in order: q long, i int, b byte, ? boolean, s string,
    u UUID, d data with its length before it, r the raw rest of the payload. Older servers may leave
    out fields after a bar. These fields then have their defaults.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]  # the names of the fields, as dataclasses have them

    TYPE: ClassVar[FrameType]
    LAYOUT: ClassVar[str]


_M = TypeVar("_M", bound=Message)


def encode(message: Message) -> list[Buffer]:
    """Return the pieces of a message's frame. Data is a piece of its own and is not copied.

    Raises:
        ProtocolError: the message does not fit into a frame.
    """
    pieces: list[Buffer] = []
    head = bytearray(_HEADER.size)
    tail = head
    for letter, name in zip(_letters(message.LAYOUT), message.__match_args__, strict=True):
        value = getattr(message, name)
        if letter == "d":
            data = memoryview(value).cast("B")
            tail += _LENGTH.pack(len(data))
            pieces += (tail, data)
            tail = bytearray()
        elif letter == "s":
            text = value.encode()
            if len(text) > 0xFFFF:  # noqa: PLR2004 - the largest uint16
                raise ProtocolError(f"a string of {len(text)} bytes is too long for the store")
            tail += _STRING.pack(len(text)) + text
        elif letter == "u":
            tail += value.bytes
        elif letter == "r":
            tail += value
        else:
            tail += _SCALARS[letter].pack(value)
    if tail:
        pieces.append(tail)
    size = sum(map(len, pieces)) - _HEADER.size
    if size > MAX_PAYLOAD:
        raise ProtocolError(f"a frame of {size} bytes is larger than {MAX_PAYLOAD}")
    _HEADER.pack_into(head, 0, message.TYPE, size)
    return pieces


def decode_as(kind: type[_M], frame: Frame) -> _M:
    """Decode a frame's payload as a message of `kind`. Bytes behind the last field are ignored.

    Raises:
        ProtocolError: the payload ends within a field, or a length in it is wrong.
    """
    required, _, optional = kind.LAYOUT.partition("|")
    values: list[Any] = []
    at = 0
    for place, letter in enumerate(required + optional):
        if place >= len(required) and at >= len(frame.payload):
            break
        value, at = _field(frame, letter, at)
        values.append(value)
    return kind(*values)


@cache
def _letters(layout: str) -> str:
    return layout.replace("|", "")


@lru_cache(maxsize=4096)
def _uuid(raw: bytes) -> UUID:
    """Return the writer with this id. A follower has one for each segment, and meets it often."""
    return UUID(bytes=raw)


def _field(frame: Frame, letter: str, at: int) -> tuple[Any, int]:
    """Return the field of kind `letter` at an offset of the payload, and the offset behind it."""
    payload = frame.payload
    try:
        if letter in _SCALARS:
            scalar = _SCALARS[letter]
            return scalar.unpack_from(payload, at)[0], at + scalar.size
        if letter == "u":
            return _uuid(bytes(payload[at : at + 16])), at + 16
        if letter == "r":
            return bytes(payload[at:]), len(payload)
        prefix = _STRING if letter == "s" else _LENGTH
        (length,) = prefix.unpack_from(payload, at)
    except (struct.error, ValueError):
        raise ProtocolError(f"{frame.type.name} ends within a field") from None
    start = at + prefix.size
    end = start + length
    if length < 0 or end > len(payload):
        raise ProtocolError(f"{frame.type.name} has a field of {length} bytes that do not fit")
    if letter == "d":
        return payload[start:end], end
    # Java writes modified UTF-8, which differs from UTF-8 only for rare characters of texts. So
    # replace bad bytes: an odd character in a stack trace must not hide the error with it.
    return str(payload[start:end], "utf-8", "replace"), end


_USUAL: Final = 1 << 16
"""Bytes of the payload buffer that a connection keeps between calls."""


class FrameDecoder:
    """Cuts a stream of bytes into frames.

    Bytes are received without a copy: receive into `room`, then call `advance` with their number.
    One payload buffer is used again and again, so a frame is valid until the next `advance`.
    """

    def __init__(self) -> None:
        self._header = memoryview(bytearray(_HEADER.size))
        self._payload = memoryview(bytearray(_USUAL))
        self._held = Held()
        self._type: FrameType | None = None
        self._length = 0
        self._filled = 0

    @property
    def room(self) -> memoryview:
        """The buffer for the next bytes; never empty."""
        if self._type is None:
            return self._header[self._filled :]
        return self._payload[self._filled : self._length]

    @property
    def header(self) -> bytes:
        """The bytes of the last header, as far as they came."""
        return bytes(self._header)

    def advance(self, received: int) -> Frame | None:
        """Note so many bytes that were put into `room`. Return a frame if they complete one.

        Raises:
            ProtocolError: the frame has an unknown type, or a length that its type cannot have.
        """
        self._filled += received
        if self._type is None:
            if self._filled < _HEADER.size:
                return None
            self._begin(*_HEADER.unpack(self._header))
        if self._type is None or self._filled < self._length:
            return None
        frame = Frame(self._type, self._payload[: self._length])
        self._type = None
        self._filled = 0
        return frame

    def relax(self) -> None:
        """Free a large buffer. Call it once the last frame is no longer used."""
        if len(self._payload) > _USUAL:
            self._payload = memoryview(bytearray(_USUAL))
            self._held.clear()

    def _begin(self, number: int, length: int) -> None:
        try:
            kind = FrameType(number)
        except ValueError:
            raise ProtocolError(f"a frame of the unknown type {number}") from None
        if not 0 <= length <= (MAX_READ if kind is FrameType.SEGMENT_READ else MAX_SHORT):
            raise ProtocolError(f"a {kind.name} frame of {length} bytes")
        if length > len(self._payload):
            self._held.clear()
            self._held.add(length)
            # Make a new buffer, and do not grow the old one: views of the last frame may be in use.
            self._payload = memoryview(bytearray(length))
        self._type, self._length, self._filled = kind, length, 0
