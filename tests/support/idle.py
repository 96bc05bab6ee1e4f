"""Waiting until a store has put idle segments out of its memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

from sluice.core.model import Scaling, StreamConfig, StreamName
from sluice.stores.base import Condition
from sluice.stores.pravega.wire import NOT_SET

if TYPE_CHECKING:
    from uuid import UUID

    from sluice.stores.pravega.store import PravegaStore

FIRST, STEP, CANARIES = 70.0, 15.0, 20
"""Seconds to the first look and between looks: the store keeps what was used in the last 60."""


def wait_until_evicted(store: PravegaStore, scope: str) -> None:
    """Wait until the store has evicted all that was last used before this call.

    A look at a segment keeps it in memory. So each look is at another segment, all of which were
    last used when this began; once one is out of memory, so is what was used before.
    """
    name = StreamName(scope=scope, stream=f"canaries-{uuid4().hex[:8]}")
    store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=CANARIES)))
    mark = uuid4()
    segments = [store.segment_name(name, number) for number in range(CANARIES)]
    for segment in segments:
        assert store.set_attribute(segment, Condition(mark, None, 7))
    time.sleep(FIRST - STEP)
    for segment in segments:
        time.sleep(STEP)
        if not in_memory(store, segment, mark):
            return
    raise AssertionError("the store has kept everything in memory")


def in_memory(store: PravegaStore, segment: str, attribute: UUID) -> bool:
    """Whether the store answers GetSegmentAttribute with a value; that is a use of the segment."""
    (value,) = store._attributes._from_memory([(segment, attribute)])
    return value not in {None, NOT_SET}
