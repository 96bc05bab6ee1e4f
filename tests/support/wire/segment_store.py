"""A small segment store that gives exactly the answers of a test."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar

from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.wire.messages import Hello
from sluice.stores.pravega.wire.wire import Frame, FrameType, Message, decode_as, encode

M = TypeVar("M", bound=Message)

_PATIENCE = 10.0


class Peer:
    """The store's end of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(_PATIENCE)

    def expect(self, kind: type[M]) -> M:
        """Return the next request, which must be of this kind."""
        number, payload = self.frame()
        assert number == kind.TYPE, f"{FrameType(number).name} and not {kind.TYPE.name}"
        return decode_as(kind, Frame(kind.TYPE, memoryview(payload)))

    def frame(self) -> tuple[int, bytes]:
        """Return the number and the payload of the next request, of any kind."""
        number, length = struct.unpack(">ii", self._exactly(8))
        return number, self._exactly(length)

    def say(self, *messages: Message) -> None:
        """Send messages."""
        self.sock.sendall(b"".join(b"".join(encode(message)) for message in messages))

    def shake_hands(self) -> None:
        """Answer the greeting."""
        self.expect(Hello)
        self.say(Hello())

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            received = self.sock.recv(size - len(data))
            if not received:
                raise EOFError
            data += received
        return bytes(data)


Script = Callable[[Peer], None]


class ScriptedStore:
    """A store that plays one script per connection, after a greeting by default, and hangs up.

    With `tls`, each connection begins with a handshake. A client that breaks off its handshake gets
    no script. If a script fails, the test fails at the end of the `with` statement.
    """

    def __init__(
        self,
        scripts: Iterable[Script],
        *,
        greets: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._scripts = list(scripts)
        self._greets = greets
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_PATIENCE)
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def endpoint(self) -> Endpoint:
        """The address at which it listens."""
        host, port = self._listener.getsockname()
        return Endpoint(host, port)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the scripts to end."""
        self._thread.join()
        self._listener.close()
        if error is None and self._errors:
            raise self._errors[0]

    def _accepted(self) -> socket.socket:
        """Return the next connection, which has begun."""
        while True:
            sock, _ = self._listener.accept()
            if self._tls is None:
                return sock
            sock.settimeout(_PATIENCE)
            try:
                return self._tls.wrap_socket(sock, server_side=True)
            except (ssl.SSLError, ConnectionError):
                sock.close()

    def _serve(self) -> None:
        try:
            for script in self._scripts:
                with self._accepted() as sock:
                    peer = Peer(sock)
                    if self._greets:
                        peer.shake_hands()
                    script(peer)
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            self._errors.append(error)
