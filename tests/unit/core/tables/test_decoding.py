"""Events become columns by format and schema. Malformed events fail, or are dropped or rescued."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.tables.columns import EVENT, PLACES, EventFormat, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.errors import InvalidSpec, MalformedEvents
from support.engine.tables import ORIGIN, group_of

PLACED = [(name, kind) for name, kind in PLACES.items() if name != "_malformed"]


def batch_of(
    form: EventFormat,
    events: list[bytes],
    fields: list[tuple[str, pa.DataType]] | None,
    malformed: Malformed = Malformed.FAIL,
    **given: Any,
) -> tuple[pa.RecordBatch, Decoder]:
    """Decode these events, the first of which begins at offset 100."""
    columns = columns_of(form, None if fields is None else pa.schema(fields))
    decoder = Decoder(columns, form, malformed, **given)
    batch = decoder.decode(group_of(events, start=100), ORIGIN)
    batch.validate(full=True)
    return batch, decoder


@given(st.lists(st.binary(max_size=40), min_size=1))
def test_bytes_are_kept_as_they_are_with_their_places(events: list[bytes]) -> None:
    """Segment, offset and pointer identify each event, as the store's clients write them."""
    batch, _ = batch_of(EventFormat.BYTES, events, None)
    assert batch.schema.names == ["_segment", "_offset", "_pointer", EVENT]
    offset = 100
    for row, event in zip(batch.to_pylist(), events, strict=True):
        size = 8 + len(event)
        pointer = f"{ORIGIN.name}:{offset}-{size}"
        assert row == {"_segment": 7, "_offset": offset, "_pointer": pointer, "event": event}
        offset += size


@given(st.lists(st.binary(max_size=8) | st.text(max_size=8).map(str.encode), min_size=1))
def test_text_is_utf_8_and_all_else_is_rescued(events: list[bytes]) -> None:
    """An event that is not UTF-8 is rescued, and its neighbours stay texts."""
    fields = [("event", pa.string()), ("_malformed", pa.binary())]
    batch, decoder = batch_of(EventFormat.TEXT, events, fields, Malformed.RESCUE)
    wrong = 0
    for row, event in zip(batch.to_pylist(), events, strict=True):
        try:
            assert row == {"event": event.decode(), "_malformed": None}
        except UnicodeDecodeError:
            assert row == {"event": None, "_malformed": event}
            wrong += 1
    assert decoder.rejected.count == wrong


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
LINES = st.tuples(CELLS, st.none() | st.integers(-(1 << 63), (1 << 63) - 1), CELLS)


@given(st.lists(LINES, min_size=1))
def test_csv_is_what_pythons_writer_wrote(rows: list[tuple[Any, ...]]) -> None:
    """Values may contain quotes, delimiters and line breaks."""
    events = []
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line).writerow(row)
        events.append(line.getvalue().removesuffix("\r\n").encode())
    fields = [("a", pa.string()), ("b", pa.int64()), ("c", pa.string())]
    batch, _ = batch_of(EventFormat.CSV, events, fields)
    assert [tuple(row.values()) for row in batch.to_pylist()] == rows


def test_a_record_of_csv_that_does_not_fit_touches_no_other() -> None:
    """An open quote, a second record or a wrong type makes only its own event malformed."""
    events = [b"1,a", b'2,"b', b"3,c\n4,d", b"five,e", b"6,f", b"7", b"", b"\xff,g", b"300,h"]
    fields = [("n", pa.int8()), ("s", pa.string()), ("_malformed", pa.binary())]
    batch, _ = batch_of(EventFormat.CSV, events, fields, Malformed.RESCUE)
    assert [(row["n"], row["s"]) for row in batch.to_pylist() if row["n"]] == [(1, "a"), (6, "f")]
    kept = [row["_malformed"] for row in batch.to_pylist()]
    assert kept == [None, *events[1:4], None, *events[5:]]


def test_another_delimiter_divides_values() -> None:
    """With a tab as the delimiter, a comma belongs to the value."""
    fields = [("a", pa.string()), ("b", pa.int64())]
    batch, _ = batch_of(EventFormat.CSV, [b"x,y\t1"], fields, delimiter="\t")
    assert batch.to_pylist() == [{"a": "x,y", "b": 1}]


