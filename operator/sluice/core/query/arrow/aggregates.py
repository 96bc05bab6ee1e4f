"""Compute aggregates of events in two steps: within a batch, and over the batches of a window."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.expressions import Expression, Value, expression
from sluice.core.query.arrow.kinds import FLOATS, WHOLE, arrow_type, digits
from sluice.core.query.arrow.terms import Term, refuse
from sluice.core.query.arrow.windows import StatePart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SIGN: Final = pa.scalar((1 << 63) - 1, pa.int64())

_MOST_DIGITS: Final = 38
_MORE_DIGITS: Final = 10
"""By how many digits Spark's sums of decimals are longer than these."""


class Aggregate(NamedTuple):
    """An aggregate.

    Attributes:
        parts: the columns of its state.
        result: returns its values from these.
    """

    parts: tuple[StatePart, ...]
    result: Callable[[Sequence[Value]], Value]


def aggregate(term: Term, columns: Mapping[int, str]) -> Aggregate:
    """Return what computes an aggregate.

    Args:
        term: the aggregate: `AggregateExpression`.
        columns: the types of the columns.

    Raises:
        InvalidQuery: Arrow's engine does not compute it.
    """
    function = term.parts[0]
    if term.text:
        refuse(f"an aggregate with {term.text}")
    make = _MAKERS.get(function.name)
    if make is None or len(function.parts) != 1:
        refuse(f"the aggregate {function.name}")
    (child,) = function.parts
    return make(function, child, expression(child, columns))


def _first(values: Sequence[Value]) -> Value:
    return values[0]


def _count(_function: Term, _child: Term, value: Expression) -> Aggregate:
    return Aggregate((_counting(value),), _first)


def _counting(value: Expression) -> StatePart:
    """Return the number of values that are not null, as a sum of zeros and ones."""
    return StatePart(lambda rows: pc.cast(pc.is_valid(value(rows)), pa.int64()), "sum", pa.int64())


def _sum(function: Term, child: Term, value: Expression) -> Aggregate:
    wanted = arrow_type(function.kind)
    if function.text != "ANSI":
        refuse("a sum that does not fail")
    decimal = digits(child.kind)
    if decimal is not None and decimal[0] + _MORE_DIGITS > _MOST_DIGITS:
        refuse(f"a sum of {child.kind.upper()}: take one of at most 28 digits")
    if child.kind == "float":  # Spark adds doubles
        return Aggregate((StatePart(_as_double(value), "sum", wanted),), _first)
    if decimal is None and child.kind not in (*WHOLE, "double"):
        refuse(f"a sum of {child.kind.upper()}")
    return Aggregate((StatePart(value, "sum", wanted),), _first)


def _as_double(value: Expression) -> Expression:
    return lambda rows: pc.cast(value(rows), pa.float64(), safe=False)


def _average(function: Term, child: Term, value: Expression) -> Aggregate:
    if child.kind not in (*WHOLE, *FLOATS) or function.text != "ANSI":
        refuse(f"the average of {child.kind.upper()}")
    parts = (
        StatePart(_as_double(value), "sum", pa.float64()),
        _counting(value),
    )

    def result(values: Sequence[Value]) -> Value:
        total, count = values
        return pc.divide(total, pc.cast(count, pa.float64()))  # a sum of nothing is null

    return Aggregate(parts, result)


def _extreme(fold: str, _: Term, child: Term, value: Expression) -> Aggregate:
    kind = arrow_type(child.kind)
    if child.kind == "float":
        refuse("MIN and MAX of FLOAT: take DOUBLE")
    if child.kind == "double":
        part = StatePart(lambda rows: in_line(value(rows)), fold, pa.int64())
        return Aggregate((part,), lambda values: out_of_line(values[0]))
    return Aggregate((StatePart(value, fold, kind),), _first)


def in_line(values: Value) -> Value:
    """Return whole numbers in the order in which Spark has doubles: NaN comes last.

    Arrow's own extremes leave NaN out.
    """
    one = pc.if_else(pc.is_nan(values), pa.scalar(float("nan")), values)  # there are many of them
    bits = _viewed(one, pa.int64())
    return pc.if_else(pc.less(bits, 0), pc.bit_wise_xor(bits, _SIGN), bits)


def out_of_line(values: Value) -> Value:
    """Return the doubles of which `in_line` has made these numbers."""
    bits = pc.if_else(pc.less(values, 0), pc.bit_wise_xor(values, _SIGN), values)
    return _viewed(bits, pa.float64())


def _viewed(values: Value, kind: pa.DataType) -> Value:
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([one.view(kind) for one in values.chunks], kind)
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()], values.type).view(kind)[0]
    return values.view(kind)


_MAKERS: Final[Mapping[str, Callable[[Term, Term, Expression], Aggregate]]] = {
    "Count": _count,
    "Sum": _sum,
    "Average": _average,
    "Min": partial(_extreme, "min"),
    "Max": partial(_extreme, "max"),
}
"""What makes aggregates, by Spark's class."""
