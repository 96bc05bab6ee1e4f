"""The columns of a table of events: those that say where an event stands, and those of its fields.

The columns of an event's place have fixed names that begin with an underscore. A schema that names
one of them gets it; all other columns are fields of the events.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENT: Final = "_segment"
"""The id of the event's segment."""

OFFSET: Final = "_offset"
"""The offset in bytes at which the event begins in its segment, with its header."""

POINTER: Final = "_pointer"
"""The event's pointer, as the store's clients write it: segment, offset, and length with header."""

OURS: Final = "_sluice_"
"""The beginning of the names of columns that a reader fills in."""

BEAT: Final = "_sluice_beat"
"""The column that marks a beat: see `core.tables.beats`."""

WATERMARK: Final = "_sluice_watermark"
"""The column with the watermark of the batch, in milliseconds since 1970; null in a beat, and where
no checkpoint says it: see `pyspark_sluice.watermarks`."""

DROPPED: Final = "_sluice_dropped"
"""The column with the number of events that did not fit and were left out, in a row of its own; in
all other rows it is null."""

RESCUED: Final = "_malformed"
"""The bytes of an event that does not fit format and schema; else null."""

EVENT: Final = "event"
"""The column of the formats Bytes and Text, unless the schema names another one."""

PLACES: Final = {
    SEGMENT: pa.int64(),
    OFFSET: pa.int64(),
    POINTER: pa.string(),
    RESCUED: pa.binary(),
}
"""The types of the columns whose names begin with an underscore."""


class EventFormat(StrEnum):
    """The format in which events are decoded."""

    JSON = "Json"
    CSV = "Csv"
    TEXT = "Text"
    BYTES = "Bytes"


class Malformed(StrEnum):
    """What becomes of events that do not fit format and schema."""

    FAIL = "Fail"
    DROP = "Drop"
    RESCUE = "Rescue"


class Columns(NamedTuple):
    """The columns of a table.

    Attributes:
        schema: all columns, in their order.
        fields: the columns that are decoded from events.
    """

    schema: pa.Schema
    fields: tuple[pa.Field, ...]

    @property
    def rescues(self) -> bool:
        """Whether a column takes the events that do not fit."""
        return RESCUED in self.schema.names


def columns_of(form: EventFormat, schema: pa.Schema | None) -> Columns:
    """Check a schema for a format.

    Args:
        form: the format.
        schema: the columns; None for the usual ones of the formats Bytes and Text.

    Raises:
        InvalidSpec: the format needs a schema, or has no such columns.
    """
    if schema is None:
        schema = _usual(form)
    if len(set(schema.names)) < len(schema.names):
        raise InvalidSpec("two columns have one name", field="schema")
    for field in schema:
        expected = PLACES.get(field.name)
        if expected is not None and field.type != expected:
            raise InvalidSpec(
                f"the column {field.name} has the type {field.type}, and not {expected}",
                field="schema",
                remedy="Correct the type, or give your own column another name.",
            )
    fields = tuple(field for field in schema if field.name not in PLACES)
    _CHECKS[form](form, fields)
    return Columns(schema, fields)


def _usual(form: EventFormat) -> pa.Schema:
    if form not in {EventFormat.BYTES, EventFormat.TEXT}:
        raise InvalidSpec(
            f"the format {form} has no schema of its own",
            field="schema",
            remedy="Name the fields of the events and their types in a schema.",
        )
    places = [(name, PLACES[name]) for name in (SEGMENT, OFFSET, POINTER)]
    return pa.schema([*places, (EVENT, pa.binary() if form is EventFormat.BYTES else pa.string())])


def _check_one(form: EventFormat, fields: tuple[pa.Field, ...]) -> None:
    kinds = {pa.binary(), pa.large_binary()}
    if form is EventFormat.TEXT:
        kinds = {pa.string(), pa.large_string()}
    if len(fields) > 1 or any(field.type not in kinds for field in fields):
        raise InvalidSpec(
            f"an event in the format {form} is one column of the type {min(map(str, kinds))}",
            field="schema",
            remedy=f"Leave out the schema, or name the column {EVENT}.",
        )


def _check_flat(form: EventFormat, fields: tuple[pa.Field, ...]) -> None:
    for field in fields:
        if not _is_scalar(field.type):
            raise _unsupported(form, field)


def _check_nested(form: EventFormat, fields: tuple[pa.Field, ...]) -> None:
    for field in fields:
        if not _is_known(field.type):
            raise _unsupported(form, field)


def _unsupported(form: EventFormat, field: pa.Field) -> InvalidSpec:
    return InvalidSpec(
        f"the column {field.name} has the type {field.type}, which the format {form} has not",
        field="schema",
        remedy="Take string, and convert the column in your query.",
    )


def _is_known(kind: pa.DataType) -> bool:
    """Tell whether values of a type are decoded from JSON."""
    types = pa.types
    if types.is_struct(kind):
        return all(_is_known(field.type) for field in kind)
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_known(kind.value_type)
    if types.is_map(kind):
        return types.is_string(kind.key_type) and _is_known(kind.item_type)
    return _is_scalar(kind) or kind in {pa.binary(), pa.large_binary()}


def _is_scalar(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        check(kind)
        for check in (
            types.is_boolean,
            types.is_integer,
            types.is_float32,
            types.is_float64,
            types.is_decimal128,
            types.is_string,
            types.is_large_string,
            types.is_timestamp,
            types.is_date32,
        )
    )


_CHECKS: Final[dict[EventFormat, Callable[[EventFormat, tuple[pa.Field, ...]], None]]] = {
    EventFormat.JSON: _check_nested,
    EventFormat.CSV: _check_flat,
    EventFormat.TEXT: _check_one,
    EventFormat.BYTES: _check_one,
}
"""The check of each format's fields."""
