"""A relay that delays all bytes, so that a server on this machine seems far away.

It does not interpret the bytes. It buffers all bytes in flight; client and server bound them.
"""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.context import SpawnProcess

_HOST = "127.0.0.1"
_MOST = 1 << 18
"""Bytes received at a time, at most."""


class Relay:
    """The relay, in its own process, so that it shares no interpreter lock with the test's threads.

    Args:
        round_trip: seconds that the relay adds between a request and its response.

    Attributes:
        port: the port on this machine; the relay listens from its creation on.
    """

    def __init__(self, round_trip: float) -> None:
        self._round_trip = round_trip
        self._listener = socket.create_server((_HOST, 0), backlog=64)
        self._process: SpawnProcess | None = None
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        """Return the relay. It passes nothing on before `begin`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the relay and all its connections."""
        self._listener.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def begin(self, upstream: tuple[str, int]) -> None:
        """Start to relay to a server, which need not serve yet."""
        context = multiprocessing.get_context("spawn")
        words = (self._listener, upstream, self._round_trip / 2)
        self._process = context.Process(target=serve, args=words, daemon=True)
        self._process.start()


def serve(listener: socket.socket, upstream: tuple[str, int], delay: float) -> None:
    """Relay connections until the listener is closed.

    Args:
        listener: the socket that accepts connections.
        upstream: the server's host and port.
        delay: seconds by which each byte is delayed, in each direction.
    """
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            _begin(_connect, client, upstream, delay)


def _connect(client: socket.socket, upstream: tuple[str, int], delay: float) -> None:
    """Relay between a client and the server until both have ended."""
    with client, suppress(OSError), socket.create_connection(upstream, timeout=10) as server:
        server.settimeout(None)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        forth = _begin(_pass_on, client, server, delay)
        _pass_on(server, client, delay)
        forth.join()


def _pass_on(source: socket.socket, target: socket.socket, delay: float) -> None:
    """Relay one direction up to its end. An error ends both directions."""
    way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
    taking = _begin(_take, source, way, delay)
    try:
        while True:
            due, data = way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
    taking.join()


def _take(source: socket.socket, way: SimpleQueue[tuple[float, bytes]], delay: float) -> None:
    """Queue received bytes with the time when they are due. Empty bytes mean the end."""
    data = b"."
    while data:
        try:
            data = source.recv(_MOST)
        except OSError:
            data = b""
        way.put((time.monotonic() + delay, data))


def _begin(work: Callable[..., None], *words: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=words, daemon=True)
    thread.start()
    return thread
