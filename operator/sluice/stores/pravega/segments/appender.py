"""Appends to a segment: fenced ones with a window, and single ones at an offset."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from sluice.errors import (
    BackendError,
    InvalidEventNumber,
    NoSuchSegment,
    ProtocolError,
    SegmentSealed,
    StoreTimeout,
    StoreUnavailable,
    TokenExpired,
)
from sluice.stores.pravega.names import TokenAccess
from sluice.stores.pravega.segments.transport import Ask
from sluice.stores.pravega.segments.window import STALL, InFlightWindow
from sluice.stores.pravega.wire.messages import (
    AppendBlockEnd,
    AppendSetup,
    ConditionalBlockEnd,
    ConditionalCheckFailed,
    DataAppended,
    GetSegmentInfo,
    SetupAppend,
    StreamSegmentInfo,
)
from sluice.stores.pravega.wire.refusals import Refusal, error_of
from sluice.stores.pravega.wire.wire import MAX_DATA, NOT_SET

if TYPE_CHECKING:
    from uuid import UUID

    from sluice.stores.pravega.segments.transport import Transport
    from sluice.stores.pravega.wire.connection import Connection
    from sluice.stores.pravega.wire.wire import Message
    from sluice.stores.reading import Buffer


_MOST_EVENTS: Final = (1 << 31) - 1
"""Events in a block, at most: their number is an int32 (`WireCommands.AppendBlockEnd`)."""


class _OpenAppend(NamedTuple):
    """A connection set up for a writer's appends.

    Attributes:
        connection: the connection.
        last: the writer's last event number in the segment; None if it has none.
        until: the monotonic time in seconds up to which the token may be used.
    """

    connection: Connection
    last: int | None
    until: float


class SegmentAppender:
    """An open, fenced append; see `sluice.stores.writing.Appender`.

    It has a connection of its own, which is never used again: the store closes it when the segment
    is deleted, or when the token of the set-up expires. Before the token expires, the appender
    waits until all blocks are confirmed, and goes on over a new connection.

    Args:
        transport: connects to the segment's owner.
        name: the segment's full name.
        writer: the id under which the store remembers the last event number.
        window: bytes in flight, at most.

    Raises:
        NoSuchSegment: there is no such segment. A sealed segment is noticed by the first append.
    """

    def __init__(self, transport: Transport, name: str, *, writer: UUID, window: int) -> None:
        self._transport = transport
        self._name = name
        self._writer = writer
        self._window = InFlightWindow(window)
        self._highest = NOT_SET
        self._offset: int | None = None
        self._timeout = transport.timeouts.stall
        self._open = _set_up(transport, name, writer)
        self._last = self._acknowledged = self._open.last
        if self._last is not None:
            self._highest = self._last

    @property
    def last(self) -> int | None:
        """The last event number that the store had when this appender was set up; None if none."""
        return self._last

    @property
    def acknowledged(self) -> int | None:
        """The last event number that the store has confirmed."""
        return self._acknowledged

    @property
    def offset(self) -> int | None:
        """The segment's length behind the last block that the store has confirmed; None if none."""
        return self._offset

    def append(self, data: Buffer, *, event_number: int, events: int = 1) -> None:
        """Send a block; see `sluice.stores.writing.Appender`. The data may be changed afterwards.

        Raises:
            ValueError: the block is empty or larger than a frame holds, which is some 16 MiB; the
                event number is not higher than the last one; or the block has no events, or more
                than the wire's int holds.
        """
        block = _checked(data)
        if not 0 < events <= _MOST_EVENTS:
            raise ValueError(f"a block has 1 to {_MOST_EVENTS} events, not {events}")
        if event_number <= self._highest:
            # The store drops such a block without an error, or hangs up.
            raise ValueError(f"event number {event_number} does not follow {self._highest}")
        try:
            if monotonic() >= self._open.until:
                self._renew()
            while (message := self._open.connection.poll()) is not None:
                self._take(message)
            while not self._window.has_room(len(block)):
                self._take(self._open.connection.receive(self._timeout))
            self._send(block, event_number, events)
        except BackendError as error:
            raise self._broken(error) from None
        self._highest = event_number

    def has_room(self, size: int) -> bool:
        """Tell whether a block can be sent without waiting; see `writing.Appender`."""
        oldest = self._window.oldest
        late = oldest is not None and monotonic() - oldest >= STALL
        return not late and self._window.has_room(size)

    def pump(self) -> None:
        """Take in the acknowledgements that are here, without waiting. Raises as `append`.

        StoreTimeout: the first block in flight has waited for longer than the time-out for stalls.
        If nothing is in flight, the connection is not looked at: an idle appender costs no calls,
        and the next append renews a connection that the store may have closed for its old token.
        """
        if not self._window.in_flight:
            return
        try:
            while self._window.in_flight and (message := self._open.connection.poll()) is not None:
                self._take(message)
            oldest = self._window.oldest
            if oldest is not None and monotonic() - oldest > self._timeout:
                raise StoreTimeout(
                    f"{self._open.connection.peer} has confirmed nothing for {self._timeout:.3g} s"
                )
        except BackendError as error:
            raise self._broken(error) from None

    def flush(self) -> None:
        """Wait until everything sent is confirmed. Raises as `append`."""
        try:
            self._flush()
        except BackendError as error:
            raise self._broken(error) from None

    def close(self) -> None:
        """Hang up, without waiting for blocks in flight."""
        self._open.connection.close()

    def _send(self, block: memoryview, event_number: int, events: int) -> None:
        connection = self._open.connection
        request = connection.next_request()
        message = AppendBlockEnd(self._writer, 0, block, events, event_number, request)
        try:
            connection.send(message, self._timeout)
        except StoreUnavailable:
            # The store refuses a block and then hangs up, so its reason may have arrived already.
            while (reply := _what_came(connection)) is not None:
                self._take(reply)
            raise
        self._window.sent(event_number, len(block), monotonic())

    def _flush(self) -> None:
        while self._window.in_flight:
            self._take(self._open.connection.receive(self._timeout))

    def _renew(self) -> None:
        self._flush()
        self._open.connection.close()
        self._open = _set_up(self._transport, self._name, self._writer)
        if self._open.last != self._acknowledged:
            raise InvalidEventNumber(
                f"another writer appended to {self._name} as {self._writer}", segment=self._name
            )

    def _take(self, message: Message) -> None:
        if isinstance(message, Refusal):
            raise error_of(message, self._name)
        if not isinstance(message, DataAppended) or message.writer != self._writer:
            raise ProtocolError(f"{self._open.connection.peer} sent what is no acknowledgement")
        self._acknowledged = message.event_number
        if message.offset >= 0:  # older servers leave it out
            self._offset = message.offset
        self._window.acknowledged(message.event_number, monotonic())

    def _broken(self, error: BackendError) -> BackendError:
        """Close the connection after an error, and return the error that explains it.

        The segment's owner is looked up anew by the next try.
        """
        self.close()
        return _explained(self._transport, self._name, error)


