"""A copy far behind its source catches up by Spark on a real store, and is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from segment_hash import Connection
from sluice.core.values import identity
from sluice.stores.pravega import names
from support.command.follow_command import FollowingCopy, Process
from support.command.sluice_command import workers_of
from support.store.inline import job_of, leftovers
from support.until import until
from support.witness.foreign_witness import assert_equal

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

EVENTS: Final = 400_000
SIZE: Final = 240
"""The events of a backlog, and the bytes of each: 99 MB."""

BACKLOG: Final = {
    "SLUICE_FAR_BYTES": str(32 << 20),
    "SLUICE_SPARK_BYTES": str(8 << 20),
    "SLUICE_PART_BYTES": str(16 << 20),
}


@pytest.fixture
def copy(
    tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient
) -> FollowingCopy:
    """Return a copy whose follower was killed. Its source then got a large backlog."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=200, keys=8)
    made = FollowingCopy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    made.log_level = "debug"
    made.environment = BACKLOG
    with made.following():
        pass
    foreign.write(*made.source, events=EVENTS, size=SIZE, keys=64, first=200)
    return made


def left_of_catch_ups(copy: FollowingCopy, server: Standalone) -> list[str]:
    """Return the segments that catch-ups have made and not deleted."""
    request = job_of(copy).request
    found = []
    for number in range(4):
        one = identity.catch_up_id(request.copy_id, number)
        wanted = [names.staging_name(request.target, 0, identity.journal_key(one))]
        wanted += [
            names.staging_name(request.target, place, identity.staging_key(one, index, part))
            for place in range(2)
            for index in range(2)
            for part in range(8)
        ]
        with Connection(*server.segment_store) as connection:
            found += [name for name in wanted if connection.info(name) is not None]
    return found


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("Publish", marks=pytest.mark.exhaustive),
        pytest.param("Stitch", marks=pytest.mark.exhaustive),
        pytest.param("EndCatchUp", marks=pytest.mark.exhaustive),
    ],
)
def test_a_backlog_is_staged_by_spark_and_followed_then(
    copy: FollowingCopy, standalone: Standalone, foreign: ForeignClient, step: str
) -> None:
    """After a driver is killed before a step, the next one goes on. Each event is there once."""
    process = copy.start("run")
    first = Process(process)
    try:
        first.wait_for(f"step={step}")
        assert workers_of(first.pid)
    finally:
        process.kill()
        first.ended()
    assert "is far ahead: what is missing is staged and verified" in first.said
    assert "step=Transfer" in first.said
    with copy.following("-o", "json") as second:
        until("the target has all", lambda: foreign.visible(*copy.target).events == EVENTS + 200)
        foreign.write(*copy.source, events=100, keys=8, first=EVENTS + 200)
        until("what comes then", lambda: foreign.visible(*copy.target).events == EVENTS + 300)
        copy.ends = {"cutover": "SealAndDrain"}
        ended = copy.run("run", "-o", "json")
        assert second.ended().code == 0
    assert ended.code == 0, ended.err
    foreign.seal(*copy.target)
    reports = assert_equal(standalone.segment_store, foreign, copy.source, copy.target)
    assert sum(report["events"] for report in reports) == EVENTS + 300
    assert leftovers(copy, standalone) == leftovers(copy, standalone, [0, 1])
    assert left_of_catch_ups(copy, standalone) == []
