"""The store's error replies, and what each of them means to the caller.

`REFUSALS` is the one place that knows: the message's class, the error it becomes, and whether the
store closes the connection after it (it then takes no further requests, so we close it too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from sluice.errors import (
    BackendError,
    InvalidEventNumber,
    NoSuchSegment,
    ProtocolError,
    SegmentExists,
    SegmentSealed,
    SegmentTruncated,
    StoreRejected,
    TokenExpired,
    WrongHost,
)
from sluice.stores.pravega.wire.messages import ANSWERS
from sluice.stores.pravega.wire.wire import Frame, FrameType, Message, decode_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

_SHOWN = 300
"""Characters of the store's own words that an error repeats."""


class Refusal(Message):
    """Base of the error replies; `request` is the number of the request refused."""

    __slots__ = ()
    request: int


@dataclass(frozen=True, slots=True)
class SegmentHasMoved(Refusal):
    """Another server owns the segment; `host` is often empty."""

    TYPE: ClassVar = FrameType.WRONG_HOST
    LAYOUT: ClassVar = "qss|s"
    request: int
    segment: str
    host: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class SegmentIsSealed(Refusal):
    """The segment takes no more bytes; or a read waited at its end while it was sealed."""

    TYPE: ClassVar = FrameType.SEGMENT_IS_SEALED
    LAYOUT: ClassVar = "qs|sq"
    request: int
    segment: str
    trace: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class SegmentAlreadyExists(Refusal):
    """The segment to create is there."""

    TYPE: ClassVar = FrameType.SEGMENT_ALREADY_EXISTS
    LAYOUT: ClassVar = "qs|s"
    request: int
    segment: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class SegmentIsMissing(Refusal):
    """There is no such segment."""

    TYPE: ClassVar = FrameType.NO_SUCH_SEGMENT
    LAYOUT: ClassVar = "qs|sq"
    request: int
    segment: str
    trace: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class EventNumberRefused(Refusal):
    """The writer's last event number is not the one before this block."""

    TYPE: ClassVar = FrameType.INVALID_EVENT_NUMBER
    LAYOUT: ClassVar = "uq|sq"
    writer: UUID
    request: int
    trace: str = ""
    event_number: int = -1


@dataclass(frozen=True, slots=True)
class SegmentIsTruncated(Refusal):
    """The bytes asked for are gone; the segment begins at `start`."""

    TYPE: ClassVar = FrameType.SEGMENT_IS_TRUNCATED
    LAYOUT: ClassVar = "qsq|sq"
    request: int
    segment: str
    start: int
    trace: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class OperationUnsupported(Refusal):
    """The store does not do such a thing with such a segment."""

    TYPE: ClassVar = FrameType.OPERATION_UNSUPPORTED
    LAYOUT: ClassVar = "qs|s"
    request: int
    operation: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TokenRefused(Refusal):
    """The delegation token is missing, too old or for something else (`code`)."""

    TYPE: ClassVar = FrameType.AUTH_TOKEN_CHECK_FAILED
    LAYOUT: ClassVar = "q|si"
    request: int
    trace: str = ""
    code: int = -1


@dataclass(frozen=True, slots=True)
class ErrorMessage(Refusal):
    """Anything else that went wrong, in the store's words."""

    TYPE: ClassVar = FrameType.ERROR_MESSAGE
    LAYOUT: ClassVar = "qss|i"
    request: int
    segment: str
    message: str
    code: int = -1


class _Meaning(NamedTuple):
    """What a refusal means. `error` takes the message and the segment that the request named."""

    kind: type[Refusal]
    error: Callable[[Any, str], BackendError]
    closes: bool


REFUSALS: Final[dict[FrameType, _Meaning]] = {
    meaning.kind.TYPE: meaning
    for meaning in (
        _Meaning(
            SegmentHasMoved,
            lambda m, name: WrongHost(f"another server owns {name}", segment=name, host=m.host),
            closes=True,
        ),
        _Meaning(
            SegmentIsSealed,
            lambda _, name: SegmentSealed(f"{name} is sealed", segment=name),
            closes=False,  # but where it refuses an append, which has a connection of its own
        ),
        _Meaning(
            SegmentAlreadyExists,
            lambda _, name: SegmentExists(f"{name} exists already", segment=name),
            closes=False,
        ),
        _Meaning(
            SegmentIsMissing,
            lambda _, name: NoSuchSegment(f"there is no segment {name}", segment=name),
            closes=False,
        ),
        _Meaning(
            EventNumberRefused,
            lambda m, name: InvalidEventNumber(
                f"{name} has another last event number than {m.event_number} follows: "
                f"somebody else appends as writer {m.writer}",
                segment=name,
            ),
            closes=True,
        ),
        _Meaning(
            SegmentIsTruncated,
            lambda m, name: SegmentTruncated(
                f"{name} begins at byte {m.start} now, the bytes before are gone",
                segment=name,
                start_offset=m.start,
            ),
            closes=False,
        ),
        _Meaning(
            OperationUnsupported,
            lambda m, name: StoreRejected(f"the store does not support {m.operation} of {name}"),
            closes=True,
        ),
        _Meaning(
            TokenRefused,
            lambda m, name: TokenExpired(
                f"the store refuses the delegation token for {name} (code {m.code})"
            ),
            closes=True,
        ),
        _Meaning(
            ErrorMessage,
            lambda m, name: StoreRejected(f"the store failed on {name}: {m.message[:_SHOWN]}"),
            closes=True,
        ),
    )
}


def error_of(refusal: Refusal, segment: str) -> BackendError:
    """The error that a refusal is, told about the segment that the request named."""
    return REFUSALS[refusal.TYPE].error(refusal, segment)


def closes(refusal: Refusal) -> bool:
    """Whether the store closes the connection after this refusal."""
    return REFUSALS[refusal.TYPE].closes


def decode(frame: Frame) -> Message:
    """A frame as the message it is.

    Raises:
        ProtocolError: the payload is damaged, or a store never sends such a frame.
    """
    kind = ANSWERS.get(frame.type)
    if kind is None:
        meaning = REFUSALS.get(frame.type)
        if meaning is None:
            raise ProtocolError(f"a store does not send frames of type {frame.type.name}")
        kind = meaning.kind
    return decode_as(kind, frame)
