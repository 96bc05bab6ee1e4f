"""Messages over TLS, whose records do not end where frames do."""

from __future__ import annotations

import hashlib
import random
import selectors
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from sluice.errors import StoreTimeout, StoreUnavailable
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.sockets import wires
from sluice.stores.pravega.sockets.connecting import connect
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.sockets.wires import TLSWire
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.pravega.wire.messages import (
    AppendBlockEnd,
    DataAppended,
    SegmentCreated,
    SegmentRead,
)
from sluice.stores.pravega.wire.wire import encode
from support.wire.segment_store import Peer, ScriptedStore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from typing import Self

    from sluice.stores.pravega.wire.wire import Message
    from support.wire.tls_names import TLSNames

HOST = "127.0.0.1"
PEER = Endpoint("store.example", 12345)


def framed(*messages: Message) -> bytes:
    """Return the frames of these messages."""
    return b"".join(b"".join(encode(message)) for message in messages)


def created(number: int) -> SegmentCreated:
    """Return a short message."""
    return SegmentCreated(number, "a")


def read(data: bytes) -> SegmentRead:
    """Return a message with data."""
    return SegmentRead("a", 0, at_tail=False, at_end=False, data=memoryview(data), request=1)


@pytest.fixture
def agreed(tls_names: TLSNames) -> Iterator[tuple[Connection, ssl.SSLSocket]]:
    """Yield a connection, and the server's end of it."""
    ours, theirs = socket.socketpair()
    wire = tls_names.wire(ours, PEER.host)
    secured = tls_names.agree(wire, theirs, PEER.host)
    secured.settimeout(10)
    with secured:
        connection = Connection(wire, PEER)
        yield connection, secured
        connection.close()


