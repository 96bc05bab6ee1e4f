from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest

from sluice.handlers.health import MOST_WAIT, Health
from sluice.handlers.resync import Resync, _state
from sluice.kube.mirror import Mirror
from sluice.kube.queue import Key, Lane, WorkQueue
from sluice.kube.settings import OperatorSettings
from sluice.metrics import Metrics

if TYPE_CHECKING:
    from sluice.kube.client import Api

KEY = Key("StreamCopy", "team", "orders")
NO_API = cast("Api", None)
"""Nothing here calls it."""


class Bench:
    """An operator's health, and the parts that it is told by."""

    def __init__(self) -> None:
        self.now = 0.0
        settings = OperatorSettings(image="i")
        metrics = Metrics()
        self.queue = WorkQueue(lambda: self.now)
        self.resync = Resync(
            NO_API,
            queue=self.queue,
            mirror=Mirror(),
            metrics=metrics,
            namespaces=[],
            seconds=settings.resync_seconds,
        )
        self.health = Health(self.queue, self.resync, metrics, settings)


def test_an_operator_that_has_just_begun_is_well() -> None:
    """Nothing waits, and nothing is late."""
    bench = Bench()
    assert bench.health.problems() == []
    assert bench.resync.synced is False


def test_a_watch_that_misses_changes_is_a_problem() -> None:
    """Each one by its kind."""
    bench = Bench()
    bench.resync.behind |= {"StreamStore", "Pod"}
    assert bench.health.problems() == [
        "the watch of Pod misses changes",
        "the watch of StreamStore misses changes",
    ]


def test_a_queue_that_stands_still_is_a_problem() -> None:
    """A resource that no worker takes for minutes, whichever lane it is in."""
    bench = Bench()
    bench.queue.add(KEY, lane=Lane.DELETION)
    bench.now = MOST_WAIT
    assert bench.health.problems() == []
    bench.now += 1
    assert bench.health.problems() == ["a resource has waited 301 s for a worker"]


def test_a_resource_that_is_put_off_does_not_wait() -> None:
    """A key that is due in an hour is not late before that."""
    bench = Bench()
    bench.queue.add(KEY, delay=3600)
    bench.now = 3600
    assert bench.health.problems() == []


def test_a_worker_that_hangs_is_a_problem() -> None:
    """Each call has a deadline, so no look takes minutes."""
    bench = Bench()
    bench.queue._working[KEY] = 0.0
    bench.now = MOST_WAIT + 1
    assert bench.health.problems() == ["a resource has been worked on for 301 s"]


def test_a_resync_that_ended_is_a_problem() -> None:
    """Everything is looked at now and then, whatever the watches say."""
    bench = Bench()
    bench.resync.last = time.monotonic() - 1000
    assert bench.health.problems() == ["everything was last looked at 1000 s ago"]


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
    """Each in one state."""
    conditions = [{"type": kind, "status": status} for kind, status in said.items()]
    assert _state({"status": {"conditions": conditions}}) == state
    assert _state({}) == "Active"
