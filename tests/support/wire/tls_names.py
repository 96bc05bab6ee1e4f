"""Certificates of servers that exist in tests only, and the ends of connections with them."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from localstore.certificates import Authority
from sluice.errors import BackendError
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.sockets.wires import TLSWire
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.trust import Trust
from support.wire.segment_store import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore.certificates import Certificate


class TLSNames:
    """An authority and its certificates. It makes each certificate once.

    Args:
        folder: directory of their files.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self._folder = folder
        self._made: dict[tuple[str, int], Certificate] = {}
        self._others: dict[str, Authority] = {}

    @property
    def bundle(self) -> str:
        """The authority's certificate, in PEM."""
        return self.authority.bundle.read_text()

    @property
    def trust(self) -> Trust:
        """The authority in the form that a client trusts."""
        return Trust(ca=self.bundle)

    def other(self, name: str = "other") -> Authority:
        """Return another authority."""
        if name not in self._others:
            self._others[name] = Authority(self._folder, name)
        return self._others[name]

    def certificate(self, host: str, *, days: int = 2) -> Certificate:
        """Return a certificate for a host, which has expired if `days` is negative."""
        key = (host, days)
        if key not in self._made:
            self._made[key] = self.authority.issue(f"{host}-{days}", host, days=days)
        return self._made[key]

    def server(self, host: str, *, days: int = 2) -> ssl.SSLContext:
        """Return the TLS context of a server with this name."""
        return serving(self.certificate(host, days=days))

    def wire(self, sock: socket.socket, host: str) -> TLSWire:
        """Return the client's end of a connection before the handshake. It trusts the authority."""
        return TLSWire(sock, TLS(self.trust).context, host)

    def agree(self, wire: TLSWire, theirs: socket.socket, host: str) -> ssl.SSLSocket:
        """Shake hands at both ends of a connection. Return the server's end."""
        accepted: list[ssl.SSLSocket] = []
        context = self.server(host)
        server = threading.Thread(
            target=lambda: accepted.append(context.wrap_socket(theirs, server_side=True))
        )
        server.start()
        while True:
            with suppress(BlockingIOError):
                wire.shake_hands()
                break
        server.join()
        return accepted[0]


def serving(certificate: Certificate) -> ssl.SSLContext:
    """Return the context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """Listen, and serve each connection until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, suppress(OSError):
                    serve(peer)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield Endpoint("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def accept(context: ssl.SSLContext, peer: socket.socket) -> None:
    """Shake hands with TLS, and answer the greeting."""
    with peer.dup() as raw:
        raw.settimeout(1)
        try:
            with context.wrap_socket(peer, server_side=True) as sock, suppress(EOFError):
                Peer(sock).shake_hands()
                sock.recv(1)
        except ssl.SSLError:
            # Otherwise the kernel would break the connection and drop the alert with the reason.
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass


def nothing(_peer: Peer) -> None:
    """Send nothing more."""


def refused(peer: Endpoint, tls: TLS | None, *, timeout: float = 5) -> BackendError:
    """Return the error of a connection that cannot be made, after a check of its message."""
    with pytest.raises(BackendError) as caught:
        Connection.open(peer, timeout, tls)
    assert str(peer) in caught.value.message
    assert caught.value.remedy
    return caught.value
