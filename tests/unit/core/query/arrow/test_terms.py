"""Constants, windows and casts of resolved plans."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.arrow.constants import folded
from sluice.core.query.arrow.kinds import is_widening
from sluice.core.query.arrow.terms import Term
from sluice.core.query.arrow.tumbling import Tumbling, _SparkWindow, tumbling

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = Term("AttributeReference", "timestamp", 6, "ts")


def literal(kind: str, text: str | None) -> Term:
    """Return a constant."""
    return Term("Literal", kind, text=text)


def cast(term: Term, kind: str) -> Term:
    """Return a cast as Spark resolves it."""
    return Term("Cast", kind, text="ANSI", parts=(term,))


@pytest.mark.parametrize(
    ("term", "kind", "text"),
    [
        (literal("int", "3"), "bigint", "3"),
        (literal("decimal(2,1)", "3.5"), "double", "3.5"),
        (literal("int", "3"), "decimal(10,2)", "3.00"),
        (literal("decimal(3,2)", "1.50"), "decimal(10,1)", "1.5"),
        (literal("void", None), "boolean", None),
        (cast(literal("int", "7"), "decimal(1,0)"), "decimal(10,2)", "7.00"),
        (literal("decimal(38,0)", "9" * 38), "double", "1e+38"),
    ],
)
def test_casts_of_constants_are_constants(term: Term, kind: str, text: str | None) -> None:
    """A cast that keeps the value of a constant is done once."""
    assert folded(cast(term, kind)) == literal(kind, text)


@pytest.mark.parametrize(
    ("term", "kind"),
    [
        (literal("int", "300"), "tinyint"),
        (literal("decimal(2,1)", "3.5"), "int"),
        (literal("decimal(3,2)", "1.25"), "decimal(10,1)"),
        (literal("int", "12"), "decimal(1,0)"),
        (literal("string", "3"), "int"),
        (literal("int", "1"), "timestamp"),
    ],
)
def test_casts_that_change_a_value_stay(term: Term, kind: str) -> None:
    """The engine refuses what is left of them."""
    assert folded(cast(term, kind)) == cast(term, kind)


@given(st.decimals(-(10**9), 10**9, places=3), st.integers(1, 38), st.integers(0, 38))
def test_widening_keeps_each_value(value: Decimal, precision: int, scale: int) -> None:
    """A cast that is taken for a widening has room for each value of the narrower type."""
    kind = f"decimal({precision},{min(scale, precision)})"
    text = str(value)
    if is_widening("decimal(13,3)", kind):
        folded_ = folded(cast(literal("decimal(13,3)", text), kind))
        assert Decimal(folded_.text or "") == value


def test_windows_are_known() -> None:
    """Time, length and offset are read from what Spark makes of a window."""
    made = _SparkWindow(TIME, literal("bigint", "10000000"), literal("bigint", "3000000")).term()
    assert tumbling(made) == Tumbling(time=6, length=10_000_000, offset=3_000_000)


def _changed(term: Term) -> Iterator[Term]:
    """Yield terms that differ from one in one place."""
    yield term._replace(name=f"{term.name}x")
    yield term._replace(kind=f"{term.kind}x")
    for at, part in enumerate(term.parts):
        for other in _changed(part):
            yield term._replace(parts=(*term.parts[:at], other, *term.parts[at + 1 :]))


def test_another_arithmetic_is_no_window() -> None:
    """Whatever differs is refused, as what another version of Spark may make of a window."""
    made = _SparkWindow(TIME, literal("bigint", "10000000"), literal("bigint", "0")).term()
    others = [*_changed(made)]
    assert len(others) > 100
    assert not any(map(tumbling, others))
    assert tumbling(TIME) is None


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**12), st.integers(0, 10**12))
def test_a_window_has_the_times_in_it(micros: int, length: int, offset: int) -> None:
    """A time is in the window whose beginning is computed, also before 1970."""
    windows = Tumbling(6, length, offset % length)
    (begin,) = windows.begins(pa.array([micros], pa.timestamp("us"))).to_pylist()
    assert begin <= micros < begin + length
    assert (begin - offset) % length == 0
