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
        chance: chooses the next event.
    """

    def __init__(self, bench: DrillBench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance

    def go(self, steps: int) -> None:
        """Make `steps` random moves, and check the state after each."""
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
        """Let an operator write the status, do some of its actions, and be killed."""
        situation = self.bench.look()
        decision = self.bench.workings.decide(situation)
        self.bench.body["status"] = decision.status.dump()
        for action in decision.actions[: self.chance.randrange(len(decision.actions) + 1)]:
            self.bench.act(situation, action)
        self.bench.begin()

    def turn(self) -> None:
        """Make the scratch stream's store unreachable, or reachable again."""
        self.bench.away = not self.bench.away

    def kill_drivers(self) -> None:
        """Lose a node with all drivers, and their Jobs."""
        objects = self.bench.server.objects
        self.bench.server.objects = {
            key: one for key, one in objects.items() if key[0] not in {"Job", "Pod"}
        }

    def archive(self) -> None:
        """Run the driver of a run, if there is one."""
        attempt = (self.bench.body.get("status") or {}).get("attempts", 0)
        job = self.bench.server.body(JOB, job_name(UID, attempt))
        if job is not None and "status" not in job:
            self.bench.drive(attempt)

    def restore(self) -> None:
        """Run the driver of the drill, if there is one."""
        copy = self.bench.copy
        if copy is None or self.bench.away:
            return
        attempt = (copy.get("status") or {}).get("attempts", 0)
        name = job_name(copy["metadata"]["uid"], attempt)
        job = self.bench.server.body(JOB, name)
        if job is not None and "status" not in job:
            self.bench.restore(attempt)

    def check(self) -> None:
        """Assert that the drivers of a run and a drill never work at once.

        Assert that the status records a scratch stream or StreamCopy that exists.
        """
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
    """Run and drill are never at work at once, and the scratch stream is deleted in the end."""
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
