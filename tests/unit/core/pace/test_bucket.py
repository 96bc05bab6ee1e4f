"""The bytes that a rate limit allows, over any time and with any pauses."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from sluice.core.pace.bucket import TokenBucket, WaveBudget, block

WINDOW: Final = 30.0
RATES = st.integers(100 << 10, 1 << 30)
PAUSES = st.lists(st.floats(0, 5, allow_nan=False), min_size=0, max_size=10)


def _moved(rate: int, pauses: list[float], seconds: float) -> list[tuple[float, int]]:
    """Return the times and bytes of a mover that moves as early as it may, but for these pauses."""
    now, bucket, left = 0.0, TokenBucket(0.0), list(pauses)
    moved: list[tuple[float, int]] = []
    while now < seconds and len(moved) < 2000:
        wait = bucket.wait(rate, now)
        if wait:
            now += max(wait, 1e-6)  # any clock advances
            continue
        bucket.take(block(rate))
        moved.append((now, block(rate)))
        if left:
            now += left.pop()
    return moved


def _most(moved: list[tuple[float, int]], window: float) -> int:
    """Return the most bytes in a window of that many seconds."""
    most = there = first = 0
    for at, size in moved:
        there += size
        while moved[first][0] <= at - window:
            there -= moved[first][1]
            first += 1
        most = max(most, there)
    return most


@given(RATES, PAUSES)
@example(100 << 10, [4.9] * 3)
def test_no_window_of_thirty_seconds_has_ten_percent_too_much(
    rate: int, pauses: list[float]
) -> None:
    """The bytes that a mover makes up for after a pause are bounded."""
    rate = min(rate, 10 << 20)  # a higher rate only makes more blocks
    moved = _moved(rate, pauses, 40)
    assert _most(moved, WINDOW) <= 1.1 * rate * WINDOW


@given(st.integers(1 << 10, 10 << 20), st.floats(0, 0.9))
def test_who_pauses_for_less_than_a_second_loses_nothing(rate: int, pause: float) -> None:
    """A mover makes up for the time between two rounds."""
    moved = _moved(rate, [pause], WINDOW)
    whole = sum(size for _, size in moved)
    assert whole >= 0.99 * rate * moved[-1][0]


@given(st.lists(st.integers(1 << 10, 1 << 30), min_size=2, max_size=8))
def test_a_new_rate_holds_at_once(rates: list[int]) -> None:
    """After a change, the wait is at most the time of a block at the new rate."""
    bucket, now = TokenBucket(0.0), 0.0
    for rate in rates:
        for _ in range(20):
            wait = bucket.wait(rate, now)
            assert wait <= max(0.101, block(rate) / rate * 1.001)
            now += max(wait, 1e-6)
            if not bucket.wait(rate, now):
                bucket.take(block(rate))
    assert bucket.wait(None, now) == 0


@given(
    RATES,
    st.lists(
        st.tuples(st.floats(0.5, 2.0), st.floats(0.0, 0.5), st.floats(0.3, 1.2)),
        min_size=60,
        max_size=80,
    ),
)
def test_rounds_make_up_for_the_time_between_them(
    limit: int, rounds: list[tuple[float, float, float]]
) -> None:
    """Rounds of some length and some time between them keep to the limit in the long run.

    A round moves some of what it may, or a bit more, since it ends where a chunk does.
    """
    account, now = WaveBudget(), 0.0
    moved: list[tuple[float, int]] = []
    for seconds, between, used in rounds:
        rate = account.rate(limit, now, seconds)
        assert rate is not None
        count = int(rate * seconds * used)
        account.moved(count)
        moved.append((now, count))
        now += seconds + between
    times = [at for at, _ in moved] + [now]
    sums = list(accumulate((size for _, size in moved), initial=0))
    for i, begin in enumerate(times):
        for j in range(i + 1, len(times)):
            if times[j] - begin >= WINDOW:
                assert sums[j] - sums[i] <= 1.1 * limit * (times[j] - begin) + 2 * limit
                break


def test_a_round_that_has_moved_too_little_lets_the_next_one_move_more() -> None:
    """Nothing is moved between rounds, so the next round has a higher rate.

    Otherwise the limit would never be reached.
    """
    account = WaveBudget()
    assert account.rate(1000, 0.0, 1.0) == 1000
    account.moved(1000)
    assert account.rate(1000, 1.25, 1.0) == 1250
    account.moved(1250)
    assert account.rate(1000, 2.25, 1.0) == 1000
    account.moved(9000)
    assert account.rate(1000, 3.25, 1.0) == 500
    assert account.rate(None, 4.0, 1.0) is None
    assert account.rate(1000, 50.0, 1.0) == 1000
    assert all(a <= b for a, b in pairwise([block(1), block(1 << 20), block(1 << 40), block(None)]))


@given(st.floats(0, 1e6), st.integers(1, 1 << 30), st.integers(1, 1 << 20))
def test_who_has_waited_as_told_may_move(now: float, rate: int, taken: int) -> None:
    """The wait ends even if the floating-point clock cannot represent so short a time."""
    bucket = TokenBucket(now)
    assert bucket.wait(rate, now) == 0
    bucket.take(taken)
    for _ in range(8):
        if not (wait := bucket.wait(rate, now)):
            return
        assert now + wait > now
        now += wait
    raise AssertionError("it waits for ever")
