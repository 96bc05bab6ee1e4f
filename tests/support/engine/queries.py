"""Plans of queries, and rows of their batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.plan import Compiled, EventTime, PlannedSink, PlannedSource, QueryPlan
from sluice.core.query.rows import ResultRow, in_order
from sluice.core.tables.columns import EventFormat
from sluice.core.values.model import StoreAddress, StreamName

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERY_ID: Final = "0123456789abcdef0123456789abcdef"
SOURCE: Final = StreamName(scope="in", stream="clicks")
SINK: Final = StreamName(scope="out", stream="counts")
STORE: Final = StoreAddress(uri="tcp://store:9090")

COMPILED: Final = Compiled(spark="4.3.0", columns="k STRING,n BIGINT", tree="Aggregate k")


def source(**changes: Any) -> PlannedSource:
    """Return a source with these changes."""
    usual = PlannedSource(
        name="clicks",
        stream=SOURCE,
        store=STORE,
        begins="Head",
        format=EventFormat.JSON,
        columns="k STRING, ts TIMESTAMP",
        event_time=EventTime(column="ts", lateness_ms=10_000),
    )
    return usual.model_copy(update=changes)


def query_plan(**changes: Any) -> QueryPlan:
    """Return a plan of a query with these changes."""
    usual = QueryPlan(
        query_id=QUERY_ID,
        sources=(source(),),
        sql="SELECT k, count(*) AS n FROM clicks GROUP BY window(ts, '10 seconds'), k",
        keys=("k",),
        sinks=(sink(),),
        compiled=COMPILED,
    )
    return usual.model_copy(update=changes)


def sink(segments: int = 2) -> PlannedSink:
    """Return a sink."""
    return PlannedSink(stream=SINK, store=STORE, segments=segments)


def position(offset: int, stream: StreamName = SOURCE) -> dict[str, Any]:
    """Return a position in a stream of one segment, as JSON."""
    return {
        "stream": str(stream),
        "segments": {"0": {"offset": offset, "low": "0.0", "high": "1.0"}},
    }


def rows_of(batch: int, keys: int = 8) -> Sequence[ResultRow]:
    """Return the rows of a batch, one for each key."""
    return in_order(
        ResultRow(f"key-{key}", f'{{"k":"key-{key}","batch":{batch}}}') for key in range(keys)
    )
