"""A relay before a server of this machine that is far away: what it passes on comes late.

It knows nothing of what is said, and holds what is on its way; who talks bounds that.
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
"""Bytes that are received at a time."""


class Relay:
    """The relay, in a process of its own: one beside us would take turns with our own threads.

    Args:
        round_trip: seconds that it adds from a question to its answer.

    Attributes:
        port: where it listens on this machine, from its making on.
    """

    def __init__(self, round_trip: float) -> None:
        self._round_trip = round_trip
        self._listener = socket.create_server((_HOST, 0), backlog=64)
        self._process: SpawnProcess | None = None
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        """It passes nothing on before `begin`."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and all connections with it."""
        self._listener.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def begin(self, upstream: tuple[str, int]) -> None:
        """Pass on what comes to a server, which need not serve yet."""
        context = multiprocessing.get_context("spawn")
        words = (self._listener, upstream, self._round_trip / 2)
        self._process = context.Process(target=serve, args=words, daemon=True)
        self._process.start()


def serve(listener: socket.socket, upstream: tuple[str, int], delay: float) -> None:
    """Pass on what comes, until the listener is closed.

    Args:
        listener: takes connections.
        upstream: the server.
        delay: seconds that each byte takes, on each way.
    """
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            _begin(_connect, client, upstream, delay)


def _connect(client: socket.socket, upstream: tuple[str, int], delay: float) -> None:
    """Pass on what a client and the server say, until both have ended."""
    with client, suppress(OSError), socket.create_connection(upstream, timeout=10) as server:
        server.settimeout(None)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        forth = _begin(_pass_on, client, server, delay)
        _pass_on(server, client, delay)
        forth.join()


def _pass_on(source: socket.socket, target: socket.socket, delay: float) -> None:
    """Pass on what one says, up to its end; an error ends both."""
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
    """Receive all that comes, and note when it is due; nothing at all is the end."""
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
