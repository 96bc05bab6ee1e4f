"""A TCP proxy in front of the segment store that understands frames and can hold them up.

It knows the protocol by itself (int32 type, int32 length, payload) and imports nothing of Sluice.
So its record of the segments that were made is a witness too.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from support.crash.breakpoint import Breakpoint

SETUP_APPEND = 1
APPEND_BLOCK_END = 4
READ_SEGMENT = 9
CREATE_SEGMENT = 20
SEAL_SEGMENT = 28
DELETE_SEGMENT = 30
UPDATE_ATTRIBUTE = 36
MERGE_SEGMENTS = 58
CONDITIONAL_BLOCK_END = 89

_BEHIND_A_REQUEST = frozenset(
    {CREATE_SEGMENT, SEAL_SEGMENT, DELETE_SEGMENT, UPDATE_ATTRIBUTE, MERGE_SEGMENTS}
)
"""Types whose payload begins with a request's number, and then names the segment."""

STAGING = "#transaction."
_HEADER = struct.Struct(">ii")


@dataclass(frozen=True)
class Frame:
    """A frame from a client to the server.

    Attributes:
        type: the frame's type.
        segment: the frame's segment; of a merge, the target.
        said: the payload, if it is that of a conditional append.
        value: the value that an attribute is to get.
    """

    type: int
    segment: str
    said: bytes = b""
    value: int | None = None

    def __str__(self) -> str:
        """Return the type, and the segment without the staging's identity, for readers."""
        name, staged, _ = self.segment.partition(STAGING)
        return f"type {self.type}, {name}{staged}"


class FrameProxy:
    """The proxy. It listens from its creation on. Set `upstream` before a client connects.

    Attributes:
        port: port on 127.0.0.1 at which it listens.
        upstream: host and port of the segment store.
        created: full names of segments that clients asked to be made.
        hold: breakpoint that holds up frames; None for none.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self.upstream: tuple[str, int] | None = None
        self.created: set[str] = set()
        self.hold: Breakpoint | None = None
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Self:
        """Return the proxy, which runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening. Connections end with their peers."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self.upstream or ("127.0.0.1", 1), timeout=10)
        except OSError:
            client.close()
            return
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
        threading.Thread(target=self._back, args=(server, client), daemon=True).start()
        with suppress(OSError):
            self._forth(client, server)
        for sock in (client, server):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        """Pass on the server's bytes unchanged."""
        with suppress(OSError):
            while data := server.recv(1 << 20):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on the client's bytes frame by frame."""
        stream = client.makefile("rb", buffering=1 << 20)
        writers: dict[bytes, str] = {}
        while len(header := stream.read(_HEADER.size)) == _HEADER.size:
            kind, length = _HEADER.unpack(header)
            payload = stream.read(length)
            frame = _frame(kind, payload, writers)
            if kind == CREATE_SEGMENT:
                self.created.add(frame.segment)
            hold = self.hold
            if hold is not None and not hold.pass_through(frame):
                return
            server.sendall(header + payload)


def _text(payload: bytes, at: int) -> tuple[str, int]:
    """Return a string of the protocol and the offset of its end."""
    (length,) = struct.unpack_from(">H", payload, at)
    end = at + 2 + length
    return payload[at + 2 : end].decode(), end


def _frame(kind: int, payload: bytes, writers: dict[bytes, str]) -> Frame:
    """Return a frame with its segment. `writers` keeps the connection's writer ids."""
    if kind == SETUP_APPEND:
        segment, _ = _text(payload, 24)
        writers[payload[8:24]] = segment
        return Frame(kind, segment)
    if kind in {APPEND_BLOCK_END, CONDITIONAL_BLOCK_END}:
        said = payload if kind == CONDITIONAL_BLOCK_END else b""
        return Frame(kind, writers.get(payload[:16], ""), said)
    if kind == READ_SEGMENT:
        return Frame(kind, _text(payload, 0)[0])
    if kind in _BEHIND_A_REQUEST:
        segment, end = _text(payload, 8)
        values = (
            struct.unpack_from(">q", payload, end + 16) if kind == UPDATE_ATTRIBUTE else (None,)
        )
        return Frame(kind, segment, value=values[0])
    return Frame(kind, "")
