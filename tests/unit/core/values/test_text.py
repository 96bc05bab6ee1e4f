import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.values import text

SCALE = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (9949, "9.9 kB"),
        (9951, "10 kB"),
        (10_000, "10 kB"),
        (270_600, "271 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (1_500_000_000, "1.5 GB"),
        (10**18, "1000 PB"),
        (0.4, "0 B"),
    ],
)
def test_sizes_are_short(count: float, expected: str) -> None:
    """A size has up to three digits and a decimal unit."""
    assert text.size(count) == expected


@given(st.integers(0, 10**17))
def test_sizes_are_right(count: int) -> None:
    """The written number is right to its last digit."""
    found = re.fullmatch(r"([0-9]+(\.[0-9])?) (B|kB|MB|GB|TB|PB)", text.size(count))
    assert found is not None
    value = float(found[1]) * SCALE[found[3]]
    assert abs(value - count) <= 0.051 * max(count, 1)
    assert 1 <= len(found[1].replace(".", "")) <= 3


@given(st.lists(st.integers(0, 10**16), min_size=2, max_size=2).map(sorted))
def test_a_longer_size_never_reads_as_a_shorter_one(counts: list[int]) -> None:
    """The written numbers grow with the sizes."""
    values = []
    for count in counts:
        number, unit = text.size(count).split()
        values.append(float(number) * SCALE[unit])
    assert values == sorted(values)


def test_rates_are_sizes_in_a_second() -> None:
    """A standstill is written as a rate of 0 B/s."""
    assert text.rate(187_000_000) == "187 MB/s"
    assert text.rate(0.0) == "0 B/s"


@given(st.text(), st.text())
def test_short_hashes_tell_texts_apart(one: str, other: str) -> None:
    """A hash has ten hexadecimal digits, the same for the same text."""
    assert re.fullmatch(r"[0-9a-f]{10}", text.short_hash(one))
    assert (text.short_hash(one) == text.short_hash(other)) == (one == other)


def test_an_instant_is_a_time_or_a_number() -> None:
    """A damaged record may have any number in place of a time. It is shown, and raises no error."""
    assert text.instant(1_777_896_000_000) == "2026-05-04T12:00:00.000Z"
    assert text.instant(-1) == "1969-12-31T23:59:59.999Z"
    for none in (10**17, -(10**17), 10**400):
        assert text.instant(none) == str(none)
