"""Let event time go on by the clock while a stream is idle, so that its windows are closed.

A beat that is planned (`sluice.core.tables.beats`) is a row that has nothing but a time and the
mark `BEAT`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from sluice.core.tables.columns import BEAT, DROPPED, WATERMARK
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.tables.options import TableOptions

_FILLED: Final = frozenset({BEAT, WATERMARK, DROPPED})
"""The columns that a reader fills in."""


@dataclass
class BeatPartition(InputPartition):
    """A beat.

    Attributes:
        millis: its time, in milliseconds since 1970.
    """

    millis: int


def columns_of_events(schema: pa.Schema) -> pa.Schema:
    """Return the columns that events have: all but those which their reader fills in."""
    return pa.schema([field for field in schema if field.name not in _FILLED])


def time_of_beats(options: TableOptions, schema: pa.Schema) -> str:
    """Return the column of times in a table with beats.

    Raises:
        InvalidSpec: there is no such column of times, or none that marks beats.
    """
    name = options.event_time
    if (
        name is None
        or name not in schema.names
        or not pa.types.is_timestamp(schema.field(name).type)
    ):
        raise InvalidSpec(
            f"the schema has no column {name} of times", field="eventTime", remedy="Name one."
        )
    if BEAT not in schema.names:
        raise InvalidSpec(
            "the schema has no column for beats",
            field="schema",
            remedy=f"Add {BEAT} BOOLEAN, and drop the rows where it is true behind the watermark.",
        )
    return name


def marked(
    batch: pa.RecordBatch, schema: pa.Schema, watermark: int | None = None
) -> pa.RecordBatch:
    """Return a batch of events with the columns that their reader fills in.

    Args:
        batch: the columns of the events.
        schema: all columns.
        watermark: that of Spark's batch, in milliseconds since 1970; None if it is not known.
    """
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns[BEAT] = pa.repeat(pa.scalar(value=False), len(batch))
    columns[DROPPED] = pa.nulls(len(batch), pa.int64())
    columns[WATERMARK] = pa.repeat(pa.scalar(watermark, pa.int64()), len(batch))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def beat(millis: int, time_column: str, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch of a beat: one row, in which all is null but its time and its mark."""
    kind = schema.field(time_column).type
    at = datetime.fromtimestamp(millis / 1000, UTC)
    values = {time_column: at if kind.tz else at.replace(tzinfo=None), BEAT: True}
    return _row(values, schema)


def dropped(number: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch that tells how many events were left out: one row with nothing else."""
    return _row({DROPPED: number}, schema)


def _row(values: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return one row with these values. All others are null, or blank where none may be null."""
    arrays = [pa.array([values.get(field.name, _blank(field))], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _blank(field: pa.Field) -> Any:
    """Return the value of a column that a row does not tell. Spark trusts in NOT NULL."""
    kind = field.type
    if field.nullable:
        return None
    if pa.types.is_struct(kind):
        return {part.name: _blank(part) for part in kind}
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return []
    if pa.types.is_timestamp(kind):
        return datetime.fromtimestamp(0, UTC if kind.tz else None)
    known = ((pa.types.is_string, ""), (pa.types.is_binary, b""), (pa.types.is_date, date.min))
    return next((blank for fits, blank in known if fits(kind)), 0)
