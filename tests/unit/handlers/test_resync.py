"""The resync's check of all resources, and its count of changes that a watch missed."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

import pytest

from sluice.handlers.resync import Resync
from sluice.handlers.watches import Watches
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
)
from sluice.kube.loop.queue import Lane, WorkQueue
from sluice.metrics import Metrics
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object


class Bench:
    """A resync, listed objects, and the number of further calls for them."""

    def __init__(self, count: int) -> None:
        self.server, self.asked = FinalizingServer(), 0
        for number in range(count):
            self.server.put(EPHEMERAL_STREAM, {"metadata": {"name": f"n{number}"}})
        self.listed: list[Object] = copy.deepcopy(list(self.server.objects.values()))
        self.server.meanwhile = self._count
        self.metrics, self.mirror, self.queue = Metrics(), Mirror(), WorkQueue()
        self.resync = Resync(
            self.server.api,
            queue=self.queue,
            mirror=self.mirror,
            watches=Watches(self.queue, self.mirror),
            metrics=self.metrics,
            namespaces=[],
            seconds=60,
        )

    def _count(self) -> None:
        self.asked += 1

    def behind(self) -> bool:
        """Tell whether the watch, which has shown nothing, has missed an object."""
        return asyncio.run(self.resync._still_there(EPHEMERAL_STREAM, self.listed))

    def late(self, shows: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
        """Count the objects missed by a watch that shows so many in all, two at a time.

        Returns:
            The count, and the number of waits.
        """
        waits = 0

        async def sleep(_seconds: float) -> None:
            nonlocal waits
            for body in self.listed[2 * waits : min(2 * waits + 2, shows)]:
                self.mirror.see(EPHEMERAL_STREAM, body, gone=False)
            waits += 1

        monkeypatch.setattr(asyncio, "sleep", sleep)
        late = asyncio.run(self.resync._caught_up(EPHEMERAL_STREAM, self.listed, 1.0))
        return len(late), waits


def test_a_watch_that_goes_on_showing_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of resources take a while at the start, and the operator still works."""
    assert Bench(7).late(7, monkeypatch) == (0, 4)


def test_a_watch_that_shows_no_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that it has not shown by then count as missed."""
    assert Bench(7).late(4, monkeypatch) == (3, 3)
    assert Bench(7).late(0, monkeypatch) == (7, 1)


@pytest.mark.parametrize("left", [1, 2])
def test_what_is_there_still_was_missed(left: int) -> None:
    """This holds even if the others were deleted."""
    bench = Bench(3)
    for key in list(bench.server.objects)[left:]:
        del bench.server.objects[key]
    assert bench.behind()


def test_what_was_deleted_meanwhile_is_asked_for_once() -> None:
    """This holds for any number of them."""
    bench = Bench(300)
    bench.server.objects.clear()
    assert not bench.behind()
    assert bench.asked == 1


def test_a_replica_that_begins_to_work_queues_all_that_the_watches_have_shown() -> None:
    """A deleted resource enters the lane of deletions. Before, no key is queued or counted."""
    bench = Bench(2)
    bench.queue.is_open = False
    for body in bench.listed:
        bench.mirror.see(EPHEMERAL_STREAM, body, gone=False)
    deleted = {"metadata": {**bench.listed[0]["metadata"], "deletionTimestamp": "now"}}
    bench.mirror.see(EPHEMERAL_STREAM, deleted | {"spec": {}}, gone=False)
    bench.resync.queue_all()
    assert [bench.queue.depth(lane) for lane in Lane] == [0, 0]
    bench.queue.is_open = True
    bench.resync.queue_all()
    assert [bench.queue.depth(lane) for lane in Lane] == [1, 1]
