"""Limits end between two events, however blocks divide them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.tables.frames import admitted
from sluice.errors import EventsDamaged
from support.engine.tables import group_of


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.lists(st.integers(0, 300), max_size=8),
    st.none() | st.integers(1, 200),
    st.none() | st.integers(1, 6),
    st.integers(0, 30),
)
def test_as_many_whole_events_are_admitted_as_fit(
    sizes: list[int],
    cuts: list[int],
    most_bytes: int | None,
    most_events: int | None,
    missing: int,
) -> None:
    """The first event is admitted even beyond the limit, if its end is there."""
    start = 1000
    group = group_of([b"x" * size for size in sizes], start)
    data = group.data[: max(0, len(group.data) - missing)]
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    blocks = [(start + a, memoryview(data)[a:b]) for a, b in pairwise(edges)]
    reach = admitted(
        blocks, start, end=start + len(data), most_bytes=most_bytes, most_events=most_events
    )
    expected = [
        (end, number)
        for number, end in enumerate(group.edges)
        if end <= len(data)
        and (number <= 1 or most_bytes is None or end <= most_bytes)
        and (most_events is None or number <= most_events)
    ]
    assert (reach.end - start, reach.events) == max(expected)


def test_bytes_that_are_no_events_are_refused() -> None:
    """A stream of plain bytes cannot be read as a table."""
    with pytest.raises(EventsDamaged, match="at offset 5"):
        admitted([(5, memoryview(b"\xff" * 20))], 5, end=25, most_events=1)
