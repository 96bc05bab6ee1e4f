"""Tell how far a query is: by its ledger, and by what its sources have behind the last batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.query.ledger import QueryReading
from sluice.core.tables.positions import StreamPosition
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.tables.reading import size_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import NoSuchSegment, SourceTruncated, StreamNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.query.ledger import LedgerState
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Source, Store


def read_query(
    store: Store,
    query_id: str,
    sink: StreamName,
    sources: Sequence[tuple[StreamName, Source]],
) -> QueryReading:
    """Read the ledger of a query, and measure its sources.

    Args:
        store: the store of the first sink.
        query_id: the query's identity.
        sink: the first sink.
        sources: the streams that the query reads, and their stores, in order.

    Raises:
        JournalDamaged: the ledger cannot be read.
        BackendError: a store does not answer.
    """
    state = QueryLedger(store, query_id, sink).load()
    return QueryReading(state, _lag(state, sources))


def _lag(state: LedgerState, sources: Sequence[tuple[StreamName, Source]]) -> int | None:
    """Return the bytes behind the last batch; None if they are not known."""
    if state.version is None:
        return None
    ends = state.version.begins if state.last is None else state.last.ends
    if len(ends) != len(sources):  # the ledger is that of another version
        return None
    total = 0
    for (stream, source), end in zip(sources, ends, strict=True):
        place = StreamPosition.from_json(end)
        if place.stream != stream:
            return None
        try:
            live = StoredStream(source, stream)
            total += size_between(live, place, live.tail())
        except (NoSuchSegment, SourceTruncated, StreamNotFound):
            return None  # the driver reads from an archive, or says what is wrong
    return total
