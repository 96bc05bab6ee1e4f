"""The messages that Sluice and a segment store exchange, one class per frame type.

Requests carry a `request` number that their replies repeat, and a delegation `token`, which is
empty for a store without authentication. Offsets and lengths are in bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

from sluice.stores.pravega.wire.wire import (
    NOT_SET,
    OLDEST_VERSION,
    VERSION,
    FrameType,
    Message,
)

if TYPE_CHECKING:
    from uuid import UUID

    from sluice.stores.reading import Buffer


@dataclass(frozen=True, slots=True)
class _ForSegment(Message):
    LAYOUT: ClassVar = "qss"
    request: int
    segment: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class _Done(Message):
    LAYOUT: ClassVar = "qs"
    request: int
    segment: str


@dataclass(frozen=True, slots=True)
class Hello(Message):
    """The first frame in both directions: the versions that the sender speaks."""

    TYPE: ClassVar = FrameType.HELLO
    LAYOUT: ClassVar = "ii"
    high: int = VERSION
    low: int = OLDEST_VERSION


@dataclass(frozen=True, slots=True)
class KeepAlive(Message):
    """A sign of life, which needs no answer."""

    TYPE: ClassVar = FrameType.KEEP_ALIVE
    LAYOUT: ClassVar = ""


@dataclass(frozen=True, slots=True)
class SetupAppend(Message):
    """Begin to append to a segment as `writer`."""

    TYPE: ClassVar = FrameType.SETUP_APPEND
    LAYOUT: ClassVar = "quss"
    request: int
    writer: UUID
    segment: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class AppendSetup(Message):
    """The append may begin. `last` is the writer's last event number, or NOT_SET."""

    TYPE: ClassVar = FrameType.APPEND_SETUP
    LAYOUT: ClassVar = "qsuq"
    request: int
    segment: str
    writer: UUID
    last: int


@dataclass(frozen=True, slots=True)
class AppendBlockEnd(Message):
    """Append `data`. `whole` stays 0: it counts the bytes of an AppendBlock, which is not sent."""

    TYPE: ClassVar = FrameType.APPEND_BLOCK_END
    LAYOUT: ClassVar = "uidiqq"
    writer: UUID
    whole: int
    data: Buffer
    events: int
    event_number: int
    request: int


@dataclass(frozen=True, slots=True)
class ConditionalBlockEnd(Message):
    """Append `data` if the segment is exactly `expected` bytes long."""

    TYPE: ClassVar = FrameType.CONDITIONAL_BLOCK_END
    LAYOUT: ClassVar = "uqqdq"
    writer: UUID
    event_number: int
    expected: int
    data: Buffer
    request: int


@dataclass(frozen=True, slots=True)
class DataAppended(Message):
    """All blocks up to `event_number` are stored; `previous` is the number stored before.

    `offset` is the segment's length behind the block with this number.
    """

    TYPE: ClassVar = FrameType.DATA_APPENDED
    LAYOUT: ClassVar = "uqq|qq"
    writer: UUID
    event_number: int
    previous: int
    request: int = -1
    offset: int = -1


@dataclass(frozen=True, slots=True)
class ConditionalCheckFailed(Message):
    """The segment has another length than expected."""

    TYPE: ClassVar = FrameType.CONDITIONAL_CHECK_FAILED
    LAYOUT: ClassVar = "uq|q"
    writer: UUID
    event_number: int
    request: int = -1


@dataclass(frozen=True, slots=True)
class ReadSegment(Message):
    """Read up to `length` bytes from `offset`."""

    TYPE: ClassVar = FrameType.READ_SEGMENT
    LAYOUT: ClassVar = "sqisq"
    segment: str
    offset: int
    length: int
    token: str
    request: int


@dataclass(frozen=True, slots=True)
class SegmentRead(Message):
    """Bytes of a segment, perhaps fewer than asked for."""

    TYPE: ClassVar = FrameType.SEGMENT_READ
    LAYOUT: ClassVar = "sq??d|q"
    segment: str
    offset: int
    at_tail: bool
    at_end: bool
    data: memoryview
    request: int = -1


class GetSegmentInfo(_ForSegment):
    """Ask for a segment's state."""

    __slots__ = ()
    TYPE = FrameType.GET_SEGMENT_INFO


@dataclass(frozen=True, slots=True)
class StreamSegmentInfo(Message):
    """A segment's state. Its bytes [start, length) can be read."""

    TYPE: ClassVar = FrameType.SEGMENT_INFO
    LAYOUT: ClassVar = "qs???qqq"
    request: int
    segment: str
    exists: bool
    sealed: bool
    deleted: bool
    modified: int
    length: int
    start: int


