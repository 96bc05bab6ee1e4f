"""Connected sockets, plain or with TLS, which do not block.

Both kinds raise BlockingIOError where they would block. `to_receive` and `to_send` then are the
events of `poll` to wait for.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_RECORD: Final = 1 << 14
"""Bytes in a record of TLS, at most."""

_ROOM: Final = 16 * _RECORD
"""Bytes that are received, or encrypted, at a time."""

_TURNS: Final = 64
"""Receptions in one call, at most, that bring nothing for its caller."""

_threads: Final = threading.local()


class Wire(Protocol):
    """A connected socket that does not block.

    Attributes:
        to_receive: the events to wait for after `receive_into` would have blocked.
        to_send: the events to wait for after `send` would have blocked.
    """

    to_receive: int
    to_send: int

    def send(self, pieces: Sequence[memoryview], /) -> int:
        """Send the beginning of some pieces. Return how many bytes were taken.

        After BlockingIOError, call it again with the same pieces.
        """

    def receive_into(self, room: memoryview, /) -> int:
        """Receive into a buffer. Return the number of bytes, 0 at the end."""

    @property
    def raw(self) -> socket.socket:
        """The socket beneath."""

    @property
    def has_pending(self) -> bool:
        """Whether bytes were received that `poll` and selectors do not see."""

    def is_open(self) -> bool:
        """Tell whether the peer has not hung up, as far as this side knows."""

    def close(self) -> None:
        """Hang up. Closing twice is fine."""


class PlainWire:
    """`Wire` of a socket without TLS, which adds nothing to its calls."""

    to_receive = select.POLLIN
    to_send = select.POLLIN | select.POLLOUT
    has_pending = False

    def __init__(self, raw: socket.socket) -> None:
        raw.settimeout(0)
        self.raw = raw
        self.send: Callable[[Sequence[memoryview]], int] = raw.sendmsg
        self.receive_into: Callable[[memoryview], int] = raw.recv_into
        self.close = raw.close

    def is_open(self) -> bool:
        """Tell whether the peer has not hung up; see `Wire`."""
        try:
            return self.raw.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


class TLSWire:
    """`Wire` with TLS. The handshake has to be over before anything is sent.

    The library works in memory: so many records are received and sent by one call of the kernel,
    where its own socket takes two for each record of 16 KiB.

    Args:
        raw: a connected socket, which the wire owns from now on.
        context: whom to trust.
        name: the name that the peer's certificate has to have.

    Raises:
        ValueError: that can be no name in a certificate.
    """

    to_send = select.POLLIN | select.POLLOUT

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, name: str) -> None:
        raw.settimeout(0)
        self.raw = raw
        self.to_receive = select.POLLIN
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._starved = True
        self._ahead = b""
        self._unsent = memoryview(b"")
        self._owed = 0

    @property
    def version(self) -> str | None:
        """The version of TLS that both ends agreed on."""
        return self._tls.version()

    @property
    def has_pending(self) -> bool:
        """Whether bytes of records wait here; see `Wire`. A part of a record does not count."""
        whole = self._tls.pending() or (self._incoming.pending and not self._starved)
        return bool(self._ahead or whole)

    def shake_hands(self) -> None:
        """Go on with the handshake. BlockingIOError if it waits for `to_receive`, or OSError."""
        for turn in count():
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._hand_over()
                self._take_in(turn)
            else:
                self._hand_over()
                return

    def is_open(self) -> bool:
        """Tell whether the peer has not hung up; see `Wire`.

        What an idle peer sends is mostly for TLS itself, such as tickets, so it has to be read.
        """
        if self.has_pending:
            return True
        room = memoryview(bytearray(_RECORD))
        try:
            received = self.receive_into(room)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._ahead = bytes(room[:received])
        return received > 0

    def close(self) -> None:
        """Hang up, without a word: frames tell where the data end."""
        self.raw.close()

    def send(self, pieces: Sequence[memoryview], /) -> int:
        """Encrypt the beginning of some pieces, and send it. They count once all of it is sent."""
        if not self._owed:
            self._owed = self._tls.write(_beginning(pieces))
        self._hand_over()
        owed, self._owed = self._owed, 0
        return owed

    def receive_into(self, room: memoryview, /) -> int:
        """Receive all that is here, since a record may be much shorter than the room."""
        if self._ahead:
            size = min(len(room), len(self._ahead))
            room[:size], self._ahead = self._ahead[:size], self._ahead[size:]
            return size
        received = 0
        try:
            while received < len(room):
                size = self._decrypt(room[received:])
                if not size:
                    break
                received += size
        except OSError:  # what came before it counts first; it will be met again
            if not received:
                raise
        return received

    def _decrypt(self, room: memoryview) -> int:
        """Return the number of bytes that were put into the room; 0 at the end."""
        for turn in count():
            try:
                # With a buffer it returns a number, which its types do not say.
                return self._tls.read(len(room), room)  # type: ignore[return-value]
            except ssl.SSLWantReadError:
                self._starved = True
                self._hand_over(waits=False)
                self._take_in(turn)
            except ssl.SSLEOFError:
                break
        self._starved = True
        return 0

    def _take_in(self, turn: int) -> None:
        """Receive encrypted bytes.

        Args:
            turn: how often the present call has done so before.

        Raises:
            BlockingIOError: none are here, or the caller has to look at its deadline first: a peer
                may send what is for TLS itself for ever.
        """
        if turn == _TURNS:
            raise BlockingIOError
        self.to_receive = select.POLLIN
        room = _room()
        received = self.raw.recv_into(room)
        if received:
            self._incoming.write(room[:received])
        else:
            self._incoming.write_eof()
        self._starved = False

    def _hand_over(self, *, waits: bool = True) -> None:
        """Send encrypted bytes, with what the library itself has to say.

        Args:
            waits: whether to raise BlockingIOError if not all is sent.
        """
        if self._outgoing.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._outgoing.read())
        try:
            while self._unsent:
                self._unsent = self._unsent[self.raw.send(self._unsent) :]
        except BlockingIOError:
            if waits:
                self.to_receive = select.POLLOUT  # for a handshake, which waits for that alone
                raise


def _room() -> memoryview:
    """Return this thread's buffer for encrypted bytes: thousands of idle wires need none."""
    try:
        room: memoryview = _threads.room
    except AttributeError:
        room = _threads.room = memoryview(bytearray(_ROOM))
    return room


def drop(pieces: list[memoryview], size: int) -> None:
    """Take so many bytes from the beginning of some pieces."""
    while pieces and size >= len(pieces[0]):
        size -= len(pieces.pop(0))
    if size:
        pieces[0] = pieces[0][size:]


def _beginning(pieces: Sequence[memoryview]) -> memoryview | bytes:
    """Return the bytes to encrypt next: a short piece, such as a header, with the next ones."""
    if len(pieces) == 1 or len(pieces[0]) >= _RECORD:
        return pieces[0][:_ROOM]
    joined, room = [], _RECORD
    for piece in pieces:
        joined.append(piece[:room])
        room -= len(joined[-1])
        if not room:
            break
    return b"".join(joined)
