"""A connection to a segment store: the handshake, deadlines, and whole messages both ways."""

from __future__ import annotations

import math
import select
from collections import deque
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError, StoreTimeout, StoreUnavailable
from sluice.stores import deadline as deadlines
from sluice.stores.pravega.sockets.connecting import connect, is_gone, speaks_tls
from sluice.stores.pravega.sockets.tls import ADDRESS, WITH_TLS, said, unwelcome
from sluice.stores.pravega.sockets.wires import drop
from sluice.stores.pravega.wire.messages import Hello, SegmentRead
from sluice.stores.pravega.wire.refusals import decode
from sluice.stores.pravega.wire.wire import (
    OLDEST_VERSION,
    VERSION,
    FrameDecoder,
    FrameType,
    Message,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.errors import BackendError
    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.sockets.tls import TLS
    from sluice.stores.pravega.sockets.wires import Wire

_MOST_EARLY: Final = 1 << 16
"""Messages that are received and kept during a send; mostly acknowledgements of blocks."""

_MOST_UNREAD: Final = 64 << 20
"""Bytes of segments' data in these messages."""


_LOOK: Final = 0.5
"""Seconds between two checks whether the peer is there, during a wait."""

_GLANCE: Final = 1.0
"""Seconds in which a server that hung up has to show that it speaks TLS."""

_ALERT: Final = b"\x15\x03"
"""The beginning of an alert of TLS, by which a server refuses bytes that are none."""


class Connection:
    """A connection for one caller at a time. It blocks, up to the timeout of each call.

    The wire itself never blocks. Each wait ends at a monotonic deadline, so a peer that sends a
    byte now and then cannot hold a caller for longer. Buffer sizes are left to the kernel, which
    tunes them to the path; setting them would turn that off.

    Args:
        wire: a connected socket, which the connection owns from now on.
        peer: the server's address, for error messages.

    Attributes:
        version: the newest protocol version that the peer speaks; 0 before the handshake.
        requests: the number of requests so far.
        heard: the monotonic time in seconds at which the peer's last whole message came.
    """

    def __init__(self, wire: Wire, peer: Endpoint) -> None:
        self.peer = peer
        self.closed = False
        self.version = 0
        self._wire = wire
        self._send, self._receive_into = wire.send, wire.receive_into
        self._poll = select.poll()
        self._poll.register(wire.raw)
        self._decoder = FrameDecoder()
        self._early: deque[Message] = deque()
        self._unread = 0
        self.requests = 0
        self.heard = monotonic()

    @classmethod
    def open(cls, peer: Endpoint, timeout: float, tls: TLS | None = None) -> Connection:
        """Connect and shake hands within `timeout` seconds; with TLS if it is given.

        Raises:
            StoreUnavailable: no server listens there, or it hung up.
            StoreTimeout: it took too long.
            CertificateRejected: its certificate does not verify.
            ProtocolError: the peer is no segment store, or speaks no version that Sluice speaks.
        """
        timeout = deadlines.left(timeout)
        deadline = monotonic() + timeout
        wire = connect(peer, timeout, tls)
        try:
            connection = cls(wire, peer)
            try:
                connection._shake_hands(deadline - monotonic())
            except (StoreUnavailable, ProtocolError) as error:
                if tls is None and connection._is_refused_for_tls(error):
                    raise ProtocolError(
                        f"{peer} speaks TLS, and its address asks for none",
                        field=ADDRESS,
                        remedy=WITH_TLS,
                    ) from None
                raise
        except BaseException:
            wire.close()
            raise
        return connection

    def _is_refused_for_tls(self, error: BackendError) -> bool:
        """Tell whether the greeting failed since the server expects TLS.

        Some servers then say so with an alert of TLS, and others, such as Pravega, only hang up.
        """
        if isinstance(error, ProtocolError):
            return self._decoder.header.startswith(_ALERT)
        return not isinstance(error, StoreTimeout) and speaks_tls(self.peer, _GLANCE)

    def _shake_hands(self, timeout: float) -> None:
        self.send(Hello(), timeout)
        hello = self.receive(timeout)
        if not isinstance(hello, Hello):
            raise ProtocolError(f"{self.peer} did not begin with its protocol version")
        if hello.low > VERSION or hello.high < OLDEST_VERSION:
            raise ProtocolError(
                f"{self.peer} speaks versions {hello.low} to {hello.high} of the protocol, "
                f"and Sluice {OLDEST_VERSION} to {VERSION}"
            )
        self.version = hello.high

    def next_request(self) -> int:
        """Return a request number that this connection has not used before."""
        self.requests += 1
        return self.requests

    def send(self, message: Message, timeout: float) -> None:
        """Hand a message to the kernel, without copying its data.

        Messages that the peer sends meanwhile are received and kept, so that two full pipes cannot
        wait for each other. The caller may change the data once this returns.

        Raises:
            StoreUnavailable: the connection broke.
            StoreTimeout: the peer did not take all of it within `timeout` seconds.
        """
        self._send_pieces([memoryview(piece) for piece in encode(message)], timeout)

    def send_all(self, messages: Iterable[Message], timeout: float) -> None:
        """Hand short messages to the kernel, all at once. Raises as `send`."""
        frames = b"".join(piece for message in messages for piece in encode(message))
        self._send_pieces([memoryview(frames)], timeout)

    def _send_pieces(self, pieces: list[memoryview], timeout: float) -> None:
        timeout = deadlines.left(timeout)
        deadline = monotonic() + timeout
        while pieces:
            try:
                sent = self._send(pieces)
            except BlockingIOError:
                self._wait_to_send(deadline, timeout)
                continue
            except OSError as error:
                raise self._broken(error) from None
            drop(pieces, sent)

    def receive(self, timeout: float) -> Message:
        """Return the next message. The data of a SegmentRead are valid until the next call.

        Raises:
            StoreUnavailable: the peer hung up.
            StoreTimeout: the message was not complete within `timeout` seconds.
            ProtocolError: it is not a message of the protocol.
        """
        if self._early:
            return self._next_early()
        timeout = deadlines.left(timeout)
        deadline = monotonic() + timeout
        while True:
            try:
                message = self._take_in()
            except BlockingIOError:
                self._wait(self._wire.to_receive, deadline, timeout)
                continue
            if message is not None:
                return message
            if monotonic() > deadline:
                raise self._too_late(timeout)

    def poll(self) -> Message | None:
        """Return the next message if it is here already, else None. Raises as `receive`.

        It does not wait, but raises StoreTimeout once the caller's deadline is over.
        """
        if self._early:
            return self._next_early()
        message = None
        try:
            while message is None:
                deadlines.left()  # a peer may send keep-alives for ever
                message = self._take_in()
        except BlockingIOError:
            return None
        return message

    @property
    def has_early(self) -> bool:
        """Whether messages or bytes are here that a selector does not see."""
        return bool(self._early) or self._wire.has_pending

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._wire.raw.fileno()

    def is_alive(self) -> bool:
        """Tell whether an idle connection is still open, as far as this side knows."""
        return self._wire.is_open()

    def relax(self) -> None:
        """Free a large receive buffer. Call it once no received data is used any more."""
        self._decoder.relax()

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        self.closed = True
        self._wire.close()

    def _next_early(self) -> Message:
        """Take the first message that was received during a send."""
        message = self._early.popleft()
        if isinstance(message, SegmentRead):
            self._unread -= len(message.data)
        return message

    def _take_in(self) -> Message | None:
        """Receive once. Return the message if this completed one, else None.

        Raises:
            BlockingIOError: no bytes are here.
        """
        try:
            received = self._receive_into(self._decoder.room)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._broken(error) from None
        if not received:
            raise StoreUnavailable(f"{self.peer} closed the connection")
        try:
            frame = self._decoder.advance(received)
            if frame is None:
                return None
            self.heard = monotonic()
            return None if frame.type is FrameType.KEEP_ALIVE else decode(frame)
        except ProtocolError as error:
            raise ProtocolError(f"{self.peer}: {error.message}", remedy=error.remedy) from None

    def _wait_to_send(self, deadline: float, timeout: float) -> None:
        if not self._wire.has_pending:
            ready = self._wait(self._wire.to_send, deadline, timeout)
            if not ready & select.POLLIN:
                return
        try:
            message = self._take_in()
        except BlockingIOError:  # what came was a part of a record, or is for TLS itself
            return
        if isinstance(message, SegmentRead):
            message = replace(message, data=memoryview(bytes(message.data)))
            self._unread += len(message.data)
        if message is not None:
            self._early.append(message)
        if len(self._early) > _MOST_EARLY or self._unread > _MOST_UNREAD:
            raise ProtocolError(f"{self.peer} answers more than it was asked")

    def _wait(self, events: int, deadline: float, timeout: float) -> int:
        """Wait until the socket is ready for some of `events`. Return those that it is ready for.

        Raises:
            StoreUnavailable: the peer is gone.
            StoreTimeout: the deadline is over.
        """
        while (remaining := deadline - monotonic()) > 0:
            self._poll.modify(self._wire.raw, events)
            for _, ready in self._poll.poll(math.ceil(min(remaining, _LOOK) * 1000)):
                return ready
            if is_gone(self._wire.raw):
                raise StoreUnavailable(f"{self.peer} is gone without a word")
        raise self._too_late(timeout)

    def _broken(self, error: OSError) -> BackendError:
        if (unwanted := unwelcome(error, self.peer)) is not None:
            return unwanted
        return StoreUnavailable(f"the connection to {self.peer} broke: {said(error)}")

    def _too_late(self, timeout: float) -> StoreTimeout:
        return StoreTimeout(f"{self.peer} took longer than {timeout:.3g} s")
