"""Streams as tables: decoding in the source against Spark's own, and Spark against a notebook."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from statistics import median
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import sluice
from bench.model import Goal, Measurement
from sluice.config import Settings
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.stores.connect import connect
from support.command.spark import Spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scopes import Place

    Say = Callable[[str], None]

DECODE_KEY: Final = "decode_vs_from_json"
ARROW_KEY: Final = "query_vs_to_arrow"
KEYS: Final = (DECODE_KEY, ARROW_KEY)

_EVENTS: Final = 1_000_000
_SEGMENTS: Final = 2
_RUNS: Final = 5
_STREAM: Final = StreamName(scope="bench-queries", stream="clicks")
_FIELDS: Final = "k STRING, v DOUBLE, ts TIMESTAMP, n BIGINT"
_SCHEMA: Final = pa.schema(
    [
        ("k", pa.string()),
        ("v", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.int64()),
    ]
)
_SPARK: Final = f"""
import time
from pyspark.sql.functions import col, from_json
def read(form):
    return spark.read.format("sluice").options(**options).option("format", form)
def timed(df):
    begun = time.monotonic()
    df.write.format("noop").mode("overwrite").save()
    return time.monotonic() - begun
ways = {{
    "source": lambda: read("Json").schema("{_FIELDS}").load(),
    "from_json": lambda: read("Bytes").schema("event BINARY").load().select(
        from_json(col("event").cast("string"), "{_FIELDS}").alias("e")).select("e.*"),
}}
"""


def measure_tables(place: Place, say: Say) -> list[Measurement]:
    """Read a stream of JSON in three ways in turn: by Spark twice, and in this process."""
    uri = place.store.controller_uri
    seconds: dict[str, list[float]] = {way: [] for way in ("source", "from_json", "to_arrow")}
    with ExitStack() as stack:
        _fill(uri, say)
        stream = stack.enter_context(sluice.open(uri, str(_STREAM)))
        spark = stack.enter_context(Spark(place.folder))
        spark.run(_SPARK, options={"store": uri, "stream": str(_STREAM)})
        for number in range(_RUNS + 1):  # the first run is the warm-up
            for way in ("source", "from_json"):
                seconds[way].append(spark.run("result = timed(ways[way]())", way=way))
            begun = time.monotonic()
            rows = len(stream.to_arrow(schema=_SCHEMA, format="Json"))
            seconds["to_arrow"].append(time.monotonic() - begun)
            told = ", ".join(f"{way} {one[-1]:.2f} s" for way, one in seconds.items())
            say(f"{number} of {_RUNS}: {rows:,} events: {told}")
    medians = {way: median(one[1:]) for way, one in seconds.items()}
    counts = {f"{way}, events/s": _EVENTS / one for way, one in medians.items()}
    return [
        Measurement(
            key,
            tuple(seconds[way][1:]),
            Goal(">=", goal),
            unit="",
            counts=counts,
            base=tuple(seconds["source"][1:]),
        )
        for key, way, goal in ((DECODE_KEY, "from_json", 2.0), (ARROW_KEY, "to_arrow", 0.8))
    ]


def _fill(uri: str, say: Say) -> None:
    """Write the stream."""
    store = connect(StoreAddress(uri=uri), Settings())
    try:
        store.create_scope(_STREAM.scope)
        store.create_stream(_STREAM, StreamConfig(scaling=Scaling(min_segments=_SEGMENTS)))
        say(f"writing {_EVENTS:,} events")
        EventWriter(store, _STREAM).write(_events())
    finally:
        store.close()


def _events() -> Iterator[Routed]:
    for n in range(_EVENTS):
        event = {"k": f"key-{n % 100}", "v": n / 8, "ts": "2026-01-01T00:00:00.123Z", "n": n}
        yield Routed(n % _SEGMENTS / _SEGMENTS, json.dumps(event).encode())
