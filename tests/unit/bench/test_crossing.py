from __future__ import annotations

import pytest

from bench.crossing import crossing

SIZES = (8, 16, 32, 64)


@pytest.mark.parametrize(
    ("threads", "spark", "size"),
    [
        ((1, 2, 4, 8), (3, 3, 3, 3), 24),
        ((1, 2, 3, 8), (3, 3, 3, 3), 32),
        ((1, 2, 3, 4), (5, 5, 5, 5), 64),
        ((4, 5, 6, 7), (3, 3, 3, 3), 8),
        ((1, 4, 2, 8), (3, 3, 3, 3), 8 + 8 * 2 / 3),
    ],
    ids=["between sizes", "at a size", "nowhere, or beyond", "before", "more than once"],
)
def test_lines_cross_where_both_take_the_same_time(
    threads: tuple[float, ...], spark: tuple[float, ...], size: float
) -> None:
    """The first crossing counts. Without one, the result is the first or the last size."""
    assert crossing(SIZES, threads, spark) == pytest.approx(size)
