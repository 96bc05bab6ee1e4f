"""A TCP proxy that gives some processes the faults of networks: delay, loss, silence, resets.

Several processes share the proxy, and each has its own faults. The proxy finds the owner of a
connection in `/proc`. So a store's connections to itself, and those of witnesses, have no faults.

The proxy emulates loss, since only root can drop packets. A lost packet delays the connection's
bytes by TCP's retransmission timeout, which doubles with each loss.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from support.command.sluice_command import descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_HOST: Final = "127.0.0.1"
_BYTES: Final = 1 << 16
_CHUNKS: Final = 64
"""Chunks on their way in one direction, at most."""

_PAYLOAD: Final = 512
"""A chunk of at least so many bytes holds events. A smaller one is a request or an answer."""

_RETRANSMISSIONS: Final = (0.2, 0.2, 0.2, 0.2, 0.4, 0.4, 0.8, 1.6, 3.0)
"""Delays of a loss in seconds, from TCP's least timeout on. Several losses in a row are rarer."""

_LOOK: Final = 0.05
"""Seconds between two checks whether a connection may pass bytes on."""

_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER, with which a close sends RST."""


@dataclass
class Client:
    """A process whose connections a proxy disturbs. Several proxies may share it.

    Attributes:
        pid: the process; its children count too.
        delay: seconds by which each byte is delayed, in each direction.
        loss: the part of chunks that are lost, and come after a timeout.
        stalled: monotonic time until which nothing passes.
        dark: monotonic time until which new connections are accepted but never served.
        connections: connections that it has opened.
        payload: bytes of events that have passed, in both directions.
        hole: the longest time in seconds without bytes of events, since the first of them.
    """

    pid: int
    delay: float = 0.0
    loss: float = 0.0
    stalled: float = 0.0
    dark: float = 0.0
    connections: int = 0
    payload: int = 0
    hole: float = 0.0
    _last: float = field(default=0.0, repr=False)

    def moved(self, size: int) -> None:
        """Record bytes that have passed. Chunks without events do not count."""
        if size < _PAYLOAD:
            return
        now = time.monotonic()
        if self.payload:
            self.hole = max(self.hole, now - self._last)
        self.payload += size
        self._last = now


@dataclass(eq=False)
class _Connection:
    """A connection and its owner."""

    port: int
    client: Client | None
    sock: socket.socket
    dead: bool = False
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def abort(self) -> None:
        """Break both ends."""
        for writer in self.writers:
            writer.transport.abort()


class FaultyWire:
    """The proxy. It listens from its creation on.

    Attributes:
        port: the port of this machine at which it listens.
        upstream: the address of the server behind it; set it before a client connects.
    """

    def __init__(self, upstream: tuple[str, int] | None = None) -> None:
        self._listener = socket.create_server((_HOST, 0), backlog=256)
        self._listener.settimeout(0)
        self.port: int = self._listener.getsockname()[1]
        self.upstream = upstream
        self._clients: list[Client] = []
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Begin to accept."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and break all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listener.close()

    def watch(self, client: Client) -> None:
        """Give the faults of a process to its connections, open ones included."""
        self._do(lambda: self._watch(client))

    def reset(self, client: Client) -> None:
        """Break the process's open connections by RST."""
        self._do(lambda: self._reset(client))

    def vanish(self, client: Client, seconds: float) -> None:
        """Never serve the process's open connections again. Serve new ones only after `seconds`."""
        self._do(lambda: self._vanish(client, seconds))

    def _do(self, work: Callable[[], None]) -> None:
        """Run a function in the loop's thread, and wait for its end."""
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()

    def _watch(self, client: Client) -> None:
        self._clients.append(client)
        for connection in self._connections:
            if connection.client is None:
                connection.client = owner((connection.port, self.port), [client])

    def _reset(self, client: Client) -> None:
        for connection in [one for one in self._connections if one.client is client]:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            connection.abort()

    def _vanish(self, client: Client, seconds: float) -> None:
        client.dark = time.monotonic() + seconds
        for connection in self._connections:
            connection.dead = connection.dead or connection.client is client

    def _run(self) -> None:
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        for task in (accepting, *self._tasks):
            task.cancel()
        gathered = asyncio.gather(accepting, *self._tasks, return_exceptions=True)
        self._loop.run_until_complete(gathered)
        self._loop.close()

    async def _accept(self) -> None:
        while True:
            sock, (_, port) = await self._loop.sock_accept(self._listener)
            client = owner((port, self.port), self._clients)
            task = self._loop.create_task(self._serve(_Connection(port, client, sock)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: _Connection) -> None:
        client = connection.client
        if client is not None:
            client.connections += 1
            connection.dead = time.monotonic() < client.dark
        self._connections.add(connection)
        try:
            with suppress(OSError):
                await self._pass_on(connection)
        finally:
            self._connections.discard(connection)
            connection.abort()
            connection.sock.close()

    async def _pass_on(self, connection: _Connection) -> None:
        """Pass bytes on both ways until one of them ends with an error, or both have ended."""
        host, port = self.upstream or (_HOST, 1)
        reader, writer = await asyncio.open_connection(sock=connection.sock, limit=_BYTES)
        connection.writers.append(writer)
        back_reader, back_writer = await asyncio.open_connection(host, port, limit=_BYTES)
        connection.writers.append(back_writer)
        async with asyncio.TaskGroup() as ways:
            ways.create_task(_way(connection, reader, back_writer))
            ways.create_task(_way(connection, back_reader, writer))


async def _way(
    connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass bytes on in one direction."""
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS)
    taking = asyncio.ensure_future(_take(connection, reader, queue))
    try:
        while True:
            due, data = await queue.get()
            await _wait_for_turn(connection, due)
            if not data:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()
            if connection.client is not None:
                connection.client.moved(len(data))
    except OSError:
        connection.abort()
    finally:
        taking.cancel()


async def _wait_for_turn(connection: _Connection, due: float) -> None:
    """Wait until a chunk may pass. On a dead connection this never returns."""
    while True:
        client = connection.client
        until = due if client is None else max(due, client.stalled)
        left = _LOOK if connection.dead else until - time.monotonic()
        if left <= 0:
            return
        await asyncio.sleep(min(left, _LOOK))


async def _take(
    connection: _Connection,
    reader: asyncio.StreamReader,
    queue: asyncio.Queue[tuple[float, bytes]],
) -> None:
    """Queue the arriving bytes, each chunk with its due time. An empty chunk marks the end."""
    data = b"."
    latest = 0.0
    while data:
        try:
            data = await reader.read(_BYTES)
        except OSError:
            data = b""
        client, due = connection.client, time.monotonic()
        if client is not None:
            due += client.delay
            if random.random() < client.loss:  # noqa: S311 - no secret
                due += random.choice(_RETRANSMISSIONS)  # noqa: S311
        latest = max(latest, due)  # TCP keeps the order
        await queue.put((latest, data))


def owner(ends: tuple[int, int], clients: Iterable[Client]) -> Client | None:
    """Return the process that owns a connection of this machine, by `/proc`.

    Args:
        ends: the port of the client's end, and the port of the other end.
        clients: the processes that may have it.
    """
    text = _inode(ends)
    return next((one for one in clients if text is not None and _has(one.pid, text)), None)


def _inode(ends: tuple[int, int]) -> str | None:
    """Return the text of links to the socket with these ports, the local one first."""
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if tuple(int(word.rpartition(":")[2], 16) for word in words[1:3]) == ends:
                return f"socket:[{words[9]}]"
    return None


def _has(pid: int, text: str) -> bool:
    """Tell whether a process, or one of its children, has a socket."""
    for one in (pid, *descendants(pid)):
        with suppress(OSError):
            for file in Path(f"/proc/{one}/fd").iterdir():
                with suppress(OSError):
                    if str(file.readlink()) == text:
                        return True
    return False
