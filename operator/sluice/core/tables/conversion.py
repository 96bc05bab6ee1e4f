"""Make columns of Arrow from values of Python, and find the rows whose values do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

_WRONG: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""The errors of values that do not fit a type. UnicodeEncodeError is a ValueError."""

_NO_ZONE: Final = r"[T ]\d\d:\d\d(:\d\d([.]\d+)?)?$"
"""The end of a time without a zone."""

_TOO_FINE: Final = r"([.]\d{6})\d+"
"""A fraction of a second with more digits than microseconds have."""


Raw = Callable[[pa.DataType], pa.DataType]
"""Returns the type that values have before Arrow converts them to a column's type."""


def converted(
    values: Sequence[list[Any]], kinds: Sequence[pa.DataType], raw: Raw, bad: set[int]
) -> list[pa.Array]:
    """Convert columns. A row with a value that does not fit becomes null in all columns.

    Args:
        values: the values of each column. Rows that become null are set to None there.
        kinds: the types of the columns.
        raw: returns the type of a column's values, `raw_json` or `raw_csv`.
        bad: numbers of rows that are null; rows whose values do not fit are added.
    """
    known = set(bad)
    arrays = [
        _column(column, kind, raw(kind), bad) for column, kind in zip(values, kinds, strict=True)
    ]
    if bad == known:
        return arrays
    for column in values:
        for row in bad:
            column[row] = None
    return [_convert(column, kind, raw(kind)) for column, kind in zip(values, kinds, strict=True)]


def _column(
    values: list[Any], kind: pa.DataType, raw: pa.DataType, bad: set[int]
) -> pa.Array | None:
    """Convert a column. Return None, and add the rows that do not fit, if there are any."""
    try:
        return _convert(values, kind, raw)
    except _WRONG:
        _find(values, kind, raw, 0, bad)
        return None


def _find(
    values: list[Any], kind: pa.DataType, raw: pa.DataType, first: int, bad: set[int]
) -> None:
    """Add the rows whose values do not fit, by halves. Some value is known not to fit."""
    if len(values) == 1:
        bad.add(first)
        return
    middle = len(values) // 2
    for half, begin in ((values[:middle], first), (values[middle:], first + middle)):
        try:
            _convert(half, kind, raw)
        except _WRONG:
            _find(half, kind, raw, begin, bad)


def _convert(values: list[Any], kind: pa.DataType, raw: pa.DataType) -> pa.Array:
    array = pa.array(values, raw)
    if raw == kind:
        return array
    if not pa.types.is_timestamp(kind):
        return array.cast(kind)
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        return _usual_times(array, kind).cast(kind)


def _usual_times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cut fractions to microseconds. A time without a zone is one of UTC, if the type has a zone.

    Java's `Instant` writes nanoseconds.
    """
    texts = pc.replace_substring_regex(texts, _TOO_FINE, r"\1")
    if kind.tz is None:
        return texts
    with_zone = pc.binary_join_element_wise(texts, "Z", "")
    return pc.if_else(pc.match_substring_regex(texts, _NO_ZONE), with_zone, texts)


def raw_csv(_: pa.DataType) -> pa.DataType:
    """Return the type of all values in CSV."""
    return pa.string()


def raw_json(kind: pa.DataType) -> pa.DataType:
    """Return the type of values in JSON: times and dates are texts, which Arrow reads faster."""
    is_text = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return pa.string() if is_text else kind
