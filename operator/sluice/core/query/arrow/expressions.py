"""Compute expressions over columns of Arrow, as Spark computes them in its ANSI mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.kinds import FLOATS, WHOLE, arrow_type, constant, is_widening
from sluice.core.query.arrow.terms import Term, refuse

Value: TypeAlias = Any
"""The values of all rows (`pa.Array`, `pa.ChunkedArray`), or the one that all have (`pa.Scalar`).
PyArrow has no types."""

Expression = Callable[[Mapping[int, Value]], Value]
"""Computes values from columns, which are known by the ids that Spark gave them."""

_DEEPEST: Final = 100
"""Levels of an expression. Each is computed within the one above."""

_EXACT: Final = frozenset({"Add", "Subtract", "Multiply"})
"""What fails if the result has no room."""

EDGE: Final = "WindowEdge"
"""A term of ours, in the place of a field of a window: its text says by how many microseconds the
edge is later than the window's beginning."""

_COMMON: Final = -1_000_000
"""The id of the first common expression of a text. Others follow below it."""

_LAZY: Final = frozenset({"And", "Or", "If", "CaseWhen", "Coalesce"})
"""What computes its parts for some rows only."""

_SAME: Final = frozenset({"Alias", "KnownNotNull", "KnownNullable"})
"""What has the value of its only part."""


def may_fail(term: Term) -> bool:
    """Tell whether a computation may fail. Spark computes it for those rows only that it has to."""
    return any(
        one.name == "Divide" or (one.name in _EXACT and one.kind not in FLOATS)
        for one in term.walk()
    )


def expression(term: Term, columns: Mapping[int, str]) -> Expression:
    """Return what computes an expression.

    Args:
        term: the expression.
        columns: the types of the columns.

    Raises:
        InvalidQuery: Arrow's engine does not compute a part of it.
    """
    if term.depth > _DEEPEST:
        refuse(f"an expression of more than {_DEEPEST} levels")
    for one in term.walk():
        if one.name in _LAZY and may_fail(one):
            refuse(f"a computation that may fail within {_WORDS.get(one.name, one.name)}")
    return _compiled(term, columns)


def _compiled(term: Term, columns: Mapping[int, str]) -> Expression:
    arrow_type(term.kind)
    special = _SPECIAL.get(term.name)
    if special is not None:
        return special(term, columns)
    make = _MAKERS.get(term.name)
    if make is None:
        refuse(f"the function {term.name}")
    kinds = [part.kind for part in term.parts]
    return make(_Call(term, kinds, [_compiled(part, columns) for part in term.parts]))


def _column(term: Term, columns: Mapping[int, str]) -> Expression:
    if columns.get(term.number) != term.kind:
        refuse(f"the column {term.text} here")
    return lambda rows: rows[term.number]


def _common(term: Term, columns: Mapping[int, str]) -> Expression:
    return _column(term._replace(number=_COMMON - term.number), columns)


def _constant(term: Term, _: Mapping[int, str]) -> Expression:
    value = constant(term.kind, term.text)
    return lambda _: value


def _edge(term: Term, _: Mapping[int, str]) -> Expression:
    wanted, later = arrow_type(term.kind), int(term.text or 0)
    return lambda rows: pc.cast(pc.add(rows[term.number], later), wanted)


class _Call(NamedTuple):
    """An expression with its parts."""

    term: Term
    kinds: list[str]
    parts: list[Expression]


def _cast(term: Term, columns: Mapping[int, str]) -> Expression:
    (child,) = term.parts
    wanted = arrow_type(term.kind)
    if not is_widening(child.kind, term.kind):
        refuse(f"a cast of {child.kind.upper()} to {term.kind.upper()}")
    inner = _compiled(child, columns)
    return lambda rows: pc.cast(inner(rows), wanted, safe=False)


def _with(term: Term, columns: Mapping[int, str]) -> Expression:
    """Compute common expressions once, and then what refers to them, as columns."""
    whole, *common = term.parts
    made = {_COMMON - one.number: _compiled(one.parts[0], columns) for one in common}
    kinds = {_COMMON - one.number: one.kind for one in common}
    inner = _compiled(whole, {**columns, **kinds})
    return lambda rows: inner({**rows, **{number: one(rows) for number, one in made.items()}})


def _part(call: _Call) -> Expression:
    return call.parts[0]


def _arithmetic(
    whole: Callable[[Value, Value], Value], real: Callable[[Value, Value], Value]
) -> Callable[[_Call], Expression]:
    def make(call: _Call) -> Expression:
        kind = call.term.kind
        if kind not in (*WHOLE, "double") or set(call.kinds) != {kind}:
            refuse(f"arithmetic of {', '.join(one.upper() for one in call.kinds)}")
        if call.term.text != "ANSI":
            refuse(f"{call.term.name} that does not fail")
        compute = real if kind == "double" else whole
        left, right = call.parts
        return lambda rows: compute(left(rows), right(rows))

    return make


def _divide(call: _Call) -> Expression:
    if call.term.kind != "double" or call.term.text != "ANSI":
        refuse(f"a division of {call.kinds[0].upper()}")
    left, right = call.parts
    return lambda rows: pc.divide_checked(left(rows), right(rows))


