"""`sluice.open` on a real store: exact tables without a JVM, over scale events and truncations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sluice
from sluice.core.archive.names import Format
from sluice.errors import InvalidSpec, MalformedEvents, SourceNotFound, SourceTruncated
from sluice.notebook import end_of
from support.archiving.archiving import archive_in
from support.store.clicks import KEYS, SCHEMA, Clicks, digest

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from sluice.notebook import NotebookStream
    from sluice.stores.base import Store


@pytest.fixture
def stream(standalone: Standalone, clicks: Clicks) -> NotebookStream:
    """Return the stream of clicks, opened as in a notebook."""
    return sluice.open(standalone.controller_uri, str(clicks.name))


def table(stream: NotebookStream, **arguments: object) -> pa.Table:
    """Return the stream's clicks."""
    return stream.to_arrow(schema=SCHEMA, format="Json", **arguments)  # type: ignore[arg-type]


def test_a_scaled_stream_is_one_table(clicks: Clicks, stream: NotebookStream) -> None:
    """A table has each event once, in order for each key.

    A second table goes on where one ended.
    """
    with stream:
        clicks.write(40)
        first = table(stream)
        clicks.split()
        clicks.write(40)
        middle = stream.tail()
        clicks.merge()
        clicks.write(40)
        whole = table(stream)
        clicks.assert_exact(whole.to_pylist())
        rest = table(stream, start=end_of(first))
        assert digest(pa.concat_tables([first, rest])) == digest(whole)
        parts = [table(stream, end=middle), table(stream, start=json.dumps(middle.to_json()))]
        assert digest(pa.concat_tables(parts)) == digest(whole)
        assert len(table(stream, start="Tail")) == 0
        assert len(set(whole.column("_segment").to_pylist())) > 3


def test_a_stream_of_javas_client_has_its_pointers(
    store: Store, scope: str, foreign: ForeignClient, standalone: Standalone
) -> None:
    """The column of pointers has the form of the Java client. The stream is sealed."""
    foreign.create(scope, "java", segments=2)
    foreign.write(scope, "java", events=3000, keys=8)
    foreign.seal(scope, "java")
    with sluice.open(standalone.controller_uri, f"{scope}/java") as stream:
        read = stream.to_arrow()
        name = store.segment_name(stream.head().stream, 0)
    assert len(read) == 3000
    row = read.slice(0, 1).to_pylist()[0]
    size = 8 + len(row["event"])
    assert row["_pointer"] == f"{name}:{row['_offset']}-{size}"
    assert ".#epoch.0:" in row["_pointer"]


def test_batches_are_read_as_they_are_taken(clicks: Clicks, stream: NotebookStream) -> None:
    """DuckDB reads the batches of a stream without a table in memory."""
    clicks.write(20)
    with stream, duckdb.connect() as engine:
        engine.register("clicks", stream.batches(schema=SCHEMA, format="Json"))
        found = engine.sql("SELECT k, count(*), max(n) FROM clicks GROUP BY k").fetchall()
    assert sorted(found) == sorted((f"key-{n}", 20, 19) for n in range(KEYS))


def test_malformed_events_are_named_dropped_or_kept(clicks: Clicks, stream: NotebookStream) -> None:
    """A malformed event is an error with its pointer, or dropped, or kept in a column."""
    clicks.write(5)
    clicks.write_raw(b'{"k": "key-0", "n": "many"}')
    clicks.write(5)
    with stream:
        with pytest.raises(MalformedEvents, match=rf"{clicks.name}/0.#epoch.0:\d+-35"):
            table(stream)
        kept = table(stream, malformed="Drop")
        clicks.assert_exact(kept.to_pylist())
        told = json.loads(kept.schema.metadata[b"sluice"])["malformed"]
        assert told["count"] == 1
        assert told["pointers"][0].endswith("-35")
        rescuing = SCHEMA.append(pa.field("_malformed", pa.binary()))
        rescued = stream.to_arrow(schema=rescuing, format="Json", malformed="Rescue")
        (row,) = [one for one in rescued.to_pylist() if one["_malformed"]]
        assert row["_malformed"] == b'{"k": "key-0", "n": "many"}'
        assert (row["k"], row["n"], row["_segment"]) == (None, None, 0)


