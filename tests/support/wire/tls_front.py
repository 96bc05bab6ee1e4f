"""A TLS front for a server that does not speak TLS."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    import ssl

_HANDSHAKE: Final = b"\x16"
"""The first byte of a TLS connection. No plain connection to Pravega begins with it."""

_BYTES: Final = 1 << 18


class TLSFront:
    """A listener for TLS connections. It takes plain ones too, since the server itself uses it.

    Attributes:
        port: port on 127.0.0.1 at which it listens.
        backend: the address of the server behind it.
        context: its certificates for further connections.
        greeted: the number of connections that began with TLS.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0)
        self.port: int = self._listener.getsockname()[1]
        self.backend: tuple[str, int] = ("", 0)
        self.context = context
        self.greeted = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and break all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listener.close()

    def rotate(self, context: ssl.SSLContext) -> None:
        """Present another certificate from now on, and break all connections."""
        self.context = context
        self._loop.call_soon_threadsafe(self._break)

    def _break(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _run(self) -> None:
        accepting = self._loop.create_task(self._accept())
        self._loop.run_forever()
        self._break()
        accepting.cancel()
        gathered = asyncio.gather(accepting, *self._tasks, return_exceptions=True)
        self._loop.run_until_complete(gathered)
        self._loop.close()

    async def _accept(self) -> None:
        while True:
            sock, _ = await self._loop.sock_accept(self._listener)
            task = self._loop.create_task(self._serve(sock))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, sock: socket.socket) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            context = self.context if await self._is_handshake(sock) else None
            reader = asyncio.StreamReader(limit=_BYTES)
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=context
            )
            self.greeted += context is not None
            writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            try:
                back_reader, back_writer = await asyncio.open_connection(*self.backend)
                try:
                    await self._pump(reader, back_writer, back_reader, writer)
                finally:
                    back_writer.transport.abort()
            finally:
                transport.abort()
        sock.close()

    async def _is_handshake(self, sock: socket.socket) -> bool:
        readable = self._loop.create_future()
        self._loop.add_reader(sock, readable.set_result, None)
        try:
            await readable
        finally:
            self._loop.remove_reader(sock)
        return sock.recv(1, socket.MSG_PEEK) == _HANDSHAKE

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        back_writer: asyncio.StreamWriter,
        back_reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Pass bytes on both ways until one end is reached."""
        ways = [
            asyncio.ensure_future(_pass_on(reader, back_writer)),
            asyncio.ensure_future(_pass_on(back_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_BYTES):
        writer.write(data)
        await writer.drain()
