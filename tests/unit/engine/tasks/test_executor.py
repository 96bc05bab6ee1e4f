"""The choice of an executor by the number of bytes to move."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from sluice.engine.tasks.executor import SizedExecutor


class Named:
    """An executor that records its calls.

    Args:
        slots: how many tasks run at once.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.asked: list[object] = []

    def submit(self, work: Any) -> Future[Any]:
        """See Executor."""
        self.asked.append(work)
        return Future()

    def check(self, rate: float | None) -> None:
        """See Executor."""
        self.asked.append(rate)

    def stop(self, grace: float) -> None:
        """See Executor."""
        self.asked.append(("stop", grace))


def test_few_bytes_and_many_go_to_one_each_and_both_are_stopped_if_they_were_used() -> None:
    """Spark is neither started nor stopped while there are only few bytes."""
    size = 1
    small, large = Named(1), Named(8)
    both = SizedExecutor(small, large, lambda: size < 10)
    both.submit("few")  # type: ignore[arg-type] # it only passes it on
    both.check(5.0)
    assert (both.slots, small.asked, large.asked) == (1, ["few", 5.0], [])
    both.stop(0)
    assert (small.asked[-1], large.asked) == (("stop", 0), [])
    size = 10
    both.submit("many")  # type: ignore[arg-type] # as above
    assert (both.slots, large.asked) == (8, ["many"])
    both.stop(1)
    assert small.asked[-1] == large.asked[-1] == ("stop", 1)
