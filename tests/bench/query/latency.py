"""The latency of a window's row: by each engine of a query, by Flink, and by a minimal process.

All read the same events, count them by second and key, and append the rows to a stream, which is
followed as the gateway follows it. The latency of a row is the time from the end of its window to
its arrival.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.model import BenchError, Goal, Measurement
from bench.query.flink import flink_query
from bench.query.windows import KEY_COUNT, SCOPE, manifest
from sluice.api.load import load
from sluice.config import Settings
from sluice.core.events.decoding import encoded
from sluice.core.query.recent import ResultReader
from sluice.core.query.request import query_id
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.query.tail import follow_rows
from sluice.stores.connect import connect
from sluice.stores.tails import Arrived
from support.store.rows import QUERY_ID, ResultRows
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.scopes import Place
    from sluice.stores.base import Store

    Say = Callable[[str], None]
    Follow = Callable[[StreamName], Iterator[Sequence[bytes]]]
    """Yields the rows of a stream as they come, and nothing now and then."""

LATENCY_KEY: Final = "query_latency_vs_floor"
SPREAD_KEY: Final = "query_p99_vs_p50"
FLINK_KEY: Final = "query_latency_vs_flink"
SPARK_KEY: Final = "query_spark_vs_floor"
SPARK_SPREAD_KEY: Final = "query_spark_p99_vs_p50"
KEYS: Final = (LATENCY_KEY, SPREAD_KEY, FLINK_KEY, SPARK_KEY, SPARK_SPREAD_KEY)

_RATE: Final = 1000
"""Events per second."""
_TICK: Final = 0.02
"""Seconds from one append of the writer to the next."""
_WINDOW: Final = 1 << 20
"""Bytes that the writer has in flight in a segment."""
_WARM: Final = 30
"""Seconds after the first row that do not count."""
_SECONDS: Final = 40
"""Seconds that count."""
_PATIENCE: Final = 180
"""Seconds until the first row comes."""
_NUMBERS: Final = count(1)


def measure_latency(place: Place, say: Say) -> list[Measurement]:
    """Measure the query by Arrow, by Spark, then the process, then Flink."""
    uri = place.store.controller_uri
    store = connect(StoreAddress(uri=uri), Settings())
    ways: dict[str, Callable[[str], Iterator[Follow]]] = {
        "Arrow": partial(_query, "Arrow", place, store, uri),
        "Spark": partial(_query, "Spark", place, store, uri),
        "one process": partial(_floor, store, uri),
        "Flink": partial(_flink, place, store, uri),
    }
    found: dict[str, tuple[float, ...]] = {}
    try:
        store.create_scope(SCOPE)
        for name, running in ways.items():
            found[name] = tuple(_delays(store, running, say))
            say(f"by {name}: {len(found[name]):,} rows, p50 {1000 * median(found[name]):.0f} ms")
    finally:
        store.close()
    counts = {"rows": float(len(found["Arrow"]))}
    for name, delays in found.items():
        counts[f"p50 of {name}, ms"] = 1000 * median(delays)
        counts[f"p99 of {name}, ms"] = 1000 * _p99(delays)
    ratio = partial(_ratio, found, counts)
    return [
        ratio(LATENCY_KEY, "Arrow", "one process", Goal("<=", 20.0)),
        _spread(SPREAD_KEY, found["Arrow"], counts),
        ratio(FLINK_KEY, "Arrow", "Flink"),
        ratio(SPARK_KEY, "Spark", "one process"),
        _spread(SPARK_SPREAD_KEY, found["Spark"], counts),
    ]


def _ratio(
    found: dict[str, tuple[float, ...]],
    counts: dict[str, float],
    key: str,
    way: str,
    other: str,
    goal: Goal | None = None,
) -> Measurement:
    return Measurement(key, found[way], goal, unit="", counts=counts, base=found[other])


def _spread(key: str, delays: Sequence[float], counts: dict[str, float]) -> Measurement:
    goal = Goal("<=", 2.5)
    return Measurement(key, (_p99(delays),), goal, unit="", counts=counts, base=(median(delays),))


def _p99(delays: Sequence[float]) -> float:
    return quantiles(delays, n=100)[98]


def _delays(store: Store, running: Callable[[str], Iterator[Follow]], say: Say) -> list[float]:
    """Return the latencies of the rows that come while a stream is written, in seconds."""
    name = f"clicks-{next(_NUMBERS)}"
    source = StreamName(scope=SCOPE, stream=name)
    store.create_stream(source, StreamConfig(scaling=Scaling(min_segments=2)))
    with ExitStack() as stack:
        stack.enter_context(_writing(store, source))
        follow = stack.enter_context(contextmanager(running)(name))
        say(f"{_WARM} s to warm up from the first row on, {_SECONDS} s to measure")
        return _arrivals(store, StreamName(scope=SCOPE, stream=f"{name}-counts"), follow)


def _arrivals(store: Store, sink: StreamName, follow: Follow) -> list[float]:
    """Follow a result. After the warm-up, return the latencies of its rows in seconds."""
    found: list[float] = []
    begin, last = float("inf"), time.time() + _PATIENCE
    until("the query has made its sink", lambda: store.describe(sink) is not None)
    for texts in follow(sink):
        now = time.time()
        if texts and begin > last:
            begin, last = now + _WARM, float("inf")
        if now >= min(begin + _SECONDS, last):
            break
        if now >= begin:
            found += [now - _end(text) for text in texts]
    if not found:
        raise BenchError("no row came")
    return found


def _end(text: bytes) -> float:
    start: str = json.loads(text)["start"]
    return datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp() + 1.0


@contextmanager
def _writing(store: Store, stream: StreamName) -> Iterator[None]:
    """Write events with the present time during the block.

    A connection is kept for each segment, as clients do. To open one takes more than to append.
    """
    ended = threading.Event()
    described = store.describe(stream)
    assert described is not None
    names = [store.segment_name(stream, one.id) for one in described.tail]

    def write() -> None:
        each = round(_RATE * _TICK) // len(names)
        due = time.monotonic()
        numbers = count(1)
        with ExitStack() as stack:
            appenders = [
                stack.enter_context(store.appender(name, writer=uuid4(), window=_WINDOW))
                for name in names
            ]
            while not ended.is_set():
                now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
                for appender in appenders:
                    for number in islice(numbers, each):
                        event = json.dumps({"k": f"key-{number % KEY_COUNT}", "ts": now}).encode()
                        appender.append(encoded(event), event_number=number)
                for appender in appenders:
                    appender.flush()
                due += _TICK
                ended.wait(max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _of_query(store: Store, identity: str) -> Follow:
    """Return how the rows of a query are followed."""
    return lambda sink: (rows.texts for rows in follow_rows(store, sink, identity))


def _of_others(store: Store, sink: StreamName) -> Iterator[Sequence[bytes]]:
    """Yield the rows of a stream that is no query's, and nothing now and then."""
    described = store.describe(sink)
    assert described is not None
    readers = {store.segment_name(sink, one.id): ResultReader() for one in described.tail}
    with store.tails(most=4 << 20) as tails:
        for one in readers:
            tails.watch(one, 0)
        while True:
            yield []
            for event in tails.take(0.5):
                if not isinstance(event, Arrived):
                    raise BenchError(f"{event.segment} broke or ended")
                yield readers[event.segment].take(event.data).texts