def _comparison(
    compare: Callable[[Value, Value], Value], *, swapped: bool = False, inverted: bool = False
) -> Callable[[_Call], Expression]:
    """Return what makes a comparison: of floating-point numbers, NaN is equal to itself, and last.

    Args:
        compare: compares numbers that are none of these: `equal` or `less`.
        swapped: whether the parts change places.
        inverted: whether the result is turned round.
    """

    def make(call: _Call) -> Expression:
        _check_compared(call)
        left, right = call.parts[::-1] if swapped else call.parts
        floats = call.kinds[0] in FLOATS

        def compute(rows: Mapping[int, Value]) -> Value:
            found = _compared(compare, left(rows), right(rows), floats=floats)
            return pc.invert(found) if inverted else found

        return compute

    return make


def _check_compared(call: _Call) -> None:
    kind = call.kinds[0]
    arrow_type(kind)
    if any(one != kind for one in call.kinds):
        refuse(f"a comparison of {', '.join(one.upper() for one in call.kinds)}")


def _compared(
    compare: Callable[[Value, Value], Value], one: Value, other: Value, *, floats: bool
) -> Value:
    found = compare(one, other)
    if not floats:
        return found
    ones, others = pc.is_nan(one), pc.is_nan(other)
    more = pc.and_(ones, others) if compare is pc.equal else pc.and_not(others, ones)
    return pc.or_(found, more)


def _null_safe(call: _Call) -> Expression:
    _check_compared(call)
    left, right = call.parts
    floats = call.kinds[0] in FLOATS

    def compute(rows: Mapping[int, Value]) -> Value:
        one, other = left(rows), right(rows)
        equal = _compared(pc.equal, one, other, floats=floats)
        nulls, others = pc.is_null(one), pc.is_null(other)
        return pc.if_else(pc.or_(nulls, others), pc.and_(nulls, others), equal)

    return compute


def _in(call: _Call) -> Expression:
    kind = call.kinds[0]
    constants = call.term.parts[1:]
    if kind in FLOATS or any(
        one.name != "Literal" or one.text is None or one.kind != kind for one in constants
    ):
        refuse("IN with values that are no constants of its type")
    values = pa.array([constant(one.kind, one.text).as_py() for one in constants], arrow_type(kind))
    (value, *_) = call.parts

    def compute(rows: Mapping[int, Value]) -> Value:
        looked = value(rows)
        found = pc.is_in(looked, value_set=values)
        return pc.if_else(pc.is_null(looked), pa.scalar(None, pa.bool_()), found)

    return compute


def _folded(join: Callable[[Value, Value], Value]) -> Callable[[_Call], Expression]:
    return lambda call: lambda rows: reduce(join, (part(rows) for part in call.parts))


def _not(call: _Call) -> Expression:
    return lambda rows: pc.invert(call.parts[0](rows))


def _is_null(call: _Call) -> Expression:
    return lambda rows: pc.is_null(call.parts[0](rows))


def _is_not_null(call: _Call) -> Expression:
    return lambda rows: pc.is_valid(call.parts[0](rows))


def _case(call: _Call) -> Expression:
    """Compute the first branch whose condition is true, by pairs of conditions and values."""
    kind = call.term.kind
    pairs = len(call.parts) // 2
    conditions = [call.parts[2 * at] for at in range(pairs)]
    values = [call.parts[2 * at + 1] for at in range(pairs)]
    kinds = [call.kinds[2 * at + 1] for at in range(pairs)]
    rest: Expression | None = None
    if len(call.parts) % 2:
        rest = call.parts[-1]
        kinds.append(call.kinds[-1])
    if any(one != kind for one in kinds):
        refuse("CASE with values of several types")
    nothing = pa.scalar(None, arrow_type(kind))

    def compute(rows: Mapping[int, Value]) -> Value:
        found = nothing if rest is None else rest(rows)
        for condition, value in reversed(list(zip(conditions, values, strict=True))):
            chosen = pc.fill_null(condition(rows), fill_value=False)
            found = pc.if_else(chosen, value(rows), found)
        return found

    return compute


def _coalesce(call: _Call) -> Expression:
    if any(one != call.term.kind for one in call.kinds):
        refuse("COALESCE with values of several types")
    return lambda rows: pc.coalesce(*(part(rows) for part in call.parts))


_SPECIAL: Final[Mapping[str, Callable[[Term, Mapping[int, str]], Expression]]] = {
    "AttributeReference": _column,
    "CommonExpressionRef": _common,
    "Literal": _constant,
    "Cast": _cast,
    "With": _with,
    EDGE: _edge,
}
"""What makes expressions that are more than their parts."""

_WORDS: Final = {"And": "AND", "Or": "OR", "If": "IF", "CaseWhen": "CASE", "Coalesce": "COALESCE"}

_MAKERS: Final[Mapping[str, Callable[[_Call], Expression]]] = {
    **dict.fromkeys(_SAME, _part),
    "Add": _arithmetic(pc.add_checked, pc.add),
    "Subtract": _arithmetic(pc.subtract_checked, pc.subtract),
    "Multiply": _arithmetic(pc.multiply_checked, pc.multiply),
    "Divide": _divide,
    "EqualTo": _comparison(pc.equal),
    "EqualNullSafe": _null_safe,
    "LessThan": _comparison(pc.less),
    "GreaterThan": _comparison(pc.less, swapped=True),
    "GreaterThanOrEqual": _comparison(pc.less, inverted=True),
    "LessThanOrEqual": _comparison(pc.less, swapped=True, inverted=True),
    "In": _in,
    "And": _folded(pc.and_kleene),
    "Or": _folded(pc.or_kleene),
    "Not": _not,
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "If": _case,
    "CaseWhen": _case,
    "Coalesce": _coalesce,
}
"""What makes expressions, by Spark's class."""
