"""Divide the work of a round among tasks.

Work is done in rounds of bounded slices. Between two rounds the driver looks at limits and
suspension again, and other streams get their turn. Bounded rounds also bound memory.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeVar

from sluice.core.events.digest import CHUNK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLICE_BYTES = 256 << 20
"""The most bytes that one slice moves; a multiple of the chunk size."""

SLICE_SECONDS = 20.0
"""A slice ends at the first chunk boundary after this time, in seconds."""

T = TypeVar("T")


def slice_end(at: int, end: int, most: int = SLICE_BYTES) -> int:
    """Return where a slice that begins at `at` ends: at a chunk boundary, or at the range's end.

    The slice has about `most` bytes, and always reaches at least the next chunk boundary.
    """
    if end - at <= most:
        return end
    return min(max((at + most) // CHUNK, at // CHUNK + 1) * CHUNK, end)


def take(items: Sequence[T], most: int, size: Callable[[T], int]) -> list[T]:
    """Return the first items whose sizes add up to at most `most` bytes, but at least one item."""
    total = 0
    taken: list[T] = []
    for item in items:
        total += size(item)
        if taken and total > most:
            break
        taken.append(item)
    return taken


def share_out(items: Sequence[T], tasks: int, size: Callable[[T], int]) -> list[list[T]]:
    """Divide items among at most `tasks` tasks so that the largest load is small.

    The longest-processing-time rule: the largest item goes to the least loaded task. Empty tasks
    are left out; the result is the same for the same input.
    """
    heap = [(0, number) for number in range(max(1, min(tasks, len(items))))]
    shares: list[list[T]] = [[] for _ in heap]
    for item in sorted(items, key=size, reverse=True):
        load, number = heapq.heappop(heap)
        shares[number].append(item)
        heapq.heappush(heap, (load + size(item), number))
    return [share for share in shares if share]
