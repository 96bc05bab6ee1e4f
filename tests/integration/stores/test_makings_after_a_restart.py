"""Streams whose creation was interrupted when the segment store died."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from threading import Event, Semaphore
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.config import Settings
from sluice.core.values.identity import TAG_MANAGED
from sluice.core.values.model import Scaling, StoreAddress, StreamConfig, StreamName
from sluice.errors import BackendError
from sluice.stores.connect import connect
from support.until import PATIENT

if TYPE_CHECKING:
    from localstore import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

SETTINGS = Settings(timeouts=PATIENT)
CONFIG = StreamConfig(scaling=Scaling(min_segments=2), tags=(TAG_MANAGED, "team=a"))
AT_ONCE = 16
SECONDS = 120.0


@pytest.mark.exhaustive
def test_a_stream_of_ours_is_made_to_its_end_by_whoever_looks_at_it(cluster: Cluster) -> None:
    """Any read of an unfinished stream completes it. The controller itself never would."""
    scope = f"made-{uuid4().hex[:8]}"
    dying, made, numbers = Event(), Semaphore(0), count()

    def make() -> list[StreamName]:
        begun = []
        while not dying.is_set():
            begun.append(StreamName(scope=scope, stream=f"s{next(numbers)}"))
            with suppress(BackendError):
                store.create_stream(begun[-1], CONFIG)
                made.release()
        return begun

    with (
        closing(connect(StoreAddress(uri=cluster.controller_uri), SETTINGS)) as store,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        store.create_scope(scope)
        making = [pool.submit(make) for _ in range(AT_ONCE)]
        for _ in range(2 * AT_ONCE):  # spreads the threads over the steps of a creation
            assert made.acquire(timeout=SECONDS)
        cluster.kill("segmentstore")
        dying.set()
        begun = [name for thread in making for name in thread.result()]
        cluster.restart("segmentstore")
        # One half is read by `configuration` first. `describe` then reads all.
        half = len(begun) // 2
        configured = list(pool.map(store.configuration, begun[:half]))
        assert set(configured) <= {CONFIG, None}  # None: no server got the call
        for stream in pool.map(store.describe, begun):
            if stream is not None:
                assert stream.config == CONFIG
                assert len(stream.tail) == CONFIG.scaling.min_segments
