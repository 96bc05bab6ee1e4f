"""Parse events that are JSON objects, by msgspec.

Each event is parsed by itself, so no event can affect the rows of others. Fields that the schema
does not name are passed over.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypedDict

import pyarrow as pa

from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

try:
    import msgspec
except ImportError:
    raise InvalidSpec(
        "events in the format Json are parsed by msgspec, which is not installed",
        field="format",
        remedy="Install sluice[tables].",
    ) from None


class JsonParser:
    """Parses events into the values of columns.

    Args:
        fields: the columns. A field that an event lacks, or that is null there, is None.

    Raises:
        InvalidSpec: a column has a name that no parser takes.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        # Attributes have names of our own: the events' names need not be names in Python.
        self._names = [f"f{number}" for number in range(len(fields))]
        row = _row(self._names, fields)
        self._empty = row()
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(row).decode

    def parse(self, events: Sequence[bytes]) -> tuple[list[list[Any]], set[int]]:
        """Return the values of each column, and the numbers of the events that do not fit."""
        bad: set[int] = set()
        try:
            rows = list(map(self._decode, events))
        except (msgspec.MsgspecError, RecursionError, ValueError):
            rows = [self._one(event, number, bad) for number, event in enumerate(events)]
        return [list(map(attrgetter(name), rows)) for name in self._names], bad

    def _one(self, event: bytes, number: int, bad: set[int]) -> Any:
        try:
            return self._decode(event)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            bad.add(number)
            return self._empty


def _row(names: Sequence[str], fields: Sequence[pa.Field]) -> Any:
    """Return the class of parsed events, with these names for the fields."""
    try:
        return msgspec.defstruct(
            "Row",
            [
                (name, _python(field.type) | None, None)
                for name, field in zip(names, fields, strict=True)
            ],
            rename=dict(zip(names, (field.name for field in fields), strict=True)),
            gc=False,  # an event has no cycles, and most objects here live as long as a group
        )
    except ValueError as error:
        raise InvalidSpec(str(error), field="schema") from None


def _python(kind: pa.DataType) -> Any:
    """Return the type of Python that a column's value has. Arrow parses times and dates."""
    types = pa.types
    return str if types.is_timestamp(kind) or types.is_date(kind) else _nested(kind)


def _nested(kind: pa.DataType) -> Any:
    """Return the type of Python that a value within another one has."""
    types = pa.types
    if types.is_struct(kind):
        return TypedDict(  # type: ignore[operator]  # made from the schema
            "Nested", {field.name: _nested(field.type) | None for field in kind}, total=False
        )
    if types.is_list(kind) or types.is_large_list(kind):
        return list[_nested(kind.value_type) | None]  # type: ignore[misc]
    if types.is_map(kind):
        return dict[str, _nested(kind.item_type) | None]  # type: ignore[misc]
    return next(made for is_kind, made in _SCALARS if is_kind(kind))


_SCALARS: Final[Sequence[tuple[Callable[[pa.DataType], bool], type]]] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_date, date),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
)
"""The types of Python that msgspec parses for those of Arrow."""
