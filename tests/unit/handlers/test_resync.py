"""What a watch has not shown counts only if it is there still."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING

import pytest

from sluice.handlers.resync import Resync
from sluice.kube.kinds import EPHEMERAL_STREAM
from sluice.kube.mirror import Mirror
from sluice.kube.queue import WorkQueue
from sluice.metrics import Metrics
from support.finalizing import FinalizingServer

if TYPE_CHECKING:
    from sluice.kube.kinds import Object


class Bench:
    """A resync, objects that were listed, and how often was asked for them again."""

    def __init__(self, count: int) -> None:
        self.server, self.asked = FinalizingServer(), 0
        for number in range(count):
            self.server.put(EPHEMERAL_STREAM, {"metadata": {"name": f"n{number}"}})
        self.listed: list[Object] = copy.deepcopy(list(self.server.objects.values()))
        self.server.meanwhile = self._count
        self.resync = Resync(
            self.server.api,
            queue=WorkQueue(),
            mirror=Mirror(),
            metrics=Metrics(),
            namespaces=[],
            seconds=60,
        )

    def _count(self) -> None:
        self.asked += 1

    def behind(self) -> bool:
        """Whether the watch, which has shown nothing, has missed something."""
        return asyncio.run(self.resync._still_there(EPHEMERAL_STREAM, self.listed, 1.0))


@pytest.mark.parametrize("left", [1, 2])
def test_what_is_there_still_was_missed(left: int) -> None:
    """Also if the others were deleted."""
    bench = Bench(3)
    for key in list(bench.server.objects)[left:]:
        del bench.server.objects[key]
    assert bench.behind()


def test_what_was_deleted_meanwhile_is_asked_for_once() -> None:
    """However many they were."""
    bench = Bench(300)
    bench.server.objects.clear()
    assert not bench.behind()
    assert bench.asked == 1
