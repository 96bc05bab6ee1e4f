"""A connection to a segment store: the handshake, deadlines, and whole messages both ways."""

from __future__ import annotations

import math
import select
import socket
import struct
from collections import deque
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError, StoreTimeout, StoreUnavailable
from sluice.stores import deadline as deadlines
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
    from sluice.stores.pravega.names import Endpoint

_MOST_EARLY: Final = 1 << 16
"""Messages that are received and kept during a send; mostly acknowledgements of blocks."""

_MOST_UNREAD: Final = 64 << 20
"""Bytes of segments' data in these messages."""


_SILENCE: Final = 8.0
"""Seconds without an acknowledgement of the peer's kernel after which the peer counts as gone."""

_PROBES: Final = 4
"""Keep-alive probes to an idle peer in this time."""

_LOOK: Final = 0.5
"""Seconds between two checks whether the peer is there, during a wait."""

_TCP_INFO: Final = struct.Struct("8B13I")
_RETRANSMITS, _UNANSWERED, _LAST_ACK = 2, 3, 20
"""Fields of `tcp_info`: retransmissions of data and probes that are unanswered so far, and the
milliseconds since the peer's kernel last acknowledged anything."""


class Connection:
    """A connection for one caller at a time. It blocks, up to the timeout of each call.

    The socket itself never blocks. Each wait ends at a monotonic deadline, so a peer that sends a
    byte now and then cannot hold a caller for longer. Buffer sizes are left to the kernel, which
    tunes them to the path; setting them would turn that off.

    Args:
        sock: a connected socket, which the connection owns from now on.
        peer: the server's address, for error messages.

    Attributes:
        version: the newest protocol version that the peer speaks; 0 before the handshake.
        requests: the number of requests so far.
        heard: the monotonic time in seconds at which the peer's last whole message came.
    """

    def __init__(self, sock: socket.socket, peer: Endpoint) -> None:
        sock.settimeout(0)
        self.peer = peer
        self.closed = False
        self.version = 0
        self._socket = sock
        self._poll = select.poll()
        self._poll.register(sock)
        self._decoder = FrameDecoder()
        self._early: deque[Message] = deque()
        self._unread = 0
        self.requests = 0
        self.heard = monotonic()

    @classmethod
    def open(cls, peer: Endpoint, timeout: float) -> Connection:
        """Connect and shake hands within `timeout` seconds.

        Raises:
            StoreUnavailable: no server listens there, or it hung up.
            StoreTimeout: it took too long.
            ProtocolError: the peer is no segment store, or speaks no version that Sluice speaks.
        """
        timeout = deadlines.left(timeout)
        deadline = monotonic() + timeout
        try:
            sock = socket.create_connection(peer, timeout)
        except TimeoutError:
            raise StoreTimeout(f"no connection to {peer} within {timeout:.3g} s") from None
        except OSError as error:
            raise StoreUnavailable(f"no connection to {peer}: {error.strerror or error}") from None
        except UnicodeError:  # the host comes from the controller, and may be any text
            raise ProtocolError(f"{peer.host!r} is no name of a host") from None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _probe(sock)
            connection = cls(sock, peer)
            connection._shake_hands(deadline - monotonic())
        except BaseException:
            sock.close()
            raise
        return connection

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
        timeout = deadlines.left(timeout)
        deadline = monotonic() + timeout
        pieces = [memoryview(piece) for piece in encode(message)]
        while pieces:
            try:
                sent = self._socket.sendmsg(pieces)
            except BlockingIOError:
                self._wait_to_send(deadline, timeout)
                continue
            except OSError as error:
                raise self._broken(error) from None
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if sent:
                pieces[0] = pieces[0][sent:]

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
                self._wait(select.POLLIN, deadline, timeout)
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
        """Whether messages came during a send. A selector does not see these."""
        return bool(self._early)

    def fileno(self) -> int:
        """Return the socket's descriptor, for a selector."""
        return self._socket.fileno()

    def is_alive(self) -> bool:
        """Tell whether an idle connection is still open, as far as this side knows."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def relax(self) -> None:
        """Free a large receive buffer. Call it once no received data is used any more."""
        self._decoder.relax()

    def close(self) -> None:
        """Hang up. Closing twice is fine."""
        self.closed = True
        self._socket.close()

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
            received = self._socket.recv_into(self._decoder.room)
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
        if not self._wait(select.POLLIN | select.POLLOUT, deadline, timeout) & select.POLLIN:
            return
        message = self._take_in()
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
            self._poll.modify(self._socket, events)
            for _, ready in self._poll.poll(math.ceil(min(remaining, _LOOK) * 1000)):
                return ready
            if _is_gone(self._socket):
                raise StoreUnavailable(f"{self.peer} is gone without a word")
        raise self._too_late(timeout)

    def _broken(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(f"the connection to {self.peer} broke: {error.strerror or error}")

    def _too_late(self, timeout: float) -> StoreTimeout:
        return StoreTimeout(f"{self.peer} took longer than {timeout:.3g} s")


def _probe(sock: socket.socket) -> None:
    """Have the kernel break an idle connection if the peer is gone.

    A connection that is kept for the next request may be long dead.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    every = max(1, int(_SILENCE / _PROBES))
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        sock.setsockopt(socket.IPPROTO_TCP, option, every)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES - 1)


def _is_gone(sock: socket.socket) -> bool:
    """Tell whether data or probes were unacknowledged for so long that the peer must be gone.

    The kernel's own limit (TCP_USER_TIMEOUT) is of no use here: it also breaks connections to peers
    that are alive and slow to read.
    """
    try:
        info = _TCP_INFO.unpack(
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        )
    except OSError:  # not a TCP socket, or broken by now, which the next call notices
        return False
    unanswered = max(info[_RETRANSMITS], info[_UNANSWERED])
    return bool(unanswered > 1 and info[_LAST_ACK] >= _SILENCE * 1000)
