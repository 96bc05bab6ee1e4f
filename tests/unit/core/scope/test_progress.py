"""The reported speed of a copy."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.scope.progress import PAUSE, Meter, Pace

LOOK = 2.0
"""Seconds between two looks of the operator."""


def lumps(
    meter: Meter, *, size: int, every: float, until: float, total: int = 10**12
) -> list[tuple[float, Pace]]:
    """Read a copy whose bytes come in lumps, and return time and pace of each look.

    Args:
        meter: the meter.
        size: bytes of a lump.
        every: seconds between two lumps.
        until: the time of the last look, in seconds.
        total: bytes to copy.
    """
    looks, now = [], 0.0
    while now <= until:
        looks.append((now, meter.read(now, int(now / every) * size, total)))
        now += LOOK
    return looks


def test_one_reading_tells_no_speed() -> None:
    """The first reading is only a beginning: its bytes were not copied in a known time."""
    assert Meter().read(now=5, done=900, total=1000) == Pace(0, None)


def test_two_readings_tell_speed_and_time_left() -> None:
    """The bytes between two readings give the speed, and the bytes left give the time."""
    meter = Meter()
    meter.read(now=0, done=100, total=1100)
    assert meter.read(now=2, done=300, total=1100) == Pace(100, 8)


@given(st.floats(1, 1e9), st.lists(st.floats(0.01, 10), min_size=2, max_size=20))
def test_a_steady_speed_is_told_however_readings_come(rate: float, gaps: list[float]) -> None:
    """Bytes that grow steadily have that speed, at any intervals between readings."""
    meter, now = Meter(), 0.0
    meter.read(now, 0, 10**12)
    for gap in gaps:
        now += gap
        pace = meter.read(now, round(now * rate), 10**12)
    assert pace.rate == pytest.approx(rate, rel=0.05, abs=100)


@pytest.mark.parametrize("every", [3.0, 10.4, 41.0, 160.0])
def test_lumps_of_a_throttled_copy_make_a_steady_speed(every: float) -> None:
    """A copy at 200 kB/s whose slices end every so many seconds has that speed at each look.

    It has it from the fourth lump on. From one look to the next, the time left does not jump.
    """
    size = round(200_000 * every)
    total = size * 100
    told = lumps(Meter(), size=size, every=every, until=20 * every, total=total)
    steady = [pace for now, pace in told if now > 4 * every]
    assert all(pace.rate == pytest.approx(200_000, rel=0.25) for pace in steady)
    assert not any(pace.waits for pace in steady)
    left = [pace.eta for pace in steady]
    assert None not in left
    for before, after in pairwise(left):
        assert after == pytest.approx(before, rel=0.25)


@pytest.mark.parametrize("every", [2.0, 10.4, 41.0])
def test_a_copy_that_stops_has_no_speed_and_no_time_left(every: float) -> None:
    """Both end after twice the longest pause, but not before ten seconds."""
    meter = Meter()
    size, end = 1_000_000, 10 * every
    (last, _) = lumps(meter, size=size, every=every, until=end)[-1]
    told = []
    while (pace := meter.read(last, 10 * size, 10**12)).rate:
        told.append(pace.rate)
        last += 1
    assert told == sorted(told, reverse=True)
    assert (pace.eta, pace.waits) == (None, True)
    assert last - end <= max(PAUSE, 2 * (every + LOOK)) + LOOK


def test_a_copy_that_goes_on_after_a_standstill_has_its_new_speed() -> None:
    """The time of the standstill does not count, once bytes have come for a second."""
    meter = Meter()
    lumps(meter, size=2000, every=2, until=60)
    meter.read(660, 61_000, 10**12)
    assert meter.read(662, 65_000, 10**12).rate == 2000
    assert meter.read(664, 69_000, 10**12).rate == 2000


def test_one_lump_after_a_standstill_is_no_rhythm() -> None:
    """If no bytes follow the lump, the copy waits again after ten seconds."""
    meter = Meter()
    lumps(meter, size=2000, every=2, until=60)
    assert meter.read(660, 61_000, 10**12).rate > 0
    assert meter.read(669, 61_000, 10**12).rate > 0
    assert meter.read(670, 61_000, 10**12) == Pace(0, None, still=PAUSE)


def test_the_speed_follows_a_new_limit() -> None:
    """Thirty seconds after a change, the speed is the new one."""
    meter, done = Meter(), 0
    for second in range(0, 200, 2):
        done += 2 * (100_000 if second < 100 else 300_000)
        pace = meter.read(second, done, 10**12)
        if second >= 130:
            assert pace.rate == pytest.approx(300_000)


def test_two_readings_at_one_moment_change_nothing() -> None:
    """If the clock has not moved, the speed stays, without a division by zero."""
    meter = Meter()
    meter.read(0, 0, 100)
    first = meter.read(1, 50, 100)
    assert meter.read(1, 60, 100).rate == first.rate


def test_bytes_that_were_dropped_do_not_make_the_speed_negative() -> None:
    """After staging was deleted, the speed is 0 and there is no time left."""
    meter = Meter()
    meter.read(0, 500, 1000)
    assert meter.read(1, 0, 1000) == Pace(0, None, still=1)


def test_a_copy_without_bytes_to_come_has_no_time_left_to_tell() -> None:
    """The copy still has to compare its bytes, for a time that is unknown.

    So the time left is None, not 0.
    """
    meter = Meter()
    meter.read(0, 0, 1000)
    assert meter.read(1, 1000, 1000) == Pace(1000, None)


def test_the_time_without_bytes_begins_anew_with_each_byte() -> None:
    """Only new bytes end a standstill. A loss of bytes does not."""
    meter = Meter()
    still = [meter.read(now, done, 1000).still for now, done in ((1, 5), (4, 5), (6, 7), (9, 6))]
    assert still == [0, 3, 0, 3]
    assert not meter.read(15.9, 6, 1000).waits
    assert meter.read(16, 6, 1000).waits
