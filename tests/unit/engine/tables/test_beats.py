"""Event time that goes on by the clock while a stream is idle."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pyspark_sluice.beats import (
    beat,
    columns_of_events,
    marked,
    time_of_beats,
)
from pyspark_sluice.watermarks import watermark_of
from sluice.core.tables.beats import Beats, beat_of
from sluice.core.tables.columns import BEAT, WATERMARK
from sluice.core.tables.options import TableOptions
from sluice.errors import CheckpointDiverged, InvalidSpec
from support.engine.queries import position

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = TableOptions(event_time="ts", idle_after_ms=10_000)
SCHEMA = pa.schema(
    [("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), (BEAT, pa.bool_())],
)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def test_a_beat_comes_when_nothing_else_came_for_long_enough(clock: Clock) -> None:
    """The beat's time is behind the clock by the idle time, and the position stays."""
    beats = Beats(10_000, clock)
    here = position(5)
    assert beats.after(here, here) == here
    clock.now += 9
    assert beats.after(here, here) == here
    clock.now += 1
    due = beats.after(here, here)
    assert due == here | {"beat": 1_000_000}
    assert beat_of(due) == 1_000_000


def test_beats_are_apart_by_as_much(clock: Clock) -> None:
    """Each beat causes a batch, and a query that is idle for days must not be busy."""
    beats = Beats(10_000, clock)
    offset: dict[str, Any] = position(5)
    seen = []
    for _ in range(300):
        offset = beats.after(offset, position(5))
        seen.append(beat_of(offset))
        clock.now += 0.1
    assert sorted({*seen} - {0}) == pytest.approx([1_000_000, 1_010_000], abs=300)
    assert seen == sorted(seen)


def test_an_event_ends_the_wait_and_keeps_the_beat(clock: Clock) -> None:
    """An offset never has an earlier beat than the offset before it."""
    beats = Beats(10_000, clock)
    beats.after(position(5), position(5))
    clock.now += 10
    due = beats.after(position(5), position(5))
    moved = beats.after(due, position(6))
    assert moved == position(6) | {"beat": beat_of(due)}
    clock.now += 9.9
    assert beats.after(moved, position(6)) == moved


def test_a_clock_that_is_set_back_makes_no_earlier_beat(clock: Clock) -> None:
    """A process that begins anew on another machine makes none either."""
    here = position(5) | {"beat": 2_000_000}
    beats = Beats(10_000, clock)
    beats.after(here, position(5))
    clock.now -= 500
    beats.after(here, position(5))
    clock.now += 60
    assert beats.after(here, position(5)) == here


@pytest.mark.parametrize("value", [None, "1", 1.5, [], {}, -1, 1 << 70])
def test_an_offset_with_another_beat_has_none(value: Any) -> None:
    """A damaged checkpoint may have any value there."""
    assert beat_of(position(5) | {"beat": value}) == 0


def test_a_beat_has_nothing_but_its_time_and_its_mark() -> None:
    """All other columns are null. Events have the mark as well, and theirs is false."""
    (row,) = beat(1_500, time_of_beats(OPTIONS, SCHEMA), SCHEMA).to_pylist()
    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert row == {"k": None, "ts": at, BEAT: True}
    events = pa.RecordBatch.from_pylist([{"k": "a", "ts": at}], columns_of_events(SCHEMA))
    assert marked(events, SCHEMA, 7).to_pylist() == [{"k": "a", "ts": at, BEAT: False}]


def test_times_without_a_zone_are_those_of_utc() -> None:
    """Spark's TIMESTAMP_NTZ means the same in a session of UTC."""
    schema = SCHEMA.set(1, pa.field("ts", pa.timestamp("us")))
    (row,) = beat(0, time_of_beats(OPTIONS, schema), schema).to_pylist()
    assert row["ts"] == datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone


@pytest.mark.parametrize(
    ("options", "names", "field"),
    [
        (TableOptions(idle_after_ms=1), ["k", "ts", BEAT], "eventTime"),
        (TableOptions(idle_after_ms=1, event_time="k"), ["k", "ts", BEAT], "eventTime"),
        (TableOptions(idle_after_ms=1, event_time="at"), ["k", "ts", BEAT], "eventTime"),
        (OPTIONS, ["k", "ts"], "schema"),
    ],
)
def test_wrong_columns_are_named(options: TableOptions, names: list[str], field: str) -> None:
    """Users of Spark may give these options, so the error names the option or the schema."""
    schema = pa.schema([SCHEMA.field(name) for name in names])
    with pytest.raises(InvalidSpec) as raised:
        time_of_beats(options, schema)
    assert raised.value.field == field


def test_events_have_the_watermark_of_their_batch() -> None:
    """The schema decides whether they have it. Without a checkpoint it is null."""
    schema = pa.schema([("k", pa.string()), (WATERMARK, pa.int64())])
    assert columns_of_events(schema).names == ["k"]
    events = pa.RecordBatch.from_pylist([{"k": "a"}])
    assert marked(events, schema, 7).to_pylist() == [{"k": "a", WATERMARK: 7}]
    assert marked(events, schema).to_pylist() == [{"k": "a", WATERMARK: None}]


def planned(folder: Path, batch: str, mark: str) -> None:
    """Write the file that Spark writes when it plans a batch."""
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "offsets" / batch).write_text(f'v1\n{{"batchWatermarkMs":{mark}}}\n{{}}\n')


def test_the_watermark_is_that_of_the_batch_that_was_planned_last(tmp_path: Path) -> None:
    """The highest number counts, without unfinished files. A time too far away is none."""
    planned(tmp_path, "9", "5")
    planned(tmp_path, "10", "7")
    planned(tmp_path, ".11.tmp", "8")
    assert watermark_of(str(tmp_path)) == 7
    planned(tmp_path, "11", str(1 << 60))
    assert watermark_of(str(tmp_path)) is None


@pytest.mark.parametrize("mark", ["", "null", "[]", '"x"'])
def test_a_damaged_checkpoint_is_said(tmp_path: Path, mark: str) -> None:
    """A checkpoint without a batch, or with a wrong watermark, raises CheckpointDiverged."""
    with pytest.raises(CheckpointDiverged):
        watermark_of(str(tmp_path))
    planned(tmp_path, "0", mark)
    with pytest.raises(CheckpointDiverged):
        watermark_of(str(tmp_path))
