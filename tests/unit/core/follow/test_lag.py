"""The age of the oldest missing bytes, from samples of a source's lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.follow.lag import RESOLUTION, SAMPLE_SECONDS, Samples

if TYPE_CHECKING:
    from collections.abc import Callable


def at(**places: int) -> Callable[[int, int], bool]:
    """Return a function that tells whether segments a, b and c are there up to an offset."""
    known = {"abc".index(name): place for name, place in places.items()}
    return lambda segment, end: known.get(segment, -1) >= end


def test_nothing_is_missing_if_all_is_reached_at_once() -> None:
    """The first look already gives a certain age of 0 seconds."""
    age = Samples().read(0.0, {0: 10, 1: 5}, at(a=10, b=5))
    assert (age.seconds, age.certain, age.pending) == (0.0, True, False)


def test_what_was_missing_before_the_first_look_is_unknown() -> None:
    """Until a sample is reached, the age counts from the first look and is not certain."""
    samples = Samples()
    assert samples.read(0.0, {0: 10}, at(a=3)) == (0.0, False, True)
    assert samples.read(40.0, {0: 90}, at(a=4)) == (40.0, False, False)
    assert samples.read(50.0, {0: 99}, at(a=90)) == (0.0, True, True)


def test_the_age_is_that_of_the_oldest_sample_that_is_not_reached() -> None:
    """A sample is reached only when each of its segments is."""
    samples = Samples()
    samples.read(0.0, {0: 10, 1: 10}, at(a=10, b=10))
    assert samples.read(10.0, {0: 20, 1: 20}, at(a=10, b=10)).seconds == 0.0
    assert samples.read(21.0, {0: 30, 1: 30}, at(a=30, b=19)).seconds == 11.0
    assert samples.read(23.0, {0: 30, 1: 30}, at(a=30, b=20)).seconds == 2.0
    assert samples.read(24.0, {0: 30, 1: 30}, at(a=30, b=30)) == (0.0, True, False)


def test_a_busy_source_is_behind_by_nothing_between_two_samples() -> None:
    """The lag is 0 if each look finds the last sample reached, although new bytes came since."""
    samples, now = Samples(), 0.0
    samples.read(now, {0: 0}, at(a=0))
    for look in range(1, 50):
        now += SAMPLE_SECONDS if look % 2 else RESOLUTION - 0.5
        end = 1_000 * look
        age = samples.read(now, {0: end}, at(a=end - 1))
        assert (age.seconds, age.certain) == (0.0, True)
        assert age.pending == (look % 2 == 1)


def test_samples_are_bounded_and_tell_the_oldest_age() -> None:
    """A copy that is behind for a day does not keep a sample for each look."""
    samples = Samples()
    samples.read(0.0, {0: 0}, at(a=0))
    for look in range(1, 10_000):
        age = samples.read(look * SAMPLE_SECONDS, {0: look}, at(a=0))
    assert age.seconds == 9_998 * SAMPLE_SECONDS
    # Dropped samples make the age that of a later one, by a part of the whole.
    half = samples.read(10_000 * SAMPLE_SECONDS, {0: 10_000}, at(a=5_000)).seconds
    assert 4_500 * SAMPLE_SECONDS < half < 5_001 * SAMPLE_SECONDS
