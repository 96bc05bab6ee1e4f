"""JSON events become the rows that Python's parser finds, independently of each other."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.core.tables.columns import EventFormat, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from support.engine.tables import ORIGIN, group_of

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("whole number", pa.int64()),
        ("small", pa.int8()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("list", pa.list_(pa.int32())),
        ("nested", pa.struct([("x", pa.string()), ("y", pa.float64())])),
        ("map", pa.map_(pa.string(), pa.int64())),
    ]
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
REALS = st.floats(allow_nan=False, allow_infinity=False)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | TEXTS,
        "whole number": st.none() | INT64,
        "small": st.none() | st.integers(-128, 127),
        "real": st.none() | REALS,
        "flag": st.none() | st.booleans(),
        "list": st.none() | st.lists(st.none() | INT32, max_size=3),
        "nested": st.none() | st.fixed_dictionaries({"x": st.none() | TEXTS, "y": REALS}),
        "map": st.none() | st.dictionaries(TEXTS, st.none() | INT64, max_size=3),
        "not asked for": JSON,
    },
)
FORMS = st.sampled_from(
    [{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}, {"sort_keys": True}]
)
PIECES = st.sampled_from(
    b'{ } [ ] , : " \\ \n \0 null true 1 1.5 "text" "flag" "small" "list" "nested" \xff NaN'.split(
        b" "
    )
)
DAMAGED = st.lists(PIECES, max_size=12).map(b"".join)


def decoded(events: list[bytes], malformed: Malformed = Malformed.RESCUE) -> list[dict[str, Any]]:
    """Return the rows of these events."""
    schema = SCHEMA
    if malformed is Malformed.RESCUE:
        schema = schema.append(pa.field("_malformed", pa.binary()))
    decoder = Decoder(columns_of(EventFormat.JSON, schema), EventFormat.JSON, malformed)
    batch = decoder.decode(group_of(events), ORIGIN)
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def row_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return a parsed object as a row of the schema."""
    row = {name: value.get(name) for name in SCHEMA.names}
    if row["map"] is not None:
        row["map"] = list(row["map"].items())
    return row


@given(st.lists(st.tuples(ROWS, FORMS), min_size=1, max_size=8))
def test_events_are_the_rows_that_pythons_parser_finds(written: list[Any]) -> None:
    """Spaces, escapes, missing fields and unknown fields do not matter."""
    events = [json.dumps(row, **form).encode() for row, form in written]
    found = decoded(events)
    assert found == [row_of(json.loads(event)) | {"_malformed": None} for event in events]


def is_object(event: bytes) -> bool:
    """Tell whether Python's parser finds an object in an event, and nothing but what JSON has."""

    def refuse(_: str) -> None:
        raise ValueError

    try:
        value = json.loads(event.decode(errors="surrogateescape"), parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


@given(st.lists(DAMAGED | ROWS.map(lambda row: json.dumps(row).encode()), min_size=1, max_size=6))
@example([b'{"list":[1', b",2]}", b"{}"])
@example([b'{"text":"a', b'"}', b"{}\n{}"])
@example([b"{}null{}", b"null", b'{"nested":null}'])
@example([b'{"small":128}', b'{"small":127}', b'{"real":"1"}'])
def test_an_event_that_does_not_fit_touches_no_other(events: list[bytes]) -> None:
    """A malformed event's row is null and has its bytes.

    Other events have the rows of their own.
    """
    rows = decoded(events)
    assert len(rows) == len(events)
    for event, row in zip(events, rows, strict=True):
        assert [row] == decoded([event])
        kept = row.pop("_malformed")
        assert kept in {None, event}
        if not is_object(event):
            assert kept == event
        if kept is not None:
            assert set(row.values()) == {None}


def test_deeply_nested_events_are_malformed_and_no_crash() -> None:
    """An event of a million brackets ends neither the process nor the other rows."""
    deep = b'{"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    rows = decoded([b'{"text":"a"}', deep, b'{"text":"b"}'])
    assert [row["text"] for row in rows] == ["a", None, "b"]
    assert rows[1]["_malformed"] == deep
