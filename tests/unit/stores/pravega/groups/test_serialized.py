"""Numbers and objects in the form that Pravega's clients serialize."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import ProtocolError
from sluice.stores.pravega.groups import serialized as to
from sluice.stores.pravega.groups.serialized import Input


@given(st.integers(0, (1 << 30) - 1))
def test_a_count_is_read_as_it_was_written(number: int) -> None:
    """A count takes one, two or four bytes."""
    data = Input(to.count(number))
    assert (data.count(), data.left) == (number, 0)


@pytest.mark.parametrize(
    ("number", "plain", "signed"),
    [
        (0, "00", "00"),
        (31, "1f", "1f"),
        (32, "20", "2020"),
        (64, "4040", "2040"),
        (8192, "6000", "40002000"),
        (16_384, "80004000", "40004000"),
        (1 << 29, "a0000000", "6000000020000000"),
        (1 << 30, "c000000040000000", "6000000040000000"),
        ((1 << 61) - 1, "dfffffffffffffff", "7fffffffffffffff"),
    ],
)
def test_compact_numbers_have_their_length_in_their_first_bits(
    number: int, plain: str, signed: str
) -> None:
    """Signed numbers have one bit less for their value."""
    assert to.compact(number).hex() == plain
    assert to.compact(number, sign=True).hex() == signed


def test_a_number_that_has_no_compact_form_is_refused() -> None:
    """A number of more than 62 bits raises ValueError."""
    with pytest.raises(ValueError, match="too large"):
        to.compact(1 << 62)


@given(st.dictionaries(st.text(max_size=20), st.integers(-(1 << 63), (1 << 63) - 1)))
def test_an_object_is_read_as_it_was_written(values: dict[str, int]) -> None:
    """An object's revisions follow one another, each with its length."""
    data = Input(to.versioned([to.mapping(values, to.text, to.int64), to.double(0.5)]))
    data.format()
    first, second = data.revisions(2)
    assert first.mapping(first.text, first.int64) == values
    assert (second.double(), data.left) == (0.5, 0)


def test_text_that_is_no_utf_8_is_shown() -> None:
    """Java writes rare characters in a form of its own, which is shown as escapes."""
    assert Input(b"\0\3a\xc0\x80").text() == "a\\xc0\\x80"


@pytest.mark.parametrize("data", [b"", b"\0\5a", b"\1\0\0"])
def test_less_than_is_announced_is_refused(data: bytes) -> None:
    """Missing bytes raise ProtocolError, which names a reader group."""
    with pytest.raises(ProtocolError, match="reader group"):
        Input(data).text()
