"""The times of a query's last batches."""

from __future__ import annotations

from sluice.pipelines.query.observations import BatchProgress, BatchTimes


def took(batch: int, millis: int) -> BatchProgress:
    """Return how a batch went."""
    return BatchProgress(batch=batch, millis=millis, state_rows=0, state_bytes=0)


def test_nothing_is_known_before_the_first_batch_has_ended() -> None:
    """Spark has no progress then."""
    times = BatchTimes()
    assert times.after(None) is None
    assert times.after(took(0, 700)) == (700, 700)


def test_a_batch_counts_once() -> None:
    """Spark tells the last one again while it has nothing to read."""
    times = BatchTimes()
    for _ in range(9):
        found = times.after(took(0, 9000))
    assert found == (9000, 9000)
    for batch in range(1, 4):
        found = times.after(took(batch, 100))
    assert found == (100, 100)
    assert times.after(None) == found


def test_the_last_hundred_batches_count() -> None:
    """One slow batch of a hundred shows in the percentile, until it is long ago."""
    times = BatchTimes()
    for batch in range(100):
        found = times.after(took(batch, batch))
    assert found == (49, 98)
    for batch in range(100, 200):
        found = times.after(took(batch, 5))
    assert found == (5, 5)
