"""Waiting until a store has put idle segments out of its memory."""

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

FIRST, STEP, LOOKS = 70.0, 15.0, 20
"""Seconds to the first look and between looks: the store keeps what was used in the last 60."""

_COMMITS = CHECKPOINT_COMMITS + 10
"""More commits to a container's log than from one checkpoint to the next.

A store evicts only what was last used before the checkpoint to which it has truncated its log. In a
container where nobody writes there is no checkpoint, so nothing is ever evicted.
"""
_PROMPT = 4
"""Looks after which containers that have evicted nothing get another checkpoint for each look."""

_THREADS = 8


def wait_until_evicted(store: PravegaStore, segments: Iterable[tuple[StreamName, int]]) -> None:
    """Wait until the store has evicted all that was last used before this call.

    A look at a segment keeps it in memory. So each look is at others, made when this begins, and
    once these are out of memory, so is what was used before. They are beside the segments named:
    a store has several containers, each with a time of its own, and what is beside a segment is in
    its container.

    Args:
        store: the store.
        segments: of each container that matters at least one, as stream and number.
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
        """Have the containers of these segments make a checkpoint."""
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
    """Write to a container until it has made a checkpoint; one commit after the other."""
    assert store.create(pump)
    for offset in range(_COMMITS):
        assert store.append_at(pump, offset, b"-")


def all_of(streams: Iterable[StreamName], count: int) -> list[tuple[StreamName, int]]:
    """The segments that streams were made with."""
    return list(product(streams, range(count)))


def in_memory(store: PravegaStore, segment: str, attribute: UUID) -> bool:
    """Whether the store answers GetSegmentAttribute with a value; that is a use of the segment."""
    (value,) = store._attributes._from_memory([(segment, attribute)])
    return value not in {None, NOT_SET}
