import random
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import ProtocolError, StoreTimeout, StoreUnavailable
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.sockets.wires import PlainWire, TLSWire, Wire
from sluice.stores.pravega.wire.connection import Connection
from sluice.stores.pravega.wire.messages import (
    AppendBlockEnd,
    DataAppended,
    Hello,
    KeepAlive,
    SegmentCreated,
    SegmentRead,
)
from sluice.stores.pravega.wire.wire import VERSION, Message, encode
from support.until import PATIENCE
from support.wire.segment_store import Peer, ScriptedStore
from support.wire.tls_names import TLSNames

PEER = Endpoint("store.example", 12345)


@pytest.fixture(params=["plain", "tls"])
def pair(
    request: pytest.FixtureRequest, tls_names: TLSNames
) -> Iterator[tuple[Connection, socket.socket]]:
    """Yield a connection, plain or with TLS, and the socket at its other end."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(PATIENCE)
    wire: Wire = PlainWire(ours) if request.param == "plain" else tls_names.wire(ours, PEER.host)
    if isinstance(wire, TLSWire):
        theirs = tls_names.agree(wire, theirs, PEER.host)
    with theirs:
        connection = Connection(wire, PEER)
        yield connection, theirs
        connection.close()


def framed(message: Message) -> bytes:
    """Return the frame of a message."""
    return b"".join(encode(message))


@pytest.mark.parametrize(("high", "low"), [(16, 5), (99, 16), (5, 1), (9, 7)])
def test_versions_that_overlap_are_accepted(high: int, low: int) -> None:
    """A store is accepted if it shares at least one version of the protocol."""

    def greet(peer: Peer) -> None:
        peer.expect(Hello)
        peer.say(Hello(high, low))

    with ScriptedStore([greet], greets=False) as store:
        Connection.open(store.endpoint, timeout=5).close()


@pytest.mark.parametrize(("high", "low"), [(4, 1), (99, VERSION + 1)])
def test_versions_that_do_not_overlap_are_named_and_refused(high: int, low: int) -> None:
    """The error names the versions of both sides."""

    def greet(peer: Peer) -> None:
        peer.expect(Hello)
        peer.say(Hello(high, low))

    with (
        ScriptedStore([greet], greets=False) as store,
        pytest.raises(ProtocolError, match=rf"versions {low} to {high} .* 5 to {VERSION}"),
    ):
        Connection.open(store.endpoint, timeout=5)


def test_a_server_of_another_kind_is_a_protocol_error() -> None:
    """An HTTP server's answer is refused at its first bytes, with the server's address."""

    def greet(peer: Peer) -> None:
        peer.expect(Hello)
        peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with ScriptedStore([greet], greets=False) as store:
        address = str(store.endpoint)
        with pytest.raises(ProtocolError, match=address):
            Connection.open(store.endpoint, timeout=5)


def test_a_server_that_does_not_greet_is_a_timeout() -> None:
    """A peer that accepts the connection and sends nothing is left after the timeout."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = Endpoint(*listener.getsockname())
        with pytest.raises(StoreTimeout, match=str(endpoint)):
            Connection.open(endpoint, timeout=0.1)


def test_a_port_where_nobody_listens_is_an_unavailable_store() -> None:
    """The error names host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = Endpoint(*listener.getsockname())
    with pytest.raises(StoreUnavailable, match=str(endpoint)):
        Connection.open(endpoint, timeout=5)


def test_keep_alives_are_not_messages(pair: tuple[Connection, socket.socket]) -> None:
    """`receive` and `poll` skip KeepAlives."""
    connection, theirs = pair
    theirs.sendall(framed(KeepAlive()) * 3 + framed(SegmentCreated(1, "a")))
    assert connection.receive(5) == SegmentCreated(1, "a")
    theirs.sendall(framed(KeepAlive()))
    assert connection.poll() is None


def test_a_trickling_peer_cannot_extend_the_deadline(
    pair: tuple[Connection, socket.socket],
) -> None:
    """A frame's bytes that arrive now and then do not extend its timeout."""
    connection, theirs = pair
    ended = threading.Event()

    def trickle() -> None:
        for byte in framed(SegmentCreated(1, "x" * 10_000)):
            if ended.wait(0.01):
                return
            theirs.sendall(bytes([byte]))

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        with pytest.raises(StoreTimeout, match=r"store\.example:12345 took longer than 0\.2 s"):
            connection.receive(0.2)
    finally:
        ended.set()
        thread.join()


