"""A stream of JSON events that are numbered by key, and a check of tables that are read from it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sluice.core.values.model import KeyRange, ScaleType, Scaling, StreamConfig
from sluice.engine.streams.writing import EventWriter, Routed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store

KEYS: Final = 16

SCHEMA: Final = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int64()),
        ("v", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("_segment", pa.int64()),
        ("_offset", pa.int64()),
        ("_pointer", pa.string()),
    ]
)
DDL: Final = (
    "k STRING, n BIGINT, v DOUBLE, ts TIMESTAMP, _segment BIGINT, _offset BIGINT, _pointer STRING"
)
"""The columns, for Arrow and for Spark."""


class Clicks:
    """A stream of two segments. The events of each key are numbered from 0.

    Args:
        store: the store.
        name: the stream's name, in an existing scope. The constructor makes the stream.

    Attributes:
        written: the number of events of each key.
    """

    def __init__(self, store: Store, name: StreamName) -> None:
        self.name = name
        self.written: defaultdict[str, int] = defaultdict(int)
        self._store = store
        # Fixed scaling would refuse to merge two segments.
        policy = Scaling(
            type=ScaleType.BY_EVENTS, target_rate=10**9, scale_factor=2, min_segments=2
        )
        assert store.create_stream(name, StreamConfig(scaling=policy))

    def write(self, rounds: int) -> None:
        """Write `rounds` events of each key."""
        EventWriter(self._store, self.name).write(self._events(rounds))

    def _events(self, rounds: int) -> Iterable[Routed]:
        for _ in range(rounds):
            for number in range(KEYS):
                key = f"key-{number}"
                n = self.written[key]
                self.written[key] += 1
                event = {"k": key, "n": n, "v": n / 4, "ts": f"2026-01-01T00:{n // 60 % 60:02}:00Z"}
                yield Routed(self._store.place_of(key), json.dumps(event).encode())

    def write_raw(self, event: bytes) -> None:
        """Write one event as it is."""
        EventWriter(self._store, self.name).write([Routed(0.0, event)])

    def split(self) -> None:
        """Replace the first segment by two."""
        first, *_ = self._segments()
        middle = (first.keys.low + first.keys.high) / 2
        halves = [(first.keys.low, middle), (middle, first.keys.high)]
        self._scale([first.id], halves)

    def merge(self) -> None:
        """Replace the first two segments by one."""
        first, second, *_ = self._segments()
        self._scale([first.id, second.id], [(first.keys.low, second.keys.high)])

    def renew(self, count: int) -> None:
        """Replace all segments by `count` others, so that no old and new one are read together."""
        ended = [one.id for one in self._segments()]
        self._scale(ended, [(at / count, (at + 1) / count) for at in range(count)])

    def _scale(self, ended: list[int], ranges: list[tuple[float, float]]) -> None:
        keys = [KeyRange(low=low, high=high) for low, high in ranges]
        self._store.scale(self.name, ended, keys)

    def _segments(self) -> tuple[Any, ...]:
        stream = self._store.describe(self.name)
        assert stream is not None
        return stream.tail

    def cut(self) -> dict[int, int]:
        """Return the position after the last event, as offsets by segment."""
        names = {one.id: self._store.segment_name(self.name, one.id) for one in self._segments()}
        infos = self._store.infos(list(names.values()))
        return {one: info.length for one, info in zip(names, infos, strict=True) if info}

    def truncate(self, cut: Mapping[int, int] | None = None) -> None:
        """Drop all events before a cut; without a cut, all present events."""
        self._store.truncate_stream(self.name, self.cut() if cut is None else cut)

    def assert_exact(self, rows: Iterable[Mapping[str, Any]], *, ordered: bool = True) -> None:
        """Check that the rows are all written events, each once and in the order of its key.

        Args:
            rows: the rows.
            ordered: whether the rows of a key have to come in order.
        """
        seen: defaultdict[str, list[int]] = defaultdict(list)
        for row in rows:
            seen[row["k"]].append(row["n"])
            assert row["v"] == row["n"] / 4
        numbers = {key: found if ordered else sorted(found) for key, found in seen.items()}
        assert numbers == {key: list(range(count)) for key, count in self.written.items()}


def digest(table: pa.Table) -> str:
    """Return the SHA-256 of a table's rows, in the order of segments and offsets."""
    found = hashlib.sha256()
    for row in table.sort_by([("_segment", "ascending"), ("_offset", "ascending")]).to_pylist():
        found.update(repr(sorted(row.items())).encode())
    return found.hexdigest()