def _query(engine: str, place: Place, store: Store, uri: str, name: str) -> Iterator[Follow]:
    """Run `sluice query run` by an engine."""
    text = manifest(uri, name, trigger={"intervalSeconds": 0}, engine=engine)
    file = place.folder / f"{name}.yaml"
    file.write_text(text)
    (asked,) = load(text, copies=False).queries
    command = [
        str(Path(sys.executable).with_name("sluice")),
        *("query", "run", "--filename", str(file), "--output", "json"),
        *("--checkpoints-dir", str(place.folder / "checkpoints"), "--tasks", "2"),
    ]
    with (place.folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command, env=os.environ | {"SLUICE_CLUSTER_ID": "bench"}, stdout=log, stderr=log
        )
    try:
        yield _of_query(store, query_id(asked, cluster="bench"))
    except BenchError as error:
        said = (place.folder / f"{name}.log").read_text()[-2000:]
        raise BenchError(f"{error}; the query said: {said}") from error
    finally:
        process.terminate()
        process.wait()


def _floor(store: Store, uri: str, name: str) -> Iterator[Follow]:
    """Do the same in a thread of this process, without state that survives it."""
    source, sink = (StreamName(scope=SCOPE, stream=one) for one in (name, f"{name}-counts"))
    ended = threading.Event()
    described = store.describe(source)
    assert described is not None
    segments = [store.segment_name(source, one.id) for one in described.tail]
    readers = {one: ResultReader() for one in segments}

    def run() -> None:
        windows: Counter[tuple[str, str]] = Counter()
        with ResultRows(store, uri, sink) as results, store.tails(most=4 << 20) as tails:
            for one, info in zip(segments, store.infos(segments), strict=True):
                tails.watch(one, 0 if info is None else info.start)
            while not ended.is_set():
                latest = ""
                for event in tails.take(0.5):
                    if not isinstance(event, Arrived):
                        raise BenchError(f"{event.segment} broke or ended")
                    for text in readers[event.segment].take(event.data).texts:
                        click = json.loads(text)
                        second = click["ts"][:19]
                        windows[second, click["k"]] += 1
                        latest = max(latest, second)
                closed = [place for place in windows if place[0] < latest]
                if closed:
                    results.add(
                        {"start": f"{second}.000000Z", "k": key, "n": windows.pop((second, key))}
                        for second, key in closed
                    )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield _of_query(store, QUERY_ID)
    finally:
        ended.set()
        thread.join()


def _flink(place: Place, store: Store, uri: str, name: str) -> Iterator[Follow]:
    """Run the same by Flink."""
    sink = StreamName(scope=SCOPE, stream=f"{name}-counts")
    store.create_stream(sink, StreamConfig(scaling=Scaling(min_segments=2)))
    with flink_query(uri, SCOPE, name, place.folder / f"{name}.log"):
        yield partial(_of_others, store)
