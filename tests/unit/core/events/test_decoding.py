"""Events from bytes, and bytes from events."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events.decoding import MOST_EVENT, decoded, encoded
from sluice.core.events.framing import FRAME
from sluice.errors import EventsDamaged

all_events = st.lists(st.binary(max_size=40), max_size=12)
all_cuts = st.lists(st.integers(0, 1000), max_size=30)


def blocks(data: bytes, cuts: list[int]) -> list[memoryview]:
    """Cut the data into blocks."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [memoryview(data)[start:end] for start, end in pairwise(edges)]


@given(all_events, all_cuts, st.integers(0, 1 << 40))
def test_events_come_out_as_they_went_in(events: list[bytes], cuts: list[int], start: int) -> None:
    """Each event has its bytes and its offset, whatever the blocks."""
    frames = [encoded(event) for event in events]
    found = list(decoded(blocks(b"".join(frames), cuts), start))
    assert [event for _, event in found] == events
    assert [at - start for at, _ in found] == [
        sum(map(len, frames[:place])) for place in range(len(frames))
    ]


@given(all_events, st.binary(min_size=1, max_size=40), st.data())
def test_bytes_that_end_within_an_event_are_an_error(
    events: list[bytes], last: bytes, data: st.DataObject
) -> None:
    """All events before the incomplete one are yielded, and the error names its offset."""
    before = b"".join(map(encoded, events))
    rest = encoded(last)[: data.draw(st.integers(1, len(last) + 7))]
    found = decoded([memoryview(before + rest)], 5)
    assert [next(found)[1] for _ in events] == events
    with pytest.raises(EventsDamaged, match=f"begins at {5 + len(before)}$"):
        next(found)


@pytest.mark.parametrize("length", [-1, MOST_EVENT + 1, 1 << 40, 1 << 62])
def test_what_is_no_event_is_an_error_at_once(length: int) -> None:
    """A negative or excessive length raises the error before the event's bytes are collected."""
    with pytest.raises(EventsDamaged, match="begins at 7"):
        next(decoded([memoryview(FRAME.pack(length))], 7))
