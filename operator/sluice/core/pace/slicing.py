"""Cut work into slices of bounded size.

Between two slices limits count anew, and other streams get their turn. Slices also bound what is
lost when a task is killed.
"""

from __future__ import annotations

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
