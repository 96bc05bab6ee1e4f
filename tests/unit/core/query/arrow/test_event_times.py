"""How far event time has come, when segments are read at different speeds."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from sluice.core.query.arrow.event_times import EventTimes
from sluice.core.tables.positions import SegmentPosition, StreamPosition, position
from sluice.core.values.model import KeyRange, SegmentInfo, StreamName

STREAM = StreamName(scope="s", stream="t")
HALVES = (KeyRange(low=0.0, high=0.5), KeyRange(low=0.5, high=1.0))


def place(*segments: tuple[int, KeyRange, int]) -> StreamPosition:
    """Return the position in these segments: id, key range and offset of each."""
    found = [SegmentPosition(id=number, keys=keys, offset=at) for number, keys, at in segments]
    return position(STREAM, found)


def sizes(*lengths: tuple[int, int, bool]) -> dict[int, SegmentInfo | None]:
    """Return segments as the store has them: id, length, and whether each is sealed."""
    return {
        number: SegmentInfo(start=0, length=length, sealed=sealed)
        for number, length, sealed in lengths
    }


def seen(times: EventTimes, segment: int, *seconds: int) -> None:
    """Have events of a segment with these times be read."""
    times.see(segment, pa.array([one * 1_000_000 for one in seconds], pa.int64()))


BOTH = place((0, HALVES[0], 10), (1, HALVES[1], 10))


def test_what_is_read_to_its_end_holds_nothing_back() -> None:
    """At the tail, time is that of the newest event in any segment."""
    times = EventTimes()
    seen(times, 0, 5, 9)
    seen(times, 1, 7)
    assert times.reached(BOTH, sizes((0, 10, False), (1, 10, False)), ended=False) == 9000


def test_a_segment_that_is_behind_holds_time_back() -> None:
    """Its next events may be as old as the last one that was read."""
    times = EventTimes()
    seen(times, 0, 9)
    seen(times, 1, 7)
    assert times.reached(BOTH, sizes((0, 10, False), (1, 99, False)), ended=False) == 7000
    assert times.reached(BOTH, sizes((0, 99, False), (1, 10, False)), ended=False) == 9000


def test_a_segment_of_which_nothing_is_known_stops_time() -> None:
    """No event of it was read, and it has some."""
    times = EventTimes()
    seen(times, 0, 9)
    assert times.reached(BOTH, sizes((0, 10, False), (1, 99, False)), ended=False) is None
    assert times.reached(BOTH, {0: None, 1: None}, ended=False) is None


def test_segments_are_as_far_as_those_that_they_replace() -> None:
    """The segments of a scale event begin at the oldest time of those before them."""
    times = EventTimes()
    seen(times, 0, 9)
    seen(times, 1, 7)
    merged = place((2, KeyRange(low=0.0, high=1.0), 0))
    times.enter(BOTH, merged)
    assert times.reached(merged, sizes((2, 50, False)), ended=False) == 7000
    seen(times, 2, 12)
    assert times.reached(merged, sizes((2, 50, False)), ended=False) == 12000


def test_a_segment_that_waits_for_its_siblings_holds_time_back() -> None:
    """What has replaced it is read once they are read, too. A sealed stream has nothing more."""
    times = EventTimes()
    seen(times, 0, 5)
    seen(times, 1, 9)
    assert times.reached(BOTH, sizes((0, 10, True), (1, 10, False)), ended=False) == 5000
    assert times.reached(BOTH, sizes((0, 10, True), (1, 10, True)), ended=True) == 9000


def test_events_without_a_time_say_nothing() -> None:
    """Nulls are no times."""
    times = EventTimes()
    times.see(0, pa.array([None, None], pa.int64()))
    assert times.newest is None
    assert times.reached(BOTH, sizes((0, 10, False), (1, 10, False)), ended=False) is None


def test_events_without_a_time_hold_nothing_back() -> None:
    """A segment that was read, and has no times, is no reason to wait."""
    times = EventTimes()
    seen(times, 0, 9)
    times.see(1, pa.array([None], pa.int64()))
    assert times.reached(BOTH, sizes((0, 10, False), (1, 99, False)), ended=False) == 9000
    times.enter(BOTH, BOTH)
    assert times.reached(BOTH, sizes((0, 99, False), (1, 99, False)), ended=False) == 9000


def test_times_are_written_and_read() -> None:
    """Another process goes on with what is known."""
    times = EventTimes()
    seen(times, 0, 9)
    times.see(1, pa.array([None], pa.int64()))
    again = EventTimes.from_json(json.loads(json.dumps(times.to_json())))
    assert again.to_json() == times.to_json()
    assert again.newest == 9000


@pytest.mark.parametrize(
    "value",
    [None, {}, {"all": "1", "segments": {}}, {"all": 1 << 54, "segments": {}}]
    + [{"all": None, "segments": one} for one in ({"x": 1}, {"0": True}, {"0": 1.5}, [0])],
)
def test_times_that_are_none_are_refused(value: object) -> None:
    """A checkpoint may be damaged."""
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        EventTimes.from_json(value)
