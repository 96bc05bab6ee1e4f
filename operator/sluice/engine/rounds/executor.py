"""Where slices run: the engine asks for tasks and does not know what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from sluice.engine.rounds.slices import run_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.archive.runs.shelf import Shelf
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.slices import Slice, SliceResult
    from sluice.engine.rounds.throttle import RateLimiter
    from sluice.stores.base import Source, Store

INLINE_BYTES: Final = 1 << 20
"""Bytes that a step of one of many streams moves in the thread that does it."""

INLINE_PLAN: Final = 8 << 20
"""Bytes that one process copies of a stream by itself, since Spark takes a second to start.

Chosen, not measured: 1 MB takes half a second, and of longer ones nobody has taken the time.
Parts are not shorter, so there is little that tasks could do side by side.
"""

INLINE_RUN: Final = 32 << 20
"""Bytes that one process archives by itself, many events to an object."""

INLINE_EVENTS: Final = 1 << 20
"""Bytes that it archives with an object for each event: many objects take longer than few."""


def is_small(size: int, limits: Limits) -> bool:
    """Tell whether a step of one of many streams moves so many bytes without tasks.

    Not below a limit, which is shared out among all tasks.
    """
    return limits.bytes_per_second is None and size <= INLINE_BYTES


def is_small_plan(size: int) -> bool:
    """Tell whether the copy of a single stream moves so many bytes without tasks."""
    return size <= INLINE_PLAN


def is_small_run(size: int, *, of_events: bool) -> bool:
    """Tell whether a run of an archive moves so many bytes without tasks.

    Args:
        size: bytes.
        of_events: whether each event is an object.
    """
    return size <= (INLINE_EVENTS if of_events else INLINE_RUN)


class Executor(Protocol):
    """Runs tasks side by side. A task is a list of slices, done one after the other."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        ...

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """Run all tasks to their end.

        Results come in any order and may be fewer than the slices: what is missing is seen in the
        store and done in the next round.

        Raises:
            InfrastructureError: no result could be had.
        """
        ...


@dataclass(frozen=True, slots=True)
class InlineExecutor:
    """Runs every task in the calling thread.

    Attributes:
        sources, target: the stores.
        slots: see Executor.
        pace: what is moved keeps to it, and not to the rates of slices; None for these.
    """

    sources: Sequence[Source]
    target: Store | Shelf
    slots: int = 1
    pace: RateLimiter | None = None

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor."""
        return [
            result
            for task in tasks
            for result in run_share(
                task, lambda work: (self.sources[work.store], self.target), self.pace
            )
        ]