def test_truncated_events_are_named(clicks: Clicks, stream: NotebookStream) -> None:
    """A start before the head is an error with segment and offset.

    A table from the head on works.
    """
    clicks.write(5)
    with stream:
        begin = stream.head()
        clicks.truncate()
        clicks.write(5)
        assert len(table(stream)) == 5 * KEYS
        with pytest.raises(SourceTruncated, match="has no events from offset 0 on"):
            table(stream, start=begin)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(Format.SEGMENTS),
        pytest.param(Format.PARQUET, marks=pytest.mark.exhaustive),
        pytest.param(Format.EVENT_OBJECTS, marks=pytest.mark.exhaustive),
    ],
)
def test_an_archive_and_then_the_stream_is_the_stream(
    clicks: Clicks, store: Store, standalone: Standalone, tmp_path: Path, form: Format
) -> None:
    """Archive and stream together give the stream's rows, by SHA-256, over scale events.

    The stream has lost the events that only the archive has.
    """
    clicks.write(10)
    clicks.split()
    clicks.write(10)
    cut = clicks.cut()
    clicks.write(10)
    archive_in(tmp_path, clicks, store, form)
    clicks.merge()
    clicks.write(10)
    clicks.split()
    clicks.write(10)
    uri, name = standalone.controller_uri, str(clicks.name)
    with sluice.open(uri, name) as live:
        whole = table(live)
        seam = live.head()
    clicks.assert_exact(whole.to_pylist())
    clicks.truncate(cut)
    clicks.write(10)
    with sluice.open(uri, name, archive=tmp_path.as_uri()) as both:
        read = table(both, end=end_of(whole))
        assert digest(read) == digest(whole)
        assert both.head() == seam
    with pytest.raises(SourceTruncated), sluice.open(uri, name) as live:
        table(live, start=seam)
    with sluice.open(archive=tmp_path.as_uri()) as archive:
        old = table(archive)
        assert len(old) == 30 * KEYS
        before = whole.filter(pc.field("n") < 30)
        # An archive does not know how its source writes pointers.
        assert digest(old.drop(["_pointer"])) == digest(before.drop(["_pointer"]))


def test_events_that_neither_archive_nor_stream_has_are_named(
    clicks: Clicks, store: Store, standalone: Standalone, tmp_path: Path
) -> None:
    """A gap between archive and stream is an error with segment and offset, not a shorter table."""
    clicks.write(5)
    archive_in(tmp_path, clicks, store)
    clicks.write(5)
    clicks.truncate()
    with (
        sluice.open(standalone.controller_uri, str(clicks.name), archive=tmp_path.as_uri()) as both,
        pytest.raises(SourceTruncated, match=r"segment 0 of .* no events from offset \d\d+ on"),
    ):
        table(both)


def test_what_is_not_there_is_said(standalone: Standalone, scope: str, clicks: Clicks) -> None:
    """A missing stream, a name without a scope and a position of another stream are errors."""
    with (
        sluice.open(standalone.controller_uri, f"{scope}/none") as none,
        pytest.raises(SourceNotFound, match=f"there is no stream {scope}/none"),
    ):
        none.to_arrow()
    with sluice.open(standalone.controller_uri, str(clicks.name)) as stream:
        with pytest.raises(InvalidSpec, match="is no stream"):
            sluice.open(standalone.controller_uri, "clicks")
        foreign = stream.head().to_json() | {"stream": "other/stream"}
        with pytest.raises(InvalidSpec, match="a position in other/stream"):
            stream.to_arrow(start=foreign)
