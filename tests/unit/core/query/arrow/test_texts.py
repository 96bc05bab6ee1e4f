"""Texts of values, as Spark's JSON has them. Integration tests compare them with Spark's own."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.core.query.arrow.texts import double, quoted


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(-0.0)
@example(9.999e-4)
@example(9999999.0)
@example(1e7)
@example(123456789012345680.0)
def test_doubles_are_read_back(value: float) -> None:
    """A number has the form of Java's, and reads as the same number."""
    text = double(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    scientific = re.fullmatch(r"-?[1-9]\.(\d*[1-9]|0)E-?\d+", text)
    plain = re.fullmatch(r"-?\d+\.\d+", text)
    assert scientific if value and not 1e-3 <= abs(value) < 1e7 else plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100.0, "100.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (-1e-10, "-1.0E-10"),
        (1e22, "1.0E22"),
        (5e-324, "4.9E-324"),
        (-1e23, "-1.0E23"),
        (float("nan"), '"NaN"'),
        (float("inf"), '"Infinity"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_are_written_as_by_java(value: float, text: str) -> None:
    """The form changes at a thousandth and at ten millions."""
    assert double(value) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example('a"b\\u001f\\\x1f\x00\n\t\x7f\u2028😀')
def test_texts_are_read_back(text: str) -> None:
    """A quoted text reads as the same text, and has capital letters in escapes."""
    written = quoted(text)
    assert json.loads(written) == text
    escapes = re.findall(r"(?<!\\)(?:\\\\)*\\u(....)", written)
    assert escapes == [one.upper() for one in escapes]
