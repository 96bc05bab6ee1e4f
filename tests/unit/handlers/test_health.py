from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NoReturn, cast

import pytest

from sluice.errors import ApiUnavailable
from sluice.handlers.by_name import ByName
from sluice.handlers.health import MOST_STILL, Health
from sluice.handlers.resync import Resync
from sluice.handlers.states import copy_state
from sluice.handlers.watches import Watches
from sluice.kube.api.cache import Mirror
from sluice.kube.api.fence import Fence
from sluice.kube.loop.queue import Key, Lane, WorkQueue
from sluice.kube.loop.settings import OperatorSettings
from sluice.metrics import Metrics

if TYPE_CHECKING:
    from sluice.kube.api.client import Api

KEY = Key("StreamCopy", "team", "orders")
NO_API = cast("Api", None)
"""Nothing here calls it."""


class Bench:
    """An operator's health, and the parts that report to it."""

    def __init__(self) -> None:
        self.now = 0.0
        settings = OperatorSettings(image="i")
        metrics = Metrics()
        self.queue = WorkQueue(lambda: self.now)
        self.resync = Resync(
            NO_API,
            queue=self.queue,
            mirror=Mirror(),
            watches=Watches(self.queue, Mirror()),
            metrics=metrics,
            namespaces=[],
            seconds=settings.resync_seconds,
        )
        by_name = ByName(Mirror(), metrics, settings)
        self.health = Health(self.queue, self.resync, metrics, by_name, settings, fence=Fence())


def test_an_operator_that_has_just_begun_is_well() -> None:
    """No key waits, and no part is late."""
    bench = Bench()
    assert bench.health.problems() == []
    assert bench.resync.synced is False


def test_a_watch_that_misses_changes_is_a_problem() -> None:
    """Each watch is reported with its kind."""
    bench = Bench()
    bench.resync.behind |= {"StreamStore", "Pod"}
    assert bench.health.problems() == [
        "the watch of Pod misses changes",
        "the watch of StreamStore misses changes",
    ]


def test_a_queue_that_stands_still_is_a_problem() -> None:
    """No worker takes the waiting key, in either lane."""
    bench = Bench()
    bench.queue.add(KEY, lane=Lane.DELETION)
    bench.now = MOST_STILL
    assert bench.health.problems() == []
    bench.now += 1
    assert bench.health.problems() == ["no worker has taken or finished anything for 601 s"]


def test_a_resource_that_is_put_off_does_not_wait() -> None:
    """A key that is due in an hour is not late before that."""
    bench = Bench()
    bench.queue.add(KEY, delay=3600)
    bench.now = 3600
    assert bench.health.problems() == []


def _take(bench: Bench) -> Key:
    return asyncio.run(bench.queue.take(Lane.NORMAL))


def test_workers_that_all_hang_are_a_problem() -> None:
    """Work has begun, but makes no progress."""
    bench = Bench()
    bench.queue.add(KEY)
    _take(bench)
    bench.now = MOST_STILL + 1
    assert bench.health.problems() == ["no worker has taken or finished anything for 601 s"]


def test_a_backlog_is_no_problem_while_it_is_worked_off() -> None:
    """A slow resource is no problem either: a restart would not help."""
    bench = Bench()
    keys = [Key("StreamCopy", "team", f"c{number}") for number in range(50)]
    for key in [KEY, *keys]:
        bench.queue.add(key)
    assert _take(bench) == KEY
    for _ in keys:
        bench.now += MOST_STILL
        assert bench.health.problems() == []
        bench.queue.done(_take(bench))
    assert bench.now > 40 * MOST_STILL


def test_a_resync_that_ended_is_a_problem() -> None:
    """Each resource must be checked from time to time, whatever the watches show."""
    bench = Bench()
    bench.resync.last = time.monotonic() - 1000
    assert bench.health.problems() == ["no resync has begun for 1000 s"]


def test_an_api_server_that_is_away_is_no_problem_of_ours() -> None:
    """A failed round counts as a round: a restart would not bring the API server back."""
    bench = Bench()
    bench.resync.last = time.monotonic() - 1000

    class Away:
        async def list(self, *_: object, **__: object) -> NoReturn:
            raise ApiUnavailable("connection refused")

    bench.resync._api = cast("Api", Away())

    async def rounds() -> None:
        running = asyncio.ensure_future(bench.resync.run())
        async with asyncio.timeout(10):
            while bench.health.problems():  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0)
        running.cancel()

    asyncio.run(rounds())
    assert not bench.resync.synced


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({}, "Active"),
        ({"Ready": "Unknown", "Reconciling": "True"}, "Active"),
        ({"Ready": "False", "Stalled": "True"}, "Failed"),
        ({"Ready": "Unknown", "Suspended": "True"}, "Suspended"),
        ({"Ready": "True", "Succeeded": "True"}, "Succeeded"),
        ({"Succeeded": "False"}, "Active"),
    ],
)
def test_copies_are_counted_by_what_their_conditions_say(said: dict[str, str], state: str) -> None:
    """Each copy has one state."""
    conditions = [{"type": kind, "status": status} for kind, status in said.items()]
    assert copy_state({"status": {"conditions": conditions}}) == state
    assert copy_state({}) == "Active"
