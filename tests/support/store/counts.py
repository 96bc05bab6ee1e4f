"""A query that counts clicks by minute and key, and a check of its sink."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import yaml

from sluice.core.events.decoding import decoded
from sluice.core.values.model import StreamName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.stores.base import Store
    from support.store.clicks import Clicks

SQL: Final = """\
SELECT window.start AS start, k, count(*) AS n, sum(n) AS total
FROM clicks GROUP BY window(ts, '1 minute'), k
"""

SCHEMA: Final = "k STRING, n BIGINT, v DOUBLE, ts TIMESTAMP"


def manifest(uri: str, clicks: StreamName, *, name: str = "counts", **changes: Any) -> str:
    """Return the YAML of a store and of the query.

    Args:
        uri: the store's address.
        clicks: the stream of clicks. The sink is the stream `counts` beside it.
        name: the query's name.
        changes: values of the spec, by paths with `__` between names and numbers.
    """
    store = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "StreamStore",
        "metadata": {"name": "main"},
        "spec": {"pravega": {"controllerURI": uri}},
    }
    query = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "StreamQuery",
        "metadata": {"name": name},
        "spec": {
            "sources": [
                {
                    "name": "clicks",
                    "stream": _place(clicks),
                    "format": "Json",
                    "schema": SCHEMA,
                    "eventTime": {"column": "ts", "latenessSeconds": 0},
                }
            ],
            "query": {"sql": SQL},
            "result": {"keys": ["k"]},
            "sinks": [{"stream": {**_place(_beside(clicks)), "segments": 2}}],
            "mode": "Once",
        },
    }
    for path, value in changes.items():
        _set(query["spec"], path.split("__"), value)
    return yaml.safe_dump_all([store, query], sort_keys=False)


def _place(stream: StreamName) -> dict[str, Any]:
    return {"storeRef": {"name": "main"}, "scope": stream.scope, "stream": stream.stream}


def _beside(clicks: StreamName) -> StreamName:
    return StreamName(scope=clicks.scope, stream="counts")


def _set(place: Any, path: list[str], value: Any) -> None:
    *parents, last = [int(part) if part.isdecimal() else part for part in path]
    for part in parents:
        place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
    place[last] = value


def results(store: Store, clicks: StreamName) -> list[dict[str, Any]]:
    """Return all rows of the sink, segment by segment, in their order."""
    sink = _beside(clicks)
    stream = store.describe(sink)
    found: list[dict[str, Any]] = []
    for segment in () if stream is None else stream.tail:
        name = store.segment_name(sink, segment.id)
        (info,) = store.infos([name])
        assert info is not None
        blocks = [block.data.tobytes() for block in store.read(name, 0, info.length)]
        whole = memoryview(b"".join(blocks))
        found += [json.loads(event) for _, event in decoded([whole], 0)]
    return found


def assert_counted(rows: list[dict[str, Any]], clicks: Clicks) -> None:
    """Check that each closed window of each key has one row, with the right count and total.

    A window is closed once an event of a later minute is written.
    """
    expected = {
        (minute, key): (len(numbers), sum(numbers))
        for key, count in clicks.written.items()
        for minute, numbers in _minutes(count).items()
    }
    last = max((minute for minute, _ in expected), default=0)
    closed = {place: value for place, value in expected.items() if place[0] < last}
    found = Counter((_minute(row["start"]), row["k"]) for row in rows)
    assert found == Counter(dict.fromkeys(closed, 1))
    assert {(_minute(row["start"]), row["k"]): (row["n"], row["total"]) for row in rows} == closed


def _minutes(count: int) -> Mapping[int, list[int]]:
    """Return the numbers of a key's events, by minute: see `support.store.clicks`."""
    found: dict[int, list[int]] = {}
    for number in range(count):
        found.setdefault(number // 60 % 60, []).append(number)
    return found


def _minute(start: str) -> int:
    assert start.startswith("2026-01-01T00:"), start
    assert start.endswith(":00.000000Z"), start
    return int(start[14:16])
