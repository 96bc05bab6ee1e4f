"""A source that is followed on a store of several processes, whose segment stores are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from localstore import Cluster
from support.engine.followed_exactly import Exactly, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localstore import ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(900)]

RATE: Final = 2_000
KILLS: Final = 2


def test_a_segment_store_that_is_killed_twice_loses_nothing(
    cluster: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """One follower and the writer live through both; the source is split and merged.

    The follower's connections break in the midst of reads and appends, and it does not know which
    of these were carried out. Readers of the Java client may end; others read all of the target.
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


@pytest.fixture
def pair() -> Iterator[Cluster]:
    """Gives a store whose containers two segment stores share."""
    with Cluster(pair=True) as servers:
        yield servers


def test_segments_that_move_to_another_segment_store_are_followed_there(
    pair: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """They move when a segment store dies, and when it comes back."""
    place = Place(pair, foreign_for(pair.controller_uri), tmp_path, say)
    streams = (("moving", "source"), ("moving", "target"))
    with Exactly(place, streams, rate=RATE, seed=37) as run:
        run.wait_moving()
        pair.kill("segmentstore")
        run.wait_moving()
        pair.restart("segmentstore")
        run.scale()
        run.wait_moving()
        pair.kill("segmentstore2")  # and the first one, which the witness asks, gets all of them
        run.wait_moving()
        run.scale()
        run.wait_moving()
        run.read_anew()
        run.end()
