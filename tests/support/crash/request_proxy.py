"""A proxy in front of an S3 gateway that passes requests on unchanged and can hold them up.

It knows only HTTP, and nothing of Sluice or of signatures.
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
        body: the request's body.
    """

    method: str
    name: str
    body: bytes = field(repr=False)

    def __str__(self) -> str:
        """Return the method and the names, for readers of the results."""
        return f"{self.method} {' '.join(self.names)}"

    @property
    def names(self) -> list[str]:
        """The names of the request's objects: a single one, or all deleted ones."""
        found = re.findall(r"<Key>([^<]*)</Key>", self.body.decode()) if self.deletes else []
        return found or [self.name]

    @property
    def deletes(self) -> bool:
        """Tell whether it deletes objects, which its body lists."""
        return self.method == "POST"


class RequestProxy:
    """The proxy. It listens from its creation on, and connects to the gateway for each request.

    Args:
        gateway: the gateway's port on this machine.

    Attributes:
        hold: breakpoint that holds up requests; None for none.
        mute: whether answers are kept from clients.
        answered: event, set when an answer was kept.
    """

    def __init__(self, gateway: int) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=64)
        self._gateway = gateway
        self.hold: Breakpoint | None = None
        self.mute = False
        self.answered = threading.Event()

    def __enter__(self) -> Self:
        """Start the proxy."""
        threading.Thread(target=self._accept, name="request-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening. Connections end with their peers."""
        self._listener.close()

    @property
    def endpoint(self) -> str:
        """The gateway's address through the proxy, for clients."""
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
        """Return the gateway's answer."""
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
    """Return a request up to its empty line; nothing at the end of a connection."""
    lines = []
    while line := said.readline():
        lines.append(line)
        if line == _END:
            return b"".join(lines)
    return b""


def _length(head: bytes) -> int:
    """Return the length of a request's body, in bytes."""
    for line in head.splitlines():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
