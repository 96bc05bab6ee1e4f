"""Decode events into batches of Arrow, by format and schema."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.events.framing import HEADER
from sluice.core.tables.columns import (
    OFFSET,
    RESCUED,
    SEGMENT,
    Columns,
    EventFormat,
    Malformed,
)
from sluice.core.tables.conversion import converted, raw_csv, raw_json
from sluice.errors import InvalidSpec, MalformedEvents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.events.grouping import Group

NAMED: Final = 10
"""Most malformed events that are named."""


class Origin(NamedTuple):
    """The segment of events: its id, and its full name as event pointers have it."""

    segment: int
    name: str


@dataclass(slots=True)
class Rejected:
    """The events that did not fit format and schema.

    Attributes:
        count: their number.
        pointers: the pointers of the first ones.
    """

    count: int = 0
    pointers: list[str] = field(default_factory=list)


class _Parser(Protocol):
    def parse(self, events: Sequence[bytes]) -> tuple[list[list[Any]], set[int]]: ...


class Decoder:
    """Decodes groups of events into batches.

    Args:
        columns: the columns of the batches.
        form: the format of the events.
        malformed: what becomes of events that do not fit.
        delimiter: the character between values of the format Csv.

    Attributes:
        rejected: the events that did not fit so far.

    Raises:
        InvalidSpec: events are to be rescued, and no column takes them; or the other way round.
    """

    def __init__(
        self,
        columns: Columns,
        form: EventFormat,
        malformed: Malformed = Malformed.FAIL,
        *,
        delimiter: str = ",",
    ) -> None:
        if columns.rescues is not (malformed is Malformed.RESCUE):
            raise InvalidSpec(
                f"the column {RESCUED} and malformed: {Malformed.RESCUE} belong together",
                field="malformed",
                remedy=f"Add the column {RESCUED} to the schema, or take Fail or Drop.",
            )
        self.columns = columns
        self.rejected = Rejected()
        self._form = form
        self._malformed = malformed
        self._kinds = [one.type for one in columns.fields]
        self._parser = _parser(columns, form, delimiter)

    def decode(self, group: Group, origin: Origin) -> pa.RecordBatch:
        """Return the rows of a group of events.

        Raises:
            MalformedEvents: events do not fit, and that is to fail.
        """
        bad: set[int] = set()
        fields = self._fields(group, bad)
        places = _Places(group, origin)
        if bad:
            self._reject(sorted(bad), places)
        known = dict(zip((one.name for one in self.columns.fields), fields, strict=True))
        schema = self.columns.schema
        arrays = [
            known[name] if name in known else places.column(name, bad) for name in schema.names
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if bad and self._malformed is Malformed.DROP:
            return batch.filter(pa.array([number not in bad for number in range(len(batch))]))
        return batch

    def _fields(self, group: Group, bad: set[int]) -> list[pa.Array]:
        """Return the columns that are decoded. Add the rows that do not fit to `bad`."""
        if not self._kinds:
            return []
        if self._parser is not None:
            values, wrong = self._parser.parse(bodies_of(group))
            bad |= wrong
            raw = raw_csv if self._form is EventFormat.CSV else raw_json
            return converted(values, self._kinds, raw, bad)
        (kind,) = self._kinds
        events = bodies(group)
        if self._form is EventFormat.TEXT:
            return [_texts(events, kind, bad)]
        return [events.cast(kind)]

    def _reject(self, rows: list[int], places: _Places) -> None:
        """Count events that do not fit, and name the first ones."""
        free = NAMED - len(self.rejected.pointers)
        named = [places.pointer(row) for row in rows[:free]]
        if self._malformed is Malformed.FAIL:
            more = f", and {len(rows) - 1} more near it" if rows[1:] else ""
            raise MalformedEvents(
                f"the event {places.pointer(rows[0])} does not fit the format {self._form} and the "
                f"schema{more}"
            )
        self.rejected.count += len(rows)
        self.rejected.pointers += named


def _parser(columns: Columns, form: EventFormat, delimiter: str) -> _Parser | None:
    # Imported here, so that each format needs only its own library.
    if form is EventFormat.JSON:
        from sluice.core.tables.json_events import JsonParser  # noqa: PLC0415

        return JsonParser(columns.fields)
    if form is EventFormat.CSV:
        from sluice.core.tables.csv_events import CsvParser  # noqa: PLC0415

        return CsvParser(columns.fields, delimiter)
    return None


def bodies(group: Group) -> pa.Array:
    """Return the events' own bytes, without headers. Arrow copies them at once."""
    framed = pa.BinaryArray.from_buffers(
        pa.binary(),
        group.events,
        [None, pa.py_buffer(array("i", group.edges)), pa.py_buffer(group.data)],
    )
    # An end is needed: without one, Arrow 26 multiplies the largest number by the rows' count.
    return pc.binary_slice(framed, HEADER, len(group.data))


def bodies_of(group: Group) -> list[bytes]:
    """Return the events' own bytes, for parsers of Python."""
    data, edges = group.data, group.edges
    return [data[begin + HEADER : end] for begin, end in pairwise(edges)]


def _texts(events: pa.Array, kind: pa.DataType, bad: set[int]) -> pa.Array:
    try:
        return events.cast(kind)
    except pa.ArrowInvalid:
        values = [_text(one, number, bad) for number, one in enumerate(events.to_pylist())]
        return pa.array(values, kind)


def _text(event: bytes, number: int, bad: set[int]) -> str | None:
    try:
        return event.decode()
    except UnicodeDecodeError:
        bad.add(number)
        return None


class _Places:
    """The columns that say where the events of a group stand."""

    def __init__(self, group: Group, origin: Origin) -> None:
        self._group = group
        self._origin = origin

    def pointer(self, row: int) -> str:
        """Return the pointer of one event."""
        begin, end = self._group.edges[row : row + 2]
        return f"{self._origin.name}:{self._group.start + begin}-{end - begin}"

    def column(self, name: str, bad: set[int]) -> pa.Array:
        """Return a column by its name."""
        group, count = self._group, self._group.events
        if name == SEGMENT:
            return pa.repeat(pa.scalar(self._origin.segment, pa.int64()), count)
        if name == RESCUED:
            events = bodies_of(group) if bad else []
            rescued = [events[row] if row in bad else None for row in range(count)]
            return pa.array(rescued, pa.binary())
        edges = pa.py_buffer(array("q", group.edges))
        begins = pa.Array.from_buffers(pa.int64(), count, [None, edges])
        offsets = pc.add(begins, pa.scalar(group.start, pa.int64()))
        if name == OFFSET:
            return offsets
        # `columns.PLACES` has no more names: this is POINTER.
        ends = pa.Array.from_buffers(pa.int64(), count, [None, edges], offset=1)
        sizes = pc.cast(pc.subtract(ends, begins), pa.string())
        spans = pc.binary_join_element_wise(pc.cast(offsets, pa.string()), sizes, "-")
        return pc.binary_join_element_wise(self._origin.name, spans, ":")
