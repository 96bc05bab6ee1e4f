"""Tell how far a query is: by its ledger, and by what its sources have behind the last batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.query.ledger import QueryReading
from sluice.core.tables.positions import StreamPosition
from sluice.engine.tables.reading import size_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.query.ledger import LedgerState
    from sluice.core.values.model import StreamName
    from sluice.engine.query.ledger import QueryLedger
    from sluice.stores.base import Source


_MOST: Final = 1 << 62
"""The most bytes that a query may be behind: positions in a ledger may be forged."""


def read_query(ledger: QueryLedger, sources: Sequence[tuple[StreamName, Source]]) -> QueryReading:
    """Read the ledger of a query, and measure its sources.

    Args:
        ledger: the ledger, of which only what is new is read.
        sources: the streams that the query reads, and their stores, in order.

    Raises:
        JournalDamaged: the ledger cannot be read.
        BackendError: its store does not answer.
    """
    state = ledger.load()
    return QueryReading(state, _lag(state, sources))


def _lag(state: LedgerState, sources: Sequence[tuple[StreamName, Source]]) -> int | None:
    """Return the bytes behind the last batch; None if they are not known."""
    if state.version is None:
        return None
    ends = state.version.begins if state.last is None else state.last.ends
    streams = dict(sources)
    total = 0
    # Spark has an end for each time that the text names a table, in an order of its own.
    places = {place.stream: place for place in map(StreamPosition.from_json, ends)}
    for place in places.values():
        if place.stream not in streams:  # the ledger is that of another version
            return None
        try:
            live = StoredStream(streams[place.stream], place.stream)
            total += size_between(live, place, live.tail())
        except SluiceError:
            return None  # the driver reads on from an archive, or says what is wrong
    return total if 0 <= total < _MOST else None
