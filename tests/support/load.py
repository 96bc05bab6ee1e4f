"""Begin no test while the processors have enough to do: more at a time would only be slower.

The lanes run side by side, because most tests wait now and then. If all of them compute at once, a
test may take ten times as long as alone, and what waits for it gives up.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from localstore.cache import cache_root, locked

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES: Final = 2 * (os.cpu_count() or 1)
"""Tests that may run in any case."""

IDLE: Final = 0.2
"""Share of the processors' time without work from which on one more test may begin."""

_SECONDS: Final = 0.5


@contextmanager
def room() -> Iterator[None]:
    """Wait until a test may begin, and hold its place during the block.

    The longest wait is the first to end. The kernel gives a place back if this process dies.
    """
    cache_root().mkdir(parents=True, exist_ok=True)
    with locked(cache_root() / "tests-places-queue.lock"):
        before = _times()
        while (place := _place()) is None:
            time.sleep(_SECONDS)
            after = _times()
            if after[0] - before[0] >= IDLE * (after[1] - before[1]):
                break
            before = after
    try:
        yield
    finally:
        if place is not None:
            os.close(place)


def _place() -> int | None:
    """Take a free place; None if there is none."""
    for number in range(PLACES):
        path = cache_root() / f"tests-place-{number}.lock"
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        os.close(handle)
    return None


def _times() -> tuple[int, int]:
    """Return the processors' time without work, and all of it, in ticks since the start.

    What others do at a low priority counts as no work: it gives way.
    """
    first = Path("/proc/stat").read_text().partition("\n")[0]
    ticks = [int(word) for word in first.split()[1:9]]
    _, nice, _, idle, waiting = ticks[:5]
    return nice + idle + waiting, sum(ticks)