def at(*numbers: int) -> datetime:
    """Return a time in UTC."""
    return datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.timestamp("us", "UTC"), '"2026-01-02T03:04:05Z"', at(2026, 1, 2, 3, 4, 5)),
        (pa.timestamp("us", "UTC"), '"2026-01-02T03:04:05"', at(2026, 1, 2, 3, 4, 5)),
        (pa.timestamp("us", "UTC"), '"2026-01-02 05:04:05+02:00"', at(2026, 1, 2, 3, 4, 5)),
        (
            pa.timestamp("us", "UTC"),
            '"2026-01-02T03:04:05.123456789Z"',
            at(2026, 1, 2, 3, 4, 5, 123456),
        ),
        (pa.timestamp("us"), '"2026-01-02T03:04:05.5"', at(2026, 1, 2, 3, 4, 5, 500000)),
        (pa.date32(), '"2026-01-02"', date(2026, 1, 2)),
        (pa.decimal128(10, 2), "12.5", Decimal("12.50")),
        (pa.decimal128(10, 2), '"12.25"', Decimal("12.25")),
        (pa.binary(), '"aGk="', b"hi"),
        (pa.float32(), "1", 1.0),
        (
            pa.list_(pa.struct([("t", pa.timestamp("us", "UTC"))])),
            '[{"t":"2026-01-02T03:04:05Z"},null]',
            [{"t": at(2026, 1, 2, 3, 4, 5)}, None],
        ),
    ],
)
def test_types_that_json_has_not_are_written_as_texts(
    kind: pa.DataType, text: str, value: Any
) -> None:
    """Times are ISO 8601, bytes are base64, and a time without a zone is in UTC."""
    batch, _ = batch_of(EventFormat.JSON, [f'{{"x":{text}}}'.encode()], [("x", kind)])
    (row,) = batch.to_pylist()
    assert _with_zone(row["x"]) == value


def _with_zone(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC)
    if isinstance(value, list):
        return [_with_zone(one) for one in value]
    if isinstance(value, dict):
        return {name: _with_zone(one) for name, one in value.items()}
    return value


MIXED = [b'{"n":1}', b'{"n":"x"}', b"[]", b'{"n":4}']


def test_a_malformed_event_fails_with_its_pointer() -> None:
    """The error has the event's pointer in the stream, and the number of other malformed events."""
    with pytest.raises(MalformedEvents) as caught:
        batch_of(EventFormat.JSON, MIXED, [("n", pa.int64())])
    assert f"{ORIGIN.name}:115-17" in caught.value.message
    assert "1 more near it" in caught.value.message


def test_malformed_events_are_dropped_counted_and_named() -> None:
    """All malformed events count, and the first ten have their pointers kept."""
    fields = [("n", pa.int64()), ("_offset", pa.int64())]
    batch, decoder = batch_of(EventFormat.JSON, MIXED, fields, Malformed.DROP)
    assert batch.to_pylist() == [{"n": 1, "_offset": 100}, {"n": 4, "_offset": 142}]
    assert decoder.rejected.count == 2
    assert decoder.rejected.pointers == [f"{ORIGIN.name}:115-17", f"{ORIGIN.name}:132-10"]
    for _ in range(20):
        decoder.decode(group_of([b"?"]), ORIGIN)
    assert decoder.rejected.count == 22
    assert len(decoder.rejected.pointers) == 10


def test_a_schema_of_places_only_decodes_nothing() -> None:
    """No event is malformed, since no parser runs."""
    batch, _ = batch_of(EventFormat.JSON, [b"?", b"{}"], PLACED)
    assert batch.column("_offset").to_pylist() == [100, 109]


@pytest.mark.parametrize(
    ("form", "fields", "malformed", "said"),
    [
        (EventFormat.JSON, None, Malformed.FAIL, "has no schema"),
        (EventFormat.CSV, None, Malformed.FAIL, "has no schema"),
        (EventFormat.JSON, [("a", pa.int64()), ("a", pa.string())], Malformed.FAIL, "one name"),
        (
            EventFormat.JSON,
            [("_offset", pa.string())],
            Malformed.FAIL,
            "_offset has the type string",
        ),
        (EventFormat.JSON, [("a", pa.duration("s"))], Malformed.FAIL, "duration"),
        (EventFormat.JSON, [("a", pa.map_(pa.int64(), pa.int64()))], Malformed.FAIL, "map"),
        (EventFormat.JSON, [('a"', pa.int64())], Malformed.FAIL, "must not contain"),
        (EventFormat.CSV, [("a", pa.list_(pa.int64()))], Malformed.FAIL, "list"),
        (EventFormat.BYTES, [("a", pa.string())], Malformed.FAIL, "one column of the type binary"),
        (EventFormat.TEXT, [("a", pa.string()), ("b", pa.string())], Malformed.FAIL, "one column"),
        (EventFormat.JSON, [("a", pa.int64())], Malformed.RESCUE, "belong together"),
        (EventFormat.JSON, [("_malformed", pa.binary())], Malformed.DROP, "belong together"),
    ],
)
def test_a_schema_that_does_not_fit_the_format_is_refused(
    form: EventFormat, fields: list[Any] | None, malformed: Malformed, said: str
) -> None:
    """InvalidSpec is raised before any event is read, and names the problem."""
    with pytest.raises(InvalidSpec, match=said):
        batch_of(form, [], fields, malformed)