def test_a_caller_gets_back_to_its_deadline_while_bytes_bring_nothing(
    agreed: tuple[Connection, ssl.SSLSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`poll` returns although the peer sends without end, and no byte is lost."""
    connection, secured = agreed
    monkeypatch.setattr(wires, "_TURNS", 1)
    monkeypatch.setattr(wires, "_ROOM", 64)
    monkeypatch.setattr(wires, "_threads", threading.local())
    secured.sendall(framed(read(bytes(range(256)))))
    assert connection.poll() is None
    message = connection.receive(10)
    assert isinstance(message, SegmentRead)
    assert bytes(message.data) == bytes(range(256))


def test_messages_of_one_record_are_seen_though_the_socket_is_silent(
    agreed: tuple[Connection, ssl.SSLSocket],
) -> None:
    """A selector does not see them, since the socket was read to its end. `has_early` does."""
    connection, theirs = agreed
    theirs.sendall(framed(created(1), created(2), created(3)))
    assert connection.receive(5) == created(1)
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        for number in (2, 3):
            assert selector.select(0) == []
            assert connection.has_early
            assert connection.poll() == created(number)
    assert not connection.has_early
    assert connection.poll() is None


def test_what_an_idle_peer_sent_is_received_later(
    agreed: tuple[Connection, ssl.SSLSocket],
) -> None:
    """The check whether the peer is alive reads its bytes, and keeps them."""
    connection, theirs = agreed
    assert connection.is_alive()
    assert not connection.has_early
    theirs.sendall(framed(created(1)) + framed(read(bytes(20_000))))
    assert connection.is_alive()
    assert connection.has_early
    assert connection.is_alive()
    assert connection.receive(5) == created(1)
    assert connection.receive(5) == read(bytes(20_000))
    assert not connection.has_early


@pytest.mark.parametrize("says", [True, False])
def test_a_peer_that_hangs_up_is_noticed(
    agreed: tuple[Connection, ssl.SSLSocket], *, says: bool
) -> None:
    """The peer may end TLS with close_notify, or just close the socket."""
    connection, theirs = agreed
    if says:
        theirs.settimeout(0)
        with suppress(OSError):
            theirs.unwrap()
    else:
        theirs.close()
    assert not connection.is_alive()
    with pytest.raises(StoreUnavailable, match=r"store\.example:12345 closed"):
        connection.receive(5)


def test_bytes_that_are_not_of_the_session_break_the_connection(
    tls_names: TLSNames,
) -> None:
    """A changed byte breaks the connection before any byte of its record is used."""
    ours, theirs = socket.socketpair()
    wire = tls_names.wire(ours, PEER.host)
    secured = tls_names.agree(wire, theirs, PEER.host)
    connection = Connection(wire, PEER)
    with socket.socket(fileno=secured.detach()) as raw:
        raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises(StoreUnavailable, match=r"store\.example:12345 broke: .*record mac"):
            connection.receive(5)
    connection.close()


@pytest.mark.parametrize("seed", range(6))
def test_records_that_come_in_pieces_become_the_same_messages(
    tls_names: TLSNames, seed: int
) -> None:
    """Messages arrive unchanged in both directions, for pieces of any length."""
    chance = random.Random(seed)  # noqa: S311 - lengths of a test
    data = chance.randbytes(chance.choice([1, 16_000, 16_384, 16_385, 1 << 20, 3_000_001]))
    blocks = [AppendBlockEnd(UUID(int=1), 0, memoryview(data), 1, n, n) for n in range(3)]
    received = bytearray()

    def serve(peer: Peer) -> None:
        for number in range(3):
            _, payload = peer.frame()
            received.extend(payload)
            peer.say(DataAppended(UUID(int=1), number, number - 1, number, number), read(data))

    with (
        ScriptedStore([serve], tls=tls_names.server(HOST)) as store,
        Cutting(store.endpoint, chance) as cutting,
    ):
        connection = Connection.open(cutting.endpoint, 10, TLS(tls_names.trust))
        for block in blocks:
            connection.send(block, 30)
        for number in range(3):
            acknowledged = connection.receive(30)
            assert isinstance(acknowledged, DataAppended)
            assert acknowledged.event_number == number
            reply = connection.receive(30)
            assert isinstance(reply, SegmentRead)
            assert hashlib.sha256(reply.data).digest() == hashlib.sha256(data).digest()
        connection.close()
    assert bytes(received) == b"".join(framed(block)[8:] for block in blocks)


class Cutting:
    """A network between two ends that passes on a few bytes at a time."""

    def __init__(self, server: Endpoint, chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._listener = socket.create_server((HOST, 0))
        self.endpoint = Endpoint(HOST, self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the end of the connection."""
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(self._server) as server:
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            other = threading.Thread(target=self._pass_on, args=(client, server))
            other.start()
            self._pass_on(server, client)
            other.join()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(self._chance.choice([1, 5, 100, 5000, 60_000])):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)


def test_a_frame_of_many_bytes_begins_with_a_full_record(tls_names: TLSNames) -> None:
    """The frame's header shares a record with its data."""
    ours, theirs = socket.socketpair()
    wire = tls_names.wire(ours, PEER.host)
    secured = tls_names.agree(wire, theirs, PEER.host)
    lengths: list[int] = []
    block = AppendBlockEnd(UUID(int=1), 0, bytes(100_000), 1, 1, 1)
    total = len(framed(block))

    def receive() -> None:
        while sum(lengths) < total:
            lengths.append(len(secured.recv(1 << 20)))

    thread = threading.Thread(target=receive)
    thread.start()
    connection = Connection(wire, PEER)
    connection.send(block, 10)
    thread.join()
    assert lengths[: total >> 14] == [1 << 14] * (total >> 14)
    connection.close()
    secured.close()


def test_a_peer_that_says_half_a_record_holds_nobody(tls_names: TLSNames) -> None:
    """The deadline holds although the socket is ready again and again."""
    ours, theirs = socket.socketpair()
    wire = tls_names.wire(ours, PEER.host)
    secured = tls_names.agree(wire, theirs, PEER.host)
    connection, ended = Connection(wire, PEER), threading.Event()
    raw = socket.socket(fileno=secured.detach())

    def trickle() -> None:
        with suppress(OSError):
            raw.sendall(b"\x17\x03\x03\x40\x00")
            while not ended.wait(0.01):
                raw.sendall(b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        with pytest.raises(StoreTimeout, match=r"took longer than 0\.3 s"):
            connection.receive(0.3)
        assert connection.poll() is None
    finally:
        ended.set()
        thread.join()
        connection.close()
        raw.close()


def test_a_session_that_was_agreed_is_of_a_version_that_is_safe(tls_names: TLSNames) -> None:
    """If both sides support TLS 1.3, they use it."""

    def nothing(_: Peer) -> None:
        """Send nothing more."""

    with ScriptedStore([nothing], tls=tls_names.server(HOST), greets=False) as store:
        wire = connect(store.endpoint, 5, TLS(tls_names.trust))
        assert isinstance(wire, TLSWire)
        assert wire.version == "TLSv1.3"
        wire.close()
