"""The types of Spark that Arrow has, and casts between them that lose nothing."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from sluice.core.query.arrow.terms import refuse

WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
FLOATS: Final = ("float", "double")
TIMES: Final = ("timestamp", "timestamp_ntz")

_SCALARS: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")

_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The digits of whole numbers."""


def digits(kind: str) -> tuple[int, int] | None:
    """Return precision and scale of a type of decimals; None for another type."""
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]), int(found[2]))


def known(kind: str) -> pa.DataType | None:
    """Return Arrow's type for one of Spark's; None if Arrow's engine has none."""
    decimal = digits(kind)
    return _SCALARS.get(kind) if decimal is None else pa.decimal128(*decimal)


def arrow_type(kind: str) -> pa.DataType:
    """Return Arrow's type for one of Spark's.

    Raises:
        InvalidQuery: Arrow's engine has none.
    """
    found = known(kind)
    return refuse(f"values of the type {kind.upper()}") if found is None else found


def constant(kind: str, text: str | None) -> pa.Scalar:
    """Return a constant.

    Args:
        kind: its type.
        text: its value, as Spark's own object writes it: times as numbers.

    Raises:
        InvalidQuery: the type is unknown.
    """
    wanted = arrow_type(kind)
    return pa.scalar(None if text is None else _value(kind, text), wanted)


def _value(kind: str, text: str) -> Any:
    if kind == "boolean":
        return text == "true"
    if kind in FLOATS:
        return float(text)
    if kind == "string":
        return text
    return int(text) if digits(kind) is None else Decimal(text)


def is_widening(before: str, after: str) -> bool:
    """Tell whether a cast changes no value and cannot fail."""
    if before == after:
        return True
    if before in WHOLE and after in WHOLE:
        return WHOLE.index(before) < WHOLE.index(after)
    if after == "double":  # of two whole numbers of 64 bits, both engines round to the nearest
        return before in (*WHOLE, "float")
    decimal = digits(after)
    if decimal is None:
        return False
    precision, scale = digits(before) or (_DIGITS.get(before, 99), 0)
    return scale <= decimal[1] and precision - scale <= decimal[0] - decimal[1]
