"""The store dies under a copy, on the persistent cluster: the copy waits and goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.config import Settings
from sluice.engine.progress import Watch
from sluice.errors import SluiceError
from sluice.pipelines.program import Stores, jobs, plan_job
from support import witness
from support.command import Copy, finish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import Cluster, ForeignClient
    from localstore.cluster_config import Name
    from sluice.core.progress import Progress

pytestmark = [pytest.mark.crash, pytest.mark.cluster, pytest.mark.timeout(400)]

EVENTS = 400_000
SOURCE = ("in", "restart")
SETTINGS = Settings()


@pytest.fixture(scope="module")
def foreign(cluster: Cluster, foreign_for: Callable[..., ForeignClient]) -> ForeignClient:
    """The official client, with the source written."""
    client = foreign_for(cluster.controller_uri)
    client.create(*SOURCE, segments=4)
    client.create_scope("out")
    client.write(*SOURCE, events=EVENTS, keys=100)
    return client


@pytest.mark.parametrize("victim", ["segmentstore", "controller", "bookie"])
def test_a_copy_survives_the_death_of_a_server(
    victim: Name,
    cluster: Cluster,
    foreign: ForeignClient,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """After SIGKILL and restart of a server midway the same run goes on and copies exactly."""
    before = foreign.read(*SOURCE)
    target = ("out", f"restart-{victim}")
    copy = Copy(
        tmp_path,
        cluster.controller_uri,
        SOURCE,
        target,
        limits={"bytesPerSecond": "6Mi"},
        environment={"SLUICE_PART_BYTES": str(8 << 20)},
    )
    with copy.running("run", "-o", "json") as driver:
        progress = staged_at_least(copy, 0.15)
        share = progress.bytes / progress.total
        cluster.kill(victim)
        say(f"{victim} killed: {progress.bytes:,} of {progress.total:,} bytes ({share:.0%})")
        assert 0.1 < share < 0.9
        assert driver.poll() is None
        cluster.restart(victim)
        cluster.wait_ready()
        finished = finish(driver, 200)
    assert finished.code == 0, finished.err
    assert finished.json[0]["events"] == EVENTS
    witness.assert_equal(cluster.segment_store, foreign, SOURCE, target)
    witness.assert_readable(foreign, target, events=EVENTS, digest=before.digest)
    again = copy.run("run", "-o", "json")
    assert (again.code, again.json[0]["outcome"]) == (0, "AlreadyComplete")


def staged_at_least(copy: Copy, share: float, *, seconds: float = 90) -> Progress:
    """Wait until a share of the bytes is staged, as the target store says."""
    (job,) = jobs(load(copy.file.read_text()), SETTINGS)
    deadline = time.monotonic() + seconds
    with Stores(SETTINGS) as stores:
        while time.monotonic() < deadline:
            try:
                planned = plan_job(job, stores)
                if planned.plan is not None and planned.recorded:
                    progress = Watch(planned.plan, stores[job.target]).measure()
                    if progress.bytes >= share * progress.total:
                        return progress
            except SluiceError:
                continue  # a server is busy: the deadline decides
    raise AssertionError(f"less than {share:.0%} was staged in {seconds} s")
