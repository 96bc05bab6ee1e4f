"""Keep connections open for the next call."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sluice.errors import CertificateRejected, StoreUnavailable
from sluice.stores.pravega.wire.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.sockets.tls import TLS

_IDLE = 8
"""Idle connections kept for each server, at most."""


class ConnectionPool:
    """Lends each caller a connection of its own, from any thread.

    A forked process starts with an empty pool: two processes on one connection would mix frames.

    Args:
        timeout: seconds to connect and shake hands.
        tls: the TLS of all connections; None for none.
        most_requests: a connection that sent more requests is not lent again; None for no bound.
    """

    def __init__(
        self, timeout: float, *, tls: TLS | None = None, most_requests: int | None = None
    ) -> None:
        self._timeout = timeout
        self._tls = tls
        self._most_requests = most_requests
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._idle: defaultdict[Endpoint, list[Connection]] = defaultdict(list)

    @contextmanager
    def lease(self, peer: Endpoint) -> Iterator[Connection]:
        """Lend the block a connection that no other caller uses.

        The connection is kept only if the block ends without an error. After an error, the peer may
        still send answers to earlier requests. If the peer is away, its idle connections are not
        kept either: where no host answers, each would look open until a request has timed out.
        """
        connection = self._take(peer)
        try:
            yield connection
        except BaseException as error:
            connection.close()
            if isinstance(error, StoreUnavailable):
                self._drop(peer)
            raise
        self._put_back(connection)

    def open(self, peer: Endpoint) -> Connection:
        """Open a connection that is not kept. The caller closes it.

        Raises:
            BackendError: as `Connection.open`. Certificates that do not verify are read again
                first, and the server is tried again if they have changed.
        """
        if self._tls is None:
            return Connection.open(peer, self._timeout)
        while True:
            used = self._tls.version
            try:
                connection = Connection.open(peer, self._timeout, self._tls)
            except CertificateRejected as error:
                if not self._tls.renew(used):
                    raise self._tls.judged(error) from None
            else:
                self._tls.accepted()
                return connection

    def close(self) -> None:
        """Close the idle connections. Connections that are lent out stay open."""
        with self._lock:
            idle, self._idle = self._idle, defaultdict(list)
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _drop(self, peer: Endpoint) -> None:
        with self._lock:
            idle = self._idle.pop(peer, [])
        for connection in idle:
            connection.close()

    def _take(self, peer: Endpoint) -> Connection:
        if os.getpid() != self._process:
            # Do not take the lock: a thread of the parent may have held it at the fork.
            for connections in self._idle.values():
                for connection in connections:
                    connection.close()
            self._begin()
        while True:
            with self._lock:
                kept = self._idle[peer].pop() if self._idle[peer] else None
            if kept is None:
                return self.open(peer)
            if kept.is_alive():
                return kept
            kept.close()

    def _put_back(self, connection: Connection) -> None:
        if connection.closed:
            return
        connection.relax()
        worn = self._most_requests is not None and connection.requests > self._most_requests
        with self._lock:
            if not worn and len(self._idle[connection.peer]) < _IDLE:
                self._idle[connection.peer].append(connection)
                return
        connection.close()
