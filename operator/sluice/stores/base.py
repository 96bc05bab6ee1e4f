"""The interface of a stream store, in small protocols.

A `Source` is read: streams, segments, bytes. A `Store` takes bytes as well, and has transactions
and reader groups. All methods block, raise only errors of `sluice.errors`, and have a deadline. So
the engine is plain sequential code that a test can run against a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sluice.stores.cuts import Cuts
from sluice.stores.groups import ReaderGroups
from sluice.stores.reading import SegmentReader, Topology
from sluice.stores.tails import TailReader
from sluice.stores.transactions import Transactions
from sluice.stores.writing import Admin, SegmentSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.config import Settings
    from sluice.core.values.model import StoreAddress, StoreHealth
    from sluice.stores.credentials import Credentials
    from sluice.stores.trust import Trust

    Told = Callable[[str, float], None]
    """Callback `(method, seconds)`, called after each call to the server of a catalog."""


class Source(SegmentReader, Topology, Cuts, Protocol):
    """A store that a copy, an archive or a comparison reads from."""


class Segments(SegmentReader, SegmentSink, Protocol):
    """A store that segments are read from and written to, by name: all that a journal needs."""


class Store(Source, TailReader, SegmentSink, Admin, Transactions, ReaderGroups, Protocol):
    """A store of live streams, made by `stores.connect`."""

    def probe(self) -> StoreHealth:
        """Check that the store answers, knows the user, and speaks a protocol that Sluice speaks.

        Raises:
            BackendError: one of these is not so.
        """
        ...

    def close(self) -> None:
        """Close every connection. The store may be used again: it connects anew."""
        ...


class Client(Protocol):
    """The client of a kind of store of live streams; `stores.connect` has one for each kind."""

    def open(
        self,
        address: StoreAddress,
        settings: Settings,
        credentials: Credentials | None,
        trust: Trust,
        told: Told | None,
    ) -> Store:
        """Make the store at an address. No connection is opened before the first call needs one.

        Raises:
            InvalidSpec: the URI does not fit this kind of store, or its certificates are none.
        """
        ...

    def preload(self) -> None:
        """Import all that a store of this kind needs."""
        ...
