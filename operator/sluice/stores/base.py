"""What Sluice needs of a stream store, in small protocols.

A `Source` is read: streams, segments, bytes. A `Store` takes bytes as well, has transactions and
reader groups. All block, raise the errors of `sluice.errors` only, and put a deadline on every
call, so the engine above them is plain sequential code that a test can run against a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sluice.stores.cuts import Cuts
from sluice.stores.groups import ReaderGroups
from sluice.stores.reading import SegmentReader, Topology
from sluice.stores.transactions import Transactions
from sluice.stores.writing import Admin, SegmentSink

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.values.model import StoreHealth

    Told = Callable[[str, float], None]
    """Told of each call to what serves a catalog: its name, and how many seconds it took."""


class Source(SegmentReader, Topology, Cuts, Protocol):
    """What a copy, an archive or a comparison reads from."""


class Store(Source, SegmentSink, Admin, Transactions, ReaderGroups, Protocol):
    """A store of live streams, made by `stores.connect`."""

    def probe(self) -> StoreHealth:
        """Ask whether the store is there, knows us, and speaks a protocol that we speak.

        Raises:
            BackendError: it is not, does not, or does not.
        """
        ...

    def close(self) -> None:
        """Close every connection. The store may be used again: it connects anew."""
        ...
