"""Kept connections whose other end vanishes without closing them."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from typing import TYPE_CHECKING, Final

import pytest

from sluice.errors import StoreTimeout, StoreUnavailable
from sluice.stores.pravega.names import Endpoint
from sluice.stores.pravega.sockets import connecting
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.wire.messages import Hello, KeepAlive, SegmentRead
from sluice.stores.pravega.wire.pool import ConnectionPool
from sluice.stores.pravega.wire.wire import encode

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from support.wire.tls_names import TLSNames

_ATTACH_FILTER: Final = 26
"""SO_ATTACH_FILTER: a program of the kernel that says which packets a socket gets."""

MUCH: Final = SegmentRead(
    "s", 0, at_tail=False, at_end=False, data=memoryview(bytes(15 << 20)), request=1
)
"""A message that fills what lies between two ends."""

_DROP_ALL: Final = struct.pack("HBBI", 0x06, 0, 0, 0)


class Vanishing:
    """A store that greets, and may stop answering for good, like a host that lost its power.

    Args:
        tls: its certificates; None for a store without TLS.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.endpoint = Endpoint("127.0.0.1", self._server.getsockname()[1])
        self._peers: list[socket.socket] = []
        threading.Thread(target=self._greet, daemon=True).start()

    def _greet(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            if self._tls is not None:
                peer = self._tls.wrap_socket(peer, server_side=True)
            self._peers.append(peer)
            peer.sendall(b"".join(encode(Hello())))

    def vanish(self) -> None:
        """Drop all packets to the store's connections, so that not even its kernel answers."""
        program = ctypes.create_string_buffer(_DROP_ALL)
        for peer in self._peers:
            peer.setsockopt(
                socket.SOL_SOCKET,
                _ATTACH_FILTER,
                struct.pack("HL", 1, ctypes.addressof(program)),
            )

    def close(self) -> None:
        """Close all sockets."""
        self._server.close()
        for peer in self._peers:
            peer.close()


@pytest.fixture(params=["plain", "tls"])
def store(request: pytest.FixtureRequest, tls_names: TLSNames) -> Iterator[Vanishing]:
    """Yield such a store, with TLS or without."""
    made = Vanishing(tls_names.server("127.0.0.1") if request.param == "tls" else None)
    yield made
    made.close()


@pytest.fixture
def pool(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, tls_names: TLSNames
) -> Iterator[ConnectionPool]:
    """Yield a pool for which a peer is gone after a second. It has TLS if the store has."""
    monkeypatch.setattr(connecting, "_SILENCE", 1.0)
    secured = request.node.callspec.params["store"] == "tls"
    made = ConnectionPool(timeout=5, tls=TLS(tls_names.trust) if secured else None)
    yield made
    made.close()


@pytest.mark.timeout(60)
def test_a_kept_connection_whose_host_is_gone_breaks_before_the_deadline(
    store: Vanishing, pool: ConnectionPool
) -> None:
    """StoreUnavailable lets the caller repeat the request. A timeout would be final."""
    with pool.lease(store.endpoint):
        pass
    store.vanish()
    with pool.lease(store.endpoint) as connection:
        connection.send(KeepAlive(), 5)
        with pytest.raises(StoreUnavailable) as caught:
            connection.receive(30)
        connection.close()
    assert not isinstance(caught.value, StoreTimeout)
    with pool.lease(store.endpoint) as connection:
        assert connection.is_alive()


@pytest.mark.timeout(60)
def test_a_kept_connection_that_died_while_idle_is_not_lent_out(
    store: Vanishing, pool: ConnectionPool
) -> None:
    """The kernel probes idle connections, so that no request is lost on a dead one."""
    with pool.lease(store.endpoint) as dead:
        pass
    store.vanish()
    while dead.is_alive():
        threading.Event().wait(0.05)
    with pool.lease(store.endpoint) as connection:
        assert connection is not dead


@pytest.mark.timeout(60)
def test_no_connection_is_kept_to_a_host_that_does_not_answer(
    store: Vanishing, pool: ConnectionPool
) -> None:
    """After the first timeout, the pool closes its other connections to the host."""
    with pool.lease(store.endpoint), pool.lease(store.endpoint) as beside:
        pass
    store.vanish()
    with pytest.raises(StoreTimeout), pool.lease(store.endpoint) as connection:
        connection.receive(0.1)
    assert (connection is not beside, beside.closed) == (True, True)


@pytest.mark.timeout(60)
def test_a_connection_that_sends_much_breaks_when_the_other_end_is_gone(
    store: Vanishing, pool: ConnectionPool
) -> None:
    """Sent bytes without an acknowledgement break it, as for an appender whose store lost power."""
    with pool.lease(store.endpoint) as connection:
        store.vanish()
        with pytest.raises(StoreUnavailable, match="gone without a word") as caught:
            connection.send(MUCH, 30)
        connection.close()
    assert not isinstance(caught.value, StoreTimeout)


@pytest.mark.timeout(60)
def test_who_is_there_may_take_its_time_to_read(store: Vanishing, pool: ConnectionPool) -> None:
    """A busy store reads nothing for a while, but its kernel answers, so the peer is not gone."""
    with pool.lease(store.endpoint) as connection:
        with pytest.raises(StoreTimeout):
            connection.send(MUCH, 2.5)
        connection.close()
