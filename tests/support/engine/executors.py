"""Executors for tests, which run slices in the calling thread."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.engine.tasks.executor import InlineExecutor
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.errors import SluiceError


class Relay:
    """An executor that passes slices on to another one. Subclasses change its behaviour.

    Args:
        inner: the other executor.
        slots: number of slices that it claims to run at once.
    """

    def __init__(self, inner: InlineExecutor, slots: int = 1) -> None:
        self.slots = slots
        self._inner = inner

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        return self._inner.submit(work)

    def check(self, rate: float | None) -> None:
        """See Executor."""

    def stop(self, grace: float) -> None:
        """See Executor."""


def failed(error: SluiceError) -> Future[SliceResult]:
    """Return the future of a slice that failed."""
    future: Future[SliceResult] = Future()
    future.set_exception(error)
    return future


def ended(result: SliceResult) -> Future[SliceResult]:
    """Return the future of a slice with this result."""
    future: Future[SliceResult] = Future()
    future.set_result(result)
    return future
