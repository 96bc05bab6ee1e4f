"""Restore drills, runs, users and crashes in any order: the whole operator, on stores in memory."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from sluice.core.reconcile.shared.jobs import job_name
from sluice.kube.api.kinds import JOB, STREAM_ARCHIVE
from support.kube.drill_bench import SCRATCH, SPARE, DrillBench
from support.reconcile.copies import UID
from support.search import searches, seeds

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Walk:
    """Operators, drivers, users and crashes in any order.

    Args:
        bench: an archive at rest.
        chance: chooses what happens next.
    """

    def __init__(self, bench: DrillBench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance

    def go(self, steps: int) -> None:
        """Let so many things happen."""
        for number in range(steps):
            move = self.chance.choice(
                [
                    self.bench.step,
                    self.bench.step,
                    self.bench.copy_step,
                    self.bench.copy_step,
                    self.bench.due,
                    self.half_a_step,
                    self.kill_drivers,
                    self.restore,
                    self.archive,
                    self.bench.begin,
                    self.turn,
                    lambda: self.bench.ask(f"run {number}"),  # noqa: B023 - called at once
                    lambda: self.bench.ask_drill(f"drill {number}"),  # noqa: B023 - as above
                ]
            )
            move()
            self.check()

    def half_a_step(self) -> None:
        """An operator writes the status, does some of its actions, and is killed."""
        situation = self.bench.look()
        decision = self.bench.workings.decide(situation)
        self.bench.body["status"] = decision.status.dump()
        for action in decision.actions[: self.chance.randrange(len(decision.actions) + 1)]:
            self.bench.act(situation, action)
        self.bench.begin()

    def turn(self) -> None:
        """The scratch stream's store goes away, or comes back."""
        self.bench.away = not self.bench.away

    def kill_drivers(self) -> None:
        """A node with all drivers is lost, and their Jobs with it."""
        objects = self.bench.server.objects
        self.bench.server.objects = {
            key: one for key, one in objects.items() if key[0] not in {"Job", "Pod"}
        }

    def archive(self) -> None:
        """The driver of a run does its work, if there is one."""
        attempt = (self.bench.body.get("status") or {}).get("attempts", 0)
        job = self.bench.server.body(JOB, job_name(UID, attempt))
        if job is not None and "status" not in job:
            self.bench.drive(attempt)

    def restore(self) -> None:
        """The driver of the drill does its work, if there is one."""
        copy = self.bench.copy
        if copy is None or self.bench.away:
            return
        attempt = (copy.get("status") or {}).get("attempts", 0)
        name = job_name(copy["metadata"]["uid"], attempt)
        job = self.bench.server.body(JOB, name)
        if job is not None and "status" not in job:
            self.bench.restore(attempt)

    def check(self) -> None:
        """No run's driver is at work beside that of a drill; what may exist is written down."""
        jobs = [one for one in self.bench.server.all(JOB) if "status" not in one]
        kinds = {one["metadata"]["ownerReferences"][0]["kind"] for one in jobs}
        assert len(kinds) < 2, kinds
        if self.bench.scratch() or self.bench.copy is not None:
            assert self.bench.body["status"]["drill"]["scratch"]
            assert self.bench.body["metadata"]["finalizers"] != []


@searches
@pytest.mark.parametrize("seed", seeds(3))
def test_any_order_of_drills_runs_and_crashes_leaves_nothing(
    threads: ThreadPoolExecutor, seed: int
) -> None:
    """A run and a drill are never at work at once, and the scratch stream goes in the end."""
    bench = DrillBench(threads, verify=SPARE, onDelete="Delete" if seed % 2 else "Retain")
    walk = Walk(bench, random.Random(seed))  # noqa: S311 - to be repeated
    walk.go(40)
    walk.kill_drivers()
    bench.away = False
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    for _ in range(12):
        walk.kill_drivers()
        if bench.server.body(STREAM_ARCHIVE, "orders") is None:
            break
        bench.step()
        bench.copy_step()
    assert (bench.scratch(), bench.copy) == (False, None)
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []
    assert not [name for name in bench.world.segments if SCRATCH.stream in name]
