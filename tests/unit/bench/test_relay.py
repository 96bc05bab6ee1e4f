from __future__ import annotations

import socket
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from bench import relay
from bench.relay import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
DATA = bytes(range(256)) * 4096
SECONDS = 20


@pytest.fixture
def upstream() -> Iterator[socket.socket]:
    """Yield the listening socket of a server."""
    with socket.create_server((HOST, 0)) as listener:
        listener.settimeout(SECONDS)
        yield listener


@pytest.fixture
def port(upstream: socket.socket) -> Iterator[int]:
    """Yield the port of a relay to the server."""
    with socket.create_server((HOST, 0)) as listener:
        words = (listener, upstream.getsockname(), 0.001)
        thread = threading.Thread(target=serve, args=words)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(SECONDS)


def received(sock: socket.socket) -> bytes:
    """Return all bytes up to the end of the connection."""
    with sock.makefile("rb") as stream:
        return stream.read()


def test_all_comes_in_order_on_both_ways(port: int, upstream: socket.socket) -> None:
    """Each direction ends when its sender ends it, and the other continues."""
    with socket.create_connection((HOST, port), SECONDS) as client:
        server, _ = upstream.accept()
        with server:
            sending = threading.Thread(target=client.sendall, args=(DATA,))
            sending.start()
            server.sendall(DATA[::-1])
            sending.join(SECONDS)
            client.shutdown(socket.SHUT_WR)
            assert received(server) == DATA
            server.shutdown(socket.SHUT_WR)
            assert received(client) == DATA[::-1]


def test_nothing_comes_before_its_time(
    port: int, upstream: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay waits for the delay before it sends bytes on, in each direction."""
    waits: list[float] = []
    clock = SimpleNamespace(sleep=waits.append, monotonic=lambda: 7.0)
    monkeypatch.setattr(relay, "time", clock)
    with socket.create_connection((HOST, port), SECONDS) as client:
        server, _ = upstream.accept()
        with server:
            client.sendall(b"?")
            assert server.recv(1) == b"?"
            assert waits == [pytest.approx(0.001)]
            server.sendall(b"!")
            assert client.recv(1) == b"!"
            assert waits == [pytest.approx(0.001)] * 2