def append_at(transport: Transport, name: str, offset: int, data: bytes) -> bool:
    """Append `data` to a segment if it is exactly `offset` bytes long; False when it is not.

    The connection is always closed, since the store closes it after a failed condition.

    Raises:
        ValueError: the block is empty or too large, as for `SegmentAppender.append`.
    """
    block = _checked(data)
    writer = uuid4()
    connection = _set_up(transport, name, writer).connection
    try:
        request = connection.next_request()
        connection.send(
            ConditionalBlockEnd(writer, 1, offset, block, request), transport.timeouts.call
        )
        reply = connection.receive(transport.timeouts.call)
        if isinstance(reply, Refusal):
            raise error_of(reply, name)
    except BackendError as error:
        raise _explained(transport, name, error) from None
    finally:
        connection.close()
    if not isinstance(reply, DataAppended | ConditionalCheckFailed) or reply.writer != writer:
        raise ProtocolError(f"{connection.peer} sent what is no answer to an append")
    return isinstance(reply, DataAppended)


def _explained(transport: Transport, name: str, error: BackendError) -> BackendError:
    """Return the error that says why an append broke off.

    A store that refuses a block says so and hangs up, and sometimes only hangs up. So after a lost
    connection, look at the segment itself: it may be gone or sealed.
    """
    error = transport.recover(name, TokenAccess.READ_WRITE, error, first=True)
    if not isinstance(error, StoreUnavailable) or isinstance(error, StoreTimeout):
        return error
    try:
        info = transport.ask_one(
            Ask(name, TokenAccess.READ, lambda request, token: GetSegmentInfo(request, name, token))
        ).reply
    except BackendError:
        return error
    if isinstance(info, NoSuchSegment):
        return info
    if isinstance(info, StreamSegmentInfo) and info.sealed:
        return SegmentSealed(f"{name} is sealed", segment=name)
    return error


def _checked(data: Buffer) -> memoryview:
    block = memoryview(data).cast("B")
    if not 0 < len(block) <= MAX_DATA:
        raise ValueError(f"a block has 1 to {MAX_DATA} bytes, not {len(block)}")
    return block


def _set_up(transport: Transport, name: str, writer: UUID) -> _OpenAppend:
    """Set an append up. Use a new token if the store does not accept the first."""
    first = True
    while True:
        try:
            return _try_to_set_up(transport, name, writer)
        except BackendError as error:
            again = transport.recover(name, TokenAccess.READ_WRITE, error, first=first)
            if not isinstance(again, TokenExpired):
                raise again from None
            first = False


def _try_to_set_up(transport: Transport, name: str, writer: UUID) -> _OpenAppend:
    token, life = transport.token(name, TokenAccess.READ_WRITE)
    until = monotonic() + life
    timeout = transport.timeouts.call
    connection = transport.connect(name)
    try:
        last = _last_number(connection, name, writer, token=token, timeout=timeout)
    except BaseException:
        connection.close()
        raise
    return _OpenAppend(connection, last, until)


def _last_number(
    connection: Connection, name: str, writer: UUID, *, token: str, timeout: float
) -> int | None:
    """Set an append up. Return the writer's last event number in the segment; None if none."""
    request = connection.next_request()
    connection.send(SetupAppend(request, writer, name, token), timeout)
    reply = connection.receive(timeout)
    if isinstance(reply, Refusal):
        raise error_of(reply, name)
    if not isinstance(reply, AppendSetup) or reply.request != request:
        raise ProtocolError(f"{connection.peer} did not answer the set-up of an append")
    return None if reply.last == NOT_SET else reply.last


def _what_came(connection: Connection) -> Message | None:
    try:
        return connection.poll()
    except StoreUnavailable:
        return None