@dataclass(frozen=True, slots=True)
class CreateSegment(Message):
    """Make a segment that does not scale by itself. `rollover` 0 asks for no rollover size."""

    TYPE: ClassVar = FrameType.CREATE_SEGMENT
    LAYOUT: ClassVar = "qsibsq"
    request: int
    segment: str
    target_rate: int = 0
    scale_type: int = 0
    token: str = ""
    rollover: int = 0


class SegmentCreated(_Done):
    """The segment was made."""

    __slots__ = ()
    TYPE = FrameType.SEGMENT_CREATED


class SealSegment(_ForSegment):
    """Seal a segment, so that it takes no more bytes."""

    __slots__ = ()
    TYPE = FrameType.SEAL_SEGMENT


class SegmentSealedReply(_Done):
    """The segment is sealed."""

    __slots__ = ()
    TYPE = FrameType.SEGMENT_SEALED


@dataclass(frozen=True, slots=True)
class TruncateSegment(Message):
    """Truncate a segment, sealed or not, so that it begins at `offset`."""

    TYPE: ClassVar = FrameType.TRUNCATE_SEGMENT
    LAYOUT: ClassVar = "qsqs"
    request: int
    segment: str
    offset: int
    token: str = ""


class SegmentTruncatedReply(_Done):
    """The segment is truncated."""

    __slots__ = ()
    TYPE = FrameType.SEGMENT_TRUNCATED


class DeleteSegment(_ForSegment):
    """Delete a segment."""

    __slots__ = ()
    TYPE = FrameType.DELETE_SEGMENT


class SegmentDeleted(_Done):
    """The segment is gone."""

    __slots__ = ()
    TYPE = FrameType.SEGMENT_DELETED


@dataclass(frozen=True, slots=True)
class GetAttribute(Message):
    """Ask for an attribute of a segment."""

    TYPE: ClassVar = FrameType.GET_ATTRIBUTE
    LAYOUT: ClassVar = "qsus"
    request: int
    segment: str
    attribute: UUID
    token: str = ""


@dataclass(frozen=True, slots=True)
class Attribute(Message):
    """An attribute's value, or NOT_SET."""

    TYPE: ClassVar = FrameType.ATTRIBUTE
    LAYOUT: ClassVar = "qq"
    request: int
    value: int


@dataclass(frozen=True, slots=True)
class UpdateAttribute(Message):
    """Set an attribute to `new` if its value is `expected`."""

    TYPE: ClassVar = FrameType.UPDATE_ATTRIBUTE
    LAYOUT: ClassVar = "qsuqqs"
    request: int
    segment: str
    attribute: UUID
    new: int
    expected: int = NOT_SET
    token: str = ""


@dataclass(frozen=True, slots=True)
class AttributeUpdated(Message):
    """The result of a compare-and-set, by UpdateAttribute or within MergeSegments."""

    TYPE: ClassVar = FrameType.ATTRIBUTE_UPDATED
    LAYOUT: ClassVar = "q?"
    request: int
    success: bool


class UpdateKind(IntEnum):
    """The way in which an update changes an attribute."""

    REPLACE = 1
    ADD = 3
    REPLACE_IF_EQUAL = 4


_UPDATE: Final = struct.Struct(">16sbqq")


def attribute_update(attribute: UUID, kind: UpdateKind, new: int, expected: int) -> bytes:
    """Return the bytes of one update in MergeSegments. ADD adds `new`; a missing value is 0."""
    return _UPDATE.pack(attribute.bytes, kind, new, expected)


@dataclass(frozen=True, slots=True)
class MergeSegments(Message):
    """Append `source` to `target` and update attributes of `target`, or do neither.

    `updates` holds `count` updates, each made by `attribute_update`. The store seals `source`
    first, even if it then refuses.
    """

    TYPE: ClassVar = FrameType.MERGE_SEGMENTS
    LAYOUT: ClassVar = "qsssir"
    request: int
    target: str
    source: str
    token: str
    count: int
    updates: bytes


@dataclass(frozen=True, slots=True)
class SegmentsMerged(Message):
    """The merge went through, now or before."""

    TYPE: ClassVar = FrameType.SEGMENTS_MERGED
    LAYOUT: ClassVar = "qssq"
    request: int
    target: str
    source: str
    length: int


ANSWERS: Final[dict[FrameType, type[Message]]] = {
    kind.TYPE: kind
    for kind in (
        Hello,
        KeepAlive,
        AppendSetup,
        DataAppended,
        ConditionalCheckFailed,
        SegmentRead,
        StreamSegmentInfo,
        SegmentCreated,
        SegmentSealedReply,
        SegmentTruncatedReply,
        SegmentDeleted,
        Attribute,
        AttributeUpdated,
        SegmentsMerged,
    )
}
"""The messages that a store sends, apart from refusals, by frame type; see `refusals`."""
