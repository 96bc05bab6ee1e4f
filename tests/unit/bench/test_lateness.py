"""A target's lag behind its source, calculated from the lengths of segments."""

from __future__ import annotations

from bench.follow.lag import Lateness


def test_a_target_is_as_late_as_the_first_byte_that_it_lacks() -> None:
    """The lag ends when the target has the bytes that the source had then, not all later ones."""
    late = Lateness()
    assert late.take(0.0, 0, 100, 100) == 0
    assert late.take(1.0, 0, 200, 100) == 0
    assert late.take(2.0, 0, 300, 100) == 1
    assert late.take(3.0, 0, 400, 199) == 2
    assert late.take(4.0, 0, 400, 200) == 2
    assert late.take(5.0, 0, 400, 400) == 0


def test_segments_are_late_each_by_itself() -> None:
    """Bytes of one segment do not reduce the lag of another."""
    late = Lateness()
    assert late.take(0.0, 0, 10, 0) == 0
    assert late.take(0.0, 1, 10, 10) == 0
    assert late.take(5.0, 1, 90, 90) == 0
    assert late.take(5.0, 0, 10, 0) == 5
