"""The last rows of a result, read from any offset, and shown as browsers read them exactly."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events.decoding import encoded
from sluice.core.query.recent import MOST_ROW, ResultReader, first_event
from sluice.errors import EventsDamaged

VALUES = st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(max_size=300)
ROWS = st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=8)


def events_of(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as a query appends them."""
    return b"".join(encoded(json.dumps(row).encode()) for row in rows)


def read(data: bytes) -> list[dict[str, Any]]:
    """Return the rows of whole events."""
    return [json.loads(text) for text in ResultReader().take(data).texts]


@given(ROWS, st.data())
def test_from_any_offset_the_next_row_is_found(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Exactly the rows that begin at the offset or later are read."""
    whole = events_of(rows)
    begin = data.draw(st.integers(0, len(whole)))
    at = first_event(whole[begin:])
    begins = [0]
    for row in rows:
        begins.append(begins[-1] + len(events_of([row])))
    left = sum(one >= begin for one in begins[:-1])
    if at is None:
        assert not left
    else:
        assert read(whole[begin + at :]) == rows[len(rows) - left :]


@pytest.mark.parametrize("size", [0, 60, 200, 247, 300, 65_000])
def test_from_each_offset_of_a_row_the_next_one_is_found(size: int) -> None:
    """Zeros inside a header, which look like the beginning of another, do not mislead."""
    rows = [{"x": "x" * size}] * 3
    whole = events_of(rows)
    length = len(whole) // 3
    for begin in (*range(min(20, length)), length // 2, *range(length - 9, length)):
        at = first_event(whole[begin:])
        assert at is not None, begin
        assert begin + at == (0 if begin == 0 else length), begin


@given(ROWS, st.lists(st.integers(0, 4000), max_size=6))
def test_rows_are_read_however_their_bytes_are_cut(
    rows: list[dict[str, Any]], cuts: list[int]
) -> None:
    """Each row is returned once its last byte is there."""
    whole = events_of(rows)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = ResultReader()
    parts = [reader.take(whole[begin:end]) for begin, end in pairwise(edges)]
    assert [json.loads(text) for part in parts for text in part.texts] == rows
    assert not sum(part.skipped for part in parts)


@pytest.mark.parametrize("cut", [10, MOST_ROW + 40, MOST_ROW + 1000])
def test_a_row_that_is_too_long_is_counted_and_takes_no_memory(cut: int) -> None:
    """A row beyond the limit counts as skipped, and the rows around it are returned."""
    long = encoded(json.dumps({"text": "x" * (MOST_ROW + 500)}).encode())
    whole = events_of([{"n": 1}]) + long + events_of([{"n": 2}])
    reader = ResultReader()
    first, second = reader.take(whole[:cut]), reader.take(whole[cut:])
    assert [json.loads(text) for text in (*first.texts, *second.texts)] == [{"n": 1}, {"n": 2}]
    assert first.skipped + second.skipped == 1


def test_numbers_are_as_browsers_read_them() -> None:
    """Whole numbers beyond 2^53 become texts. NaN and infinity become null."""
    written = b'{"n":9007199254740993,"d":[NaN,{"x":-Infinity}],"ok":9007199254740992,"b":true}'
    assert read(encoded(written)) == [
        {"n": "9007199254740993", "d": [None, {"x": None}], "ok": 1 << 53, "b": True}
    ]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("12345678901234567.89", "12345678901234567.89"),
        ("0.1", 0.1),
        ("1.50", 1.5),
        ("100.0", 100.0),
        ("1E3", 1000.0),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
    ],
)
def test_decimals_are_not_rounded(written: str, shown: object) -> None:
    """A number that JavaScript would round becomes a text."""
    assert read(encoded(f'{{"d":{written}}}'.encode())) == [{"d": shown}]


@pytest.mark.parametrize("event", [b"[1]", b"7", b"{", b"\xff", b"[" * 9000, b""])
def test_events_that_are_no_rows_are_counted(event: bytes) -> None:
    """An event of another writer counts as skipped, and the rows behind it are returned."""
    found = ResultReader().take(encoded(event) + events_of([{"n": 1}]))
    assert (found.texts, found.skipped) == ((b'{"n":1}',), 1)


def test_line_breaks_stay_inside_texts() -> None:
    """A row has no line break of its own, which would end its server-sent event."""
    (text,) = ResultReader().take(encoded(b'{"a":"x\\n\\ndata: y",\n"b":1}')).texts
    assert b"\n" not in text
    assert json.loads(text) == {"a": "x\n\ndata: y", "b": 1}


def test_bytes_that_are_no_events_are_an_error() -> None:
    """The reader raises EventsDamaged, and does not guess where the next row begins."""
    with pytest.raises(EventsDamaged):
        ResultReader().take(b"\xff" * 16)
