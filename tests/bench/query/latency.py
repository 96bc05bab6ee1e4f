"""The latency of a window's row: by a query of Spark, and by a minimal process.

Both read the same events, count them by second and key, and append the rows to a stream, which is
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
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from bench.model import BenchError, Goal, Measurement
from bench.query.windows import KEY_COUNT, SCOPE, manifest
from sluice.api.load import load
from sluice.config import Settings
from sluice.core.query.recent import ResultReader
from sluice.core.query.request import query_id
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.engine.query.tail import follow_rows
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.stores.connect import connect
from sluice.stores.tails import Arrived
from support.store.rows import QUERY_ID, ResultRows
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scopes import Place
    from sluice.stores.base import Store

    Say = Callable[[str], None]

LATENCY_KEY: Final = "query_latency_vs_floor"
SPREAD_KEY: Final = "query_p99_vs_p50"
KEYS: Final = (LATENCY_KEY, SPREAD_KEY)

_RATE: Final = 1000
"""Events per second."""
_TICK: Final = 0.02
"""Seconds from one append of the writer to the next."""
_WARM: Final = 30
"""Seconds after the first row that do not count."""
_SECONDS: Final = 40
"""Seconds that count."""
_PATIENCE: Final = 180
"""Seconds until the first row comes."""
_NUMBERS: Final = count(1)


def measure_latency(place: Place, say: Say) -> list[Measurement]:
    """Measure the query, then the process."""
    uri = place.store.controller_uri
    store = connect(StoreAddress(uri=uri), Settings())
    try:
        store.create_scope(SCOPE)
        query = _delays(store, lambda name: _query(place, uri, name), say)
        say(_told("by Spark", query))
        floor = _delays(store, lambda name: _floor(store, uri, name), say)
        say(_told("by one process", floor))
    finally:
        store.close()
    counts = {
        "p50 of the query, ms": 1000 * median(query),
        "p99 of the query, ms": 1000 * quantiles(query, n=100)[98],
        "p50 of one process, ms": 1000 * median(floor),
        "rows": float(len(query)),
    }
    spread = quantiles(query, n=100)[98]
    return [
        Measurement(
            LATENCY_KEY, tuple(query), Goal("<=", 20.0), unit="", counts=counts, base=tuple(floor)
        ),
        Measurement(
            SPREAD_KEY, (spread,), Goal("<=", 2.5), unit="", counts=counts, base=(median(query),)
        ),
    ]


def _told(who: str, delays: list[float]) -> str:
    return f"{who}: {len(delays):,} rows, p50 {1000 * median(delays):.0f} ms"


def _delays(store: Store, running: Callable[[str], Iterator[str]], say: Say) -> list[float]:
    """Return the latencies of the rows that come while a stream is written, in seconds."""
    name = f"clicks-{next(_NUMBERS)}"
    source = StreamName(scope=SCOPE, stream=name)
    store.create_stream(source, StreamConfig(scaling=Scaling(min_segments=2)))
    with ExitStack() as stack:
        stack.enter_context(_writing(store, source))
        identity = stack.enter_context(contextmanager(running)(name))
        say(f"{_WARM} s to warm up from the first row on, {_SECONDS} s to measure")
        return _arrivals(store, StreamName(scope=SCOPE, stream=f"{name}-counts"), identity)


def _arrivals(store: Store, sink: StreamName, identity: str) -> list[float]:
    """Follow a result. After the warm-up, return the latencies of its rows in seconds."""
    found: list[float] = []
    begin, last = float("inf"), time.time() + _PATIENCE
    until("the query has made its sink", lambda: store.describe(sink) is not None)
    for rows in follow_rows(store, sink, identity):
        now = time.time()
        if rows.texts and begin > last:
            begin, last = now + _WARM, float("inf")
        if now >= min(begin + _SECONDS, last):
            break
        if now >= begin:
            found += [now - _end(text) for text in rows.texts]
    if not found:
        raise BenchError("no row came")
    return found


def _end(text: bytes) -> float:
    start: str = json.loads(text)["start"]
    return datetime.fromisoformat(start).timestamp() + 1.0


@contextmanager
def _writing(store: Store, stream: StreamName) -> Iterator[None]:
    """Write events with the present time during the block."""
    ended = threading.Event()

    def write() -> None:
        writer = EventWriter(store, stream)
        each = round(_RATE * _TICK)
        due = time.monotonic()
        while not ended.is_set():
            now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            events = [
                Routed(at % 2 / 2, json.dumps({"k": f"key-{at % KEY_COUNT}", "ts": now}).encode())
                for at in range(each)
            ]
            writer.write(events)
            due += _TICK
            ended.wait(max(0.0, due - time.monotonic()))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _query(place: Place, uri: str, name: str) -> Iterator[str]:
    """Run `sluice query run`, and yield the identity of the query."""
    text = manifest(uri, name, trigger={"intervalSeconds": 0})
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
        yield query_id(asked, cluster="bench")
    except BenchError as error:
        said = (place.folder / f"{name}.log").read_text()[-2000:]
        raise BenchError(f"{error}; the query said: {said}") from error
    finally:
        process.terminate()
        process.wait()


def _floor(store: Store, uri: str, name: str) -> Iterator[str]:
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
        yield QUERY_ID
    finally:
        ended.set()
        thread.join()