def test_a_flood_of_keep_alives_cannot_extend_the_deadline(
    pair: tuple[Connection, socket.socket],
) -> None:
    """A peer that sends only KeepAlives, without a pause, does not hold a caller."""
    connection, theirs = pair
    ended = threading.Event()

    def flood() -> None:
        while not ended.is_set():
            try:
                theirs.sendall(framed(KeepAlive()) * 100)
            except OSError:
                return

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        with pytest.raises(StoreTimeout):
            connection.receive(0.2)
    finally:
        ended.set()
        connection.close()
        thread.join()


def test_a_peer_that_hangs_up_is_unavailable(pair: tuple[Connection, socket.socket]) -> None:
    """The end of the stream within a frame raises StoreUnavailable with the address."""
    connection, theirs = pair
    theirs.sendall(framed(SegmentCreated(1, "a"))[:-1])
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(StoreUnavailable, match=r"store\.example:12345 closed"):
        connection.receive(5)


def test_a_peer_that_takes_nothing_is_a_timeout(pair: tuple[Connection, socket.socket]) -> None:
    """Sending has a deadline, too."""
    connection, _ = pair
    block = AppendBlockEnd(UUID(int=1), 0, bytes(8 << 20), 1, 1, 1)
    with pytest.raises(StoreTimeout):
        connection.send(block, 0.1)


def test_two_full_pipes_do_not_wait_for_each_other(
    pair: tuple[Connection, socket.socket],
) -> None:
    """A send also reads what arrives, so that a peer can go on that writes before it reads."""
    connection, theirs = pair
    block = AppendBlockEnd(UUID(int=1), 0, bytes(range(256)) * (8 << 12), 1, 1, 1)
    acks = [DataAppended(UUID(int=1), n, n - 1, n, n) for n in range(20_000)]
    read = SegmentRead("a", 0, at_tail=False, at_end=False, data=memoryview(b"abc"), request=1)
    received = bytearray()

    def write_then_read() -> None:
        theirs.sendall(b"".join(map(framed, acks)) + framed(read))
        while len(received) < len(framed(block)):
            received.extend(theirs.recv(1 << 20))

    thread = threading.Thread(target=write_then_read)
    thread.start()
    connection.send(block, PATIENCE)
    thread.join()
    assert received == framed(block)
    assert [connection.receive(5) for _ in acks] == acks
    assert connection.receive(5) == read


def test_a_peer_that_answers_what_nobody_asked_is_left(
    pair: tuple[Connection, socket.socket],
) -> None:
    """The peer reads nothing and sends without end.

    The client keeps only a bounded part of that.
    """
    connection, theirs = pair
    flood = framed(SegmentRead("a", 0, at_tail=False, at_end=False, data=bytes(1 << 20), request=1))

    def send_without_end() -> None:
        with suppress(OSError):
            while True:
                theirs.sendall(flood)

    thread = threading.Thread(target=send_without_end)
    thread.start()
    with pytest.raises(ProtocolError, match="more than it was asked"):
        connection.send(AppendBlockEnd(UUID(int=1), 0, bytes(8 << 20), 1, 1, 1), 60)
    connection.close()
    thread.join()


def test_an_idle_connection_knows_whether_it_is_alive(
    pair: tuple[Connection, socket.socket],
) -> None:
    """A silent connection is alive, an ended one is not. The check takes no bytes away."""
    connection, theirs = pair
    assert connection.is_alive()
    theirs.sendall(framed(SegmentCreated(1, "a")))
    assert connection.is_alive()
    assert connection.receive(5) == SegmentCreated(1, "a")
    theirs.close()
    assert not connection.is_alive()


@given(st.binary(max_size=2000), st.randoms(use_true_random=False))
def test_hostile_bytes_end_in_typed_errors(data: bytes, chance: random.Random) -> None:
    """Arbitrary bytes before the peer hangs up cause messages or Sluice's own errors."""
    if chance.random() < 0.5:  # half of the time with headers that are nearly right
        kind = chance.choice([-127, 2, 7, 8, 10, 12, 21, 53, 60, 100])
        data = struct.pack(">ii", kind, chance.choice([0, len(data), 1 << 23])) + data
    ours, theirs = socket.socketpair()
    connection = Connection(PlainWire(ours), PEER)
    with theirs:
        theirs.sendall(data)

    def receive_all() -> None:
        while True:
            connection.receive(5)

    try:
        with pytest.raises((ProtocolError, StoreUnavailable), match=r"store\.example:12345"):
            receive_all()
    finally:
        connection.close()
