"""The store's error replies, and the errors of `sluice.errors` that they become.

`REFUSALS` has, for each reply, the message's class, the error, and whether the store closes the
connection after it. Such a connection takes no further requests, so this side closes it too.
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
    StoreMoving,
    StoreRejected,
    TokenExpired,
)
from sluice.stores.pravega.wire.messages import ANSWERS
from sluice.stores.pravega.wire.wire import Frame, FrameType, Message, decode_as

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

_SHOWN = 300
"""Characters of the store's own message that an error repeats."""


class Refusal(Message):
    """Base of the error replies; `request` is the number of the refused request."""

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
    """The segment takes no more bytes, or it was sealed while a read waited at its end."""

    TYPE: ClassVar = FrameType.SEGMENT_IS_SEALED
    LAYOUT: ClassVar = "qs|sq"
    request: int
    segment: str
    trace: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class SegmentAlreadyExists(Refusal):
    """The segment to create exists already."""

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
    """The writer's last event number differs from the number that this block follows."""

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
    """The store does not support this operation on this segment."""

    TYPE: ClassVar = FrameType.OPERATION_UNSUPPORTED
    LAYOUT: ClassVar = "qs|s"
    request: int
    operation: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class TokenRefused(Refusal):
    """The delegation token is missing, expired, or for another access (`code` says which)."""

    TYPE: ClassVar = FrameType.AUTH_TOKEN_CHECK_FAILED
    LAYOUT: ClassVar = "q|si"
    request: int
    trace: str = ""
    code: int = -1


@dataclass(frozen=True, slots=True)
class ErrorMessage(Refusal):
    """Any other failure, in the store's words."""

    TYPE: ClassVar = FrameType.ERROR_MESSAGE
    LAYOUT: ClassVar = "qss|i"
    request: int
    segment: str
    message: str
    code: int = -1


class _Meaning(NamedTuple):
    """The meaning of a refusal.

    Attributes:
        kind: the class of the message.
        error: makes the error from the message and the segment that the request named.
        closes: whether the store closes the connection afterwards.
    """

    kind: type[Refusal]
    error: Callable[[Any, str], BackendError]
    closes: bool


REFUSALS: Final[dict[FrameType, _Meaning]] = {
    meaning.kind.TYPE: meaning
    for meaning in (
        _Meaning(
            SegmentHasMoved,
            lambda m, name: StoreMoving(f"{name} moves", segment=name, host=m.host),
            closes=True,
        ),
        _Meaning(
            SegmentIsSealed,
            lambda _, name: SegmentSealed(f"{name} is sealed", segment=name),
            closes=False,  # except for a refused append, which has a connection of its own
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
                f"another client appends as writer {m.writer}",
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
    """Return the error that a refusal means for the segment that the request named."""
    return REFUSALS[refusal.TYPE].error(refusal, segment)


def closes(refusal: Refusal) -> bool:
    """Tell whether the store closes the connection after this refusal."""
    return REFUSALS[refusal.TYPE].closes


def decode(frame: Frame) -> Message:
    """Decode the message in a frame.

    Raises:
        ProtocolError: the payload is damaged, or stores do not send frames of this type.
    """
    kind = ANSWERS.get(frame.type)
    if kind is None:
        meaning = REFUSALS.get(frame.type)
        if meaning is None:
            raise ProtocolError(f"a store does not send frames of type {frame.type.name}")
        kind = meaning.kind
    return decode_as(kind, frame)
