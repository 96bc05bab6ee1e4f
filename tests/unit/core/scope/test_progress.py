import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.scope.progress import Meter, Pace


def test_one_reading_tells_no_speed() -> None:
    """The first reading only begins: what was there before was not copied now."""
    assert Meter().read(now=5, done=900, total=1000) == Pace(0, None)


def test_two_readings_tell_speed_and_time_left() -> None:
    """The first span gives the speed, and the rest of the bytes the time."""
    meter = Meter()
    meter.read(now=0, done=100, total=1100)
    assert meter.read(now=2, done=300, total=1100) == Pace(100, 8)


@given(st.floats(1, 1e9), st.lists(st.floats(0.01, 10), min_size=2, max_size=20))
def test_a_steady_speed_is_told_however_readings_come(rate: float, gaps: list[float]) -> None:
    """With bytes growing steadily the rate is that speed, at any rhythm of reading."""
    meter, now = Meter(), 0.0
    meter.read(now, 0, 10**12)
    for gap in gaps:
        now += gap
        pace = meter.read(now, round(now * rate), 10**12)
    assert pace.rate == pytest.approx(rate, rel=0.05, abs=100)


def test_the_mean_forgets() -> None:
    """After many times its memory the meter knows only the new speed."""
    meter = Meter(memory=1)
    meter.read(0, 0, 10_000)
    meter.read(1, 1000, 10_000)
    for second in range(2, 22):
        pace = meter.read(second, 1000 + 10 * (second - 1), 10_000)
    assert pace.rate == pytest.approx(10, rel=0.01)


def test_two_readings_at_one_moment_change_nothing() -> None:
    """A clock that did not move divides nothing by zero."""
    meter = Meter()
    meter.read(0, 0, 100)
    first = meter.read(1, 50, 100)
    assert meter.read(1, 60, 100).rate == first.rate


def test_bytes_that_were_dropped_do_not_make_the_speed_negative() -> None:
    """When staging is deleted the speed is zero and there is no time to tell."""
    meter = Meter()
    meter.read(0, 500, 1000)
    assert meter.read(1, 0, 1000) == Pace(0, None, still=1)


def test_a_long_stall_has_no_time_left_to_tell() -> None:
    """While nothing moves for long no time is told, rather than centuries."""
    meter = Meter()
    meter.read(0, 0, 10**12)
    meter.read(1, 10**8, 10**12)
    for second in range(2, 600):
        pace = meter.read(second, 10**8, 10**12)
    assert pace.eta is None


def test_the_time_without_bytes_begins_anew_with_each_byte() -> None:
    """It does not count from the beginning, and a loss of bytes ends it no more than their lack."""
    meter = Meter()
    still = [meter.read(now, done, 1000).still for now, done in ((1, 5), (4, 5), (6, 7), (9, 6))]
    assert still == [0, 3, 0, 3]
    assert not meter.read(15.9, 6, 1000).waits
    assert meter.read(16, 6, 1000).waits
