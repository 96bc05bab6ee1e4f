"""A proxy in front of an S3 gateway that passes requests on as they are and can hold them up.

It knows HTTP only, and nothing of Sluice, nor of who signs what.
"""

from __future__ import annotations

import http.client
import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from support.crash.breakpoint import Breakpoint

_HOST = "127.0.0.1"
_SECONDS = 60
_END = b"\r\n"


@dataclass(frozen=True)
class Request:
    """A request to the gateway.

    Attributes:
        method: GET, HEAD, PUT, POST or DELETE.
        name: the bucket and the object.
        body: what is sent along.
    """

    method: str
    name: str
    body: bytes = field(repr=False)

    def __str__(self) -> str:
        """For people."""
        return f"{self.method} {' '.join(self.names)}"

    @property
    def names(self) -> list[str]:
        """The objects that it is about: the one, or those that are to be deleted."""
        found = re.findall(r"<Key>([^<]*)</Key>", self.body.decode()) if self.deletes else []
        return found or [self.name]

    @property
    def deletes(self) -> bool:
        """Whether it deletes objects; it lists them in its body."""
        return self.method == "POST"


class RequestProxy:
    """The proxy. It listens from its making on, and looks for the gateway at each connection.

    Args:
        gateway: the gateway's port on this machine.

    Attributes:
        hold: holds up requests while it is set.
        mute: whether answers are kept from those who asked.
        answered: set when an answer was kept.
    """

    def __init__(self, gateway: int) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=64)
        self._gateway = gateway
        self.hold: Breakpoint | None = None
        self.mute = False
        self.answered = threading.Event()

    def __enter__(self) -> Self:
        """Start it."""
        threading.Thread(target=self._accept, name="request-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening; connections end with their peers."""
        self._listener.close()

    @property
    def endpoint(self) -> str:
        """The gateway as clients find it through the proxy."""
        return f"http://{_HOST}:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Pass on a connection's requests, one after the other, whether the client lives or not."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, suppress(OSError, http.client.HTTPException), client.makefile("rb") as said:
            while head := _head(said):
                body = said.read(_length(head))
                method, path, _ = head.split(b" ", 2)
                name = unquote(urlsplit(path.decode()).path).lstrip("/")
                request = Request(method.decode(), name, body)
                if self.hold is not None and not self.hold.pass_through(request):
                    return
                answer = self._ask(request, head + body)
                if self.mute:
                    self.answered.set()
                    return
                client.sendall(answer)

    def _ask(self, request: Request, data: bytes) -> bytes:
        """The gateway's answer."""
        with socket.create_connection((_HOST, self._gateway), _SECONDS) as server:
            server.sendall(data)
            answer = http.client.HTTPResponse(server, method=request.method)
            answer.begin()
            body = answer.read()
        kept = [
            (name, value)
            for name, value in answer.getheaders()
            if name.lower() not in {"connection", "transfer-encoding"}
        ]
        if request.method != "HEAD" and answer.getheader("content-length") is None:
            kept.append(("Content-Length", str(len(body))))
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}", *(f"{n}: {v}" for n, v in kept)]
        return "\r\n".join(lines).encode() + 2 * _END + body


def _head(said: BinaryIO) -> bytes:
    """A request up to its empty line; nothing at the end of a connection."""
    lines = []
    while line := said.readline():
        lines.append(line)
        if line == _END:
            return b"".join(lines)
    return b""


def _length(head: bytes) -> int:
    """How long a request's body is."""
    for line in head.splitlines():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
