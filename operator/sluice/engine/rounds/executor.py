"""Executors: they run the engine's slices in tasks. The engine does not know what a task is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sluice.engine.rounds.slices import run_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.archive.runs.archive_root import ArchiveRoot
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.engine.rounds.throttle import RateLimiter
    from sluice.stores.base import Source, Store

INLINE_BYTES: Final = 1 << 20
"""Most bytes that a step of one of many streams moves in the thread that does the step."""

INLINE_PLAN: Final = 8 << 20
"""Most bytes of a single stream that one process copies without Spark, which takes 1 s to start.

This is chosen, not measured: copying 1 MB takes half a second, and larger sizes were not timed.
Parts are not shorter than this, so tasks could do little side by side.
"""

INLINE_RUN: Final = 32 << 20
"""Most bytes that one process archives without Spark, with many events in an object."""

INLINE_EVENTS: Final = 1 << 20
"""Most bytes that it archives with an object for each event: many objects take longer than few."""


def is_small(size: int, limits: Limits) -> bool:
    """Tell whether a step of one of many streams moves `size` bytes without tasks.

    With a rate limit it uses tasks, since only rounds share the rate out.
    """
    return limits.bytes_per_second is None and size <= INLINE_BYTES


def is_small_plan(size: int) -> bool:
    """Tell whether the copy of a single stream moves `size` bytes without tasks."""
    return size <= INLINE_PLAN


def is_small_run(size: int, *, of_events: bool) -> bool:
    """Tell whether a run of an archive moves `size` bytes without tasks.

    Args:
        size: bytes.
        of_events: whether each event is an object.
    """
    return size <= (INLINE_EVENTS if of_events else INLINE_RUN)


class Executor(Protocol):
    """An executor of tasks side by side. A task is a list of slices, done one after the other."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """Run all tasks to their end.

        Results come in any order. Some slices may have none: the next look at the store finds what
        is missing, and the next round does it.

        Raises:
            InfrastructureError: there is no result at all.
        """
        ...


@dataclass(frozen=True, slots=True)
class InlineExecutor:
    """An executor that runs every task in the calling thread.

    Attributes:
        sources, target: the stores.
        slots: for how many tasks slices are made.
        pace: limits the rate in place of the slices' own rates; None for those.
    """

    sources: Sequence[Source]
    target: Store | ArchiveRoot
    slots: int = 1
    pace: RateLimiter | None = None

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """Run all tasks, one after the other."""
        return [
            result
            for task in tasks
            for result in run_share(
                task, lambda work: (self.sources[work.store], self.target), self.pace
            )
        ]
