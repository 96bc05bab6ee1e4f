"""Open windows: the same rows however events are divided into batches."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.query.arrow.windows import WINDOW, OpenWindows, StatePart, WindowFolding

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTH = 10
"""Microseconds of a window."""

BEGIN, KEY, NUMBER = range(3)
Event = tuple[int | None, str | None, int | None]
"""The number of its window, its key and its value."""

FOLDING = WindowFolding(
    begins=lambda columns: columns[BEGIN],
    length=LENGTH,
    keys=((lambda columns: columns[KEY], pa.string()),),
    parts=(
        StatePart(lambda _: pa.scalar(1), "sum", pa.int64()),
        StatePart(lambda columns: columns[NUMBER], "sum", pa.int64()),
        StatePart(lambda columns: columns[NUMBER], "max", pa.int64()),
    ),
)

EVENTS = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 6),
        st.none() | st.sampled_from("abc"),
        st.none() | st.integers(-5, 5),
    ),
    max_size=60,
)


def add(windows: OpenWindows, events: Sequence[Event], watermark: int) -> None:
    """Add events as one batch."""
    begins, keys, numbers = zip(*events, strict=True)
    begins = [None if one is None else one * LENGTH for one in begins]
    columns = {
        BEGIN: pa.array(begins, pa.int64()),
        KEY: pa.array(keys, pa.string()),
        NUMBER: pa.array(numbers, pa.int64()),
    }
    windows.add(columns, len(events), watermark)


def expected(events: Sequence[Event]) -> Counter[tuple[object, ...]]:
    """Return the rows that events make."""
    found: dict[tuple[int, str | None], list[int | None]] = {}
    for begin, key, number in events:
        if begin is not None:
            found.setdefault((begin * LENGTH, key), []).append(number)
    return Counter(
        (*place, len(numbers), *_totals([one for one in numbers if one is not None]))
        for place, numbers in found.items()
    )


def _totals(numbers: list[int]) -> tuple[int | None, int | None]:
    return (sum(numbers), max(numbers)) if numbers else (None, None)


def rows(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Return the rows of a state."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@given(EVENTS, st.lists(st.integers(0, 60), max_size=5))
def test_batches_do_not_decide(events: list[Event], cuts: list[int]) -> None:
    """Events in whichever batches give the counts, sums and extremes of all of them."""
    windows = OpenWindows(FOLDING)
    edges = [0, *sorted(cuts), len(events)]
    for begin, end in itertools.pairwise(edges):
        if events[begin:end]:
            add(windows, events[begin:end], -1)
    assert rows(windows.close(1)) == expected(events)
    assert windows.rows == 0


@given(EVENTS, EVENTS, st.integers(0, 1))
def test_a_window_is_closed_once(events: list[Event], later: list[Event], watermark: int) -> None:
    """Windows that end up to the watermark are taken out. Later events of theirs are left out."""
    windows = OpenWindows(FOLDING)
    scaled = [(None if one is None else one * 100, *rest) for one, *rest in events]
    more = [(None if one is None else one * 100, *rest) for one, *rest in later]
    if scaled:
        add(windows, scaled, -1000)
    closed = windows.close(watermark)
    limit = watermark * 1000
    assert all(begin + LENGTH <= limit for begin in closed[WINDOW].to_pylist())
    kept = OpenWindows(FOLDING, windows.table())
    if more:
        add(kept, more, watermark)

    def is_open(event: Event) -> bool:
        return event[0] is None or (event[0] + 1) * LENGTH > limit

    assert rows(kept.close(1000)) == expected([*filter(is_open, [*scaled, *more])])
    assert rows(closed) == expected([one for one in scaled if not is_open(one)])


def test_a_window_is_due_at_its_end() -> None:
    """The watermark at the end of a window closes it, and the microsecond before does not."""
    windows = OpenWindows(FOLDING)
    assert not windows.is_due(1 << 40)
    add(windows, [(99, "a", 1)], 0)  # ends at one millisecond
    assert not windows.is_due(0)
    assert windows.is_due(1)


def test_sums_that_have_no_room_are_an_error() -> None:
    """Sums of 64 bits do not begin anew at the other end, within a batch and over batches."""
    most = (1 << 63) - 1
    windows = OpenWindows(FOLDING)
    add(windows, [(1, "a", most), (1, "a", -most), (1, "a", 7)], 0)
    add(windows, [(1, "a", most - 7)], 0)
    (row,) = windows.table().to_pylist()
    assert row["p1_sum"] == most
    add(windows, [(1, "a", 1)], 0)
    with pytest.raises(pa.ArrowInvalid):
        windows.close(1)


def test_many_batches_stay_small() -> None:
    """Partial results are merged before they take more room than the windows."""
    windows = OpenWindows(FOLDING)
    for _ in range(3000):
        add(windows, [(1, "a", 1), (1, "b", 2), (2, "a", 3)], 0)
    assert sum(map(len, windows._added)) <= 4096
    assert rows(windows.table()) == Counter(
        [(10, "a", 3000, 3000, 1), (10, "b", 3000, 6000, 2), (20, "a", 3000, 9000, 3)]
    )
