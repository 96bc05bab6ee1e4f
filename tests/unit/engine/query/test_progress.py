"""The lag of a query follows from its ledger and from the tails of its sources."""

from __future__ import annotations

import pytest

from sluice.core.query.ledger import BatchRecord, VersionRecord
from sluice.core.values.model import StreamConfig, StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.progress import read_query
from sluice.engine.query.sinks import make_sink
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.engine.tables.source import StoredStream
from support.engine.queries import QUERY_ID, SINK, query_plan, sink, source
from support.model import ModelStore, World

A, B, C = (StreamName(scope=SINK.scope, stream=name) for name in "abc")
HEADER = 8
"""The bytes of the header before each event."""
SIZES = {A: 10, B: 300, C: 7000}


@pytest.mark.parametrize(
    ("ends", "lag"),
    [([A, B], 310), ([B, A], 310), ([B], 300), ([A, A], 10), ([A, C], None)],
    ids=lambda value: (
        "".join(one.stream for one in value) if isinstance(value, list) else str(value)
    ),
)
def test_positions_are_those_of_their_streams(ends: list[StreamName], lag: int | None) -> None:
    """Spark reports a position for each mention of a table in the query, in its own order."""
    store = ModelStore(World())
    store.create_scope(SINK.scope)
    begins = {}
    for stream, size in SIZES.items():
        assert store.create_stream(stream, StreamConfig())
        begins[stream] = StoredStream(store, stream).tail().to_json()
        EventWriter(store, stream).write([Routed(0.0, bytes(size - HEADER))])
    make_sink(sink(), store, QUERY_ID)
    ledger = QueryLedger(store, QUERY_ID, SINK)
    ledger.begin()
    plan = query_plan(sources=(source(name="a", stream=A), source(name="b", stream=B)))
    ledger.add(VersionRecord(number=1, plan=plan, begins=(begins[A], begins[B])))
    places = tuple(begins[one] for one in ends)
    ledger.add(BatchRecord(batch=0, ends=places, rows=0, sha256="0" * 64))
    reading = read_query(ledger, [(A, store), (B, store)])
    assert reading.lag_bytes == lag
