"""Following on a store of several processes, whose segment store is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from support.following.followed_exactly import Exactly, Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import Cluster, ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(900)]

RATE: Final = 2_000
KILLS: Final = 2


def test_a_segment_store_that_is_killed_twice_loses_nothing(
    cluster: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """One follower and the writer survive two kills of the segment store, and nothing is lost.

    The source is split and merged. The follower's connections break during reads and appends, and
    it does not know which of them succeeded. Readers of the Java client may end; others then read
    the whole target.
    """
    place = Place(cluster, foreign_for(cluster.controller_uri), tmp_path, say)
    streams = (("outlived", "source"), ("outlived", "target"))
    with Exactly(place, streams, rate=RATE, seed=31) as run:
        for _ in range(KILLS):
            run.wait_moving()
            cluster.kill("segmentstore")
            cluster.restart("segmentstore")
            run.wait_moving()
            run.scale()
        run.wait_moving()
        run.read_anew()
        run.end()
