"""A wait until a store has evicted idle segments from its memory."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import TYPE_CHECKING
from uuid import uuid4

from localstore.standalone_config import CHECKPOINT_COMMITS
from sluice.stores.pravega.wire.wire import NOT_SET
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from sluice.core.values.model import StreamName
    from sluice.stores.pravega.store import PravegaStore

FIRST, STEP, LOOKS = 70.0, 20.0, 15
"""Seconds to the first look, seconds between looks, and their number.

The store keeps segments that were used in the last 60 seconds.
"""

_COMMITS = CHECKPOINT_COMMITS + 10
"""A number of commits to a container's log that is larger than a checkpoint's interval.

A store evicts only entries last used before the checkpoint to which it has truncated its log. A
container without writes makes no checkpoint, so it never evicts anything.
"""
_PROMPT = 3
"""Number of looks after which containers without evictions get another checkpoint at each look."""

_THREADS = 8


def wait_until_evicted(store: PravegaStore, segments: Iterable[tuple[StreamName, int]]) -> None:
    """Wait until the store has evicted all segments that were last used before this call.

    A look at a segment keeps it in memory. So each look is at other segments, which are made at the
    beginning. Once they are evicted, all segments that were used before are evicted too. They lie
    beside the named segments and so share their containers, since each container evicts at its own
    time.

    Args:
        store: the store.
        segments: at least one segment of each container that matters, as stream and number.
    """
    mark, segments = uuid4(), tuple(segments)
    rounds = [
        [store.staging_name(stream, number, uuid4().hex) for stream, number in segments]
        for _ in range(LOOKS)
    ]
    for canary in (name for names in rounds for name in names):
        assert store.create(canary)
        assert store.set_attribute(canary, CompareAndSet(mark, None, 7))
    waiting = set(range(len(segments)))

    def write(places: Iterable[int]) -> None:
        """Let the containers of these segments make a checkpoint."""
        pumps = [store.staging_name(*segments[place], uuid4().hex) for place in places]
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(partial(_checkpoint, store), pumps))

    write(waiting)
    time.sleep(FIRST - STEP)
    for number, names in enumerate(rounds):
        time.sleep(STEP)
        waiting -= {place for place in waiting if not in_memory(store, names[place], mark)}
        if not waiting:
            return
        if number >= _PROMPT:
            write(waiting)
    raise AssertionError(f"the store has kept {len(waiting)} of {len(rounds[0])} in memory")


def _checkpoint(store: PravegaStore, pump: str) -> None:
    """Write to a container until it has made a checkpoint, one commit after the other."""
    assert store.create(pump)
    for offset in range(_COMMITS):
        assert store.append_at(pump, offset, b"-")


def all_of(streams: Iterable[StreamName], count: int) -> list[tuple[StreamName, int]]:
    """Return the first `count` segments of each stream."""
    return list(product(streams, range(count)))


def in_memory(store: PravegaStore, segment: str, attribute: UUID) -> bool:
    """Tell whether GetSegmentAttribute returns a value. The question itself uses the segment."""
    (value,) = store._attributes._from_memory([(segment, attribute)])
    return value not in {None, NOT_SET}
