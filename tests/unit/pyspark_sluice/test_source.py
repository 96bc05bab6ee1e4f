"""The source without a JVM: planned in one process of Spark, pickled, and read in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pyspark_sluice import DefaultSource
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.names import Format
from sluice.errors import InvalidSpec
from support.archiving.archiving import archive_stream
from support.engine.plans import SOURCE
from support.engine.reading import Reading, act, new_world
from support.model import ModelStore

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = StructType().add("_segment", "long").add("_offset", "long").add("event", "binary")


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    """Return a reader of a scaled stream, of which the folder has an archive."""
    world = new_world([5, 6, 7], [3])
    act(world, [("split", 0), ("write", 0, [1, 2]), ("merge", 0), ("write", 0, [4])])
    root = ArchiveRoot(tmp_path.as_uri(), lambda path: DirectoryObjects(tmp_path / path))
    archive_stream(root, "", Format.SEGMENTS, ModelStore(world), SOURCE)
    return Reading(world)


def test_batches_and_streams_have_the_same_rows(reading: Reading, tmp_path: Path) -> None:
    """Each event comes once, with a limit or without, in the schema that Spark expects."""
    source = DefaultSource({"archive": tmp_path.as_uri()})
    batch = cloudpickle.loads(cloudpickle.dumps(source.reader(COLUMNS)))
    found = [one for part in batch.partitions() for one in batch.read(part)]
    assert found[0].schema == to_arrow_schema(COLUMNS, timezone="UTC")
    rows = pa.Table.from_batches(found).to_pylist()
    written = {
        (segment, offset): event
        for segment, events in reading.written().items()
        for offset, event in events
    }
    assert {(row["_segment"], row["_offset"]): row["event"] for row in rows} == written
    assert len(rows) == len(written)
    for limit in (ReadAllAvailable(), ReadMaxRows(2)):
        stream = source.streamReader(COLUMNS)
        stream.prepareForTriggerAvailableNow()
        start, seen = stream.initialOffset(), []
        while (end := stream.latestOffset(start, limit)) != start:
            task = cloudpickle.loads(cloudpickle.dumps(stream))
            parts = stream.partitions(start, end)
            some = [one for part in parts for batch in task.read(part) for one in batch.to_pylist()]
            assert isinstance(limit, ReadAllAvailable) or len(some) <= 2
            seen += some
            start = end
        told = stream.reportLatestOffset()
        stream.stop()
        assert told is not None
        assert told["bytesBehind"] == 0
        assert sorted(map(repr, seen)) == sorted(map(repr, rows))


def test_a_stream_has_no_end_and_json_has_a_schema(tmp_path: Path) -> None:
    """Wrong options raise InvalidSpec before any store is opened."""
    options = {"archive": tmp_path.as_uri(), "endingPosition": "Head"}
    with pytest.raises(InvalidSpec, match="has no end"):
        DefaultSource(options).streamReader(COLUMNS)
    with pytest.raises(InvalidSpec, match="has no schema of its own"):
        DefaultSource({**options, "format": "Json"}).schema()
    assert DefaultSource(options).schema().endswith("event BINARY")
