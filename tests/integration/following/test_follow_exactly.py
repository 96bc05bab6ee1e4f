"""Exact following of 10,000 events a second by the Java client, for minutes and an hour.

No event may be lost, repeated or reordered.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from localstore import Cluster, ForeignClient, Standalone
from support.following.followed_exactly import Exactly, Place
from support.search import FAR, searches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.following.followers import Pair

RATE: Final = 10_000
KILLS: Final = 20
SHORT: Final = FAR == 1
"""Whether to follow for one minute in place of five, with fewer kills."""

HOUR: Final = 3600.0
MINUTE: Final = 60.0
GROWTH: Final = 16 << 20
"""Bytes by which the memory of a follower may differ between its first minutes and its last."""
JOURNAL: Final = 5 << 20
"""Bytes of a journal at most: it is replaced by one record once it has 4 MiB."""


@pytest.fixture
def streams(scope: str) -> Pair:
    """Return the names of a source and of its target."""
    return (scope, "source"), (scope, "target")


@searches
@pytest.mark.timeout(1800)
def test_nothing_is_lost_twice_or_reordered_while_followers_are_killed(
    standalone: Standalone,
    foreign: ForeignClient,
    streams: Pair,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """Nothing is lost, repeated or reordered over many kills, splits and merges."""
    place = Place(standalone, foreign, tmp_path, say)
    with Exactly(place, streams, rate=RATE, seed=23) as run:
        run.disturb(seconds=MINUTE if SHORT else 5 * MINUTE, kills=6 if SHORT else KILLS)
        run.end()


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Cluster]:
    """Yield a store with room for the events of an hour."""
    with Cluster(tmp_path / "store") as servers:
        yield servers


@pytest.mark.soak
@pytest.mark.timeout(2 * HOUR)
def test_an_hour_is_followed_exactly_in_the_memory_of_a_minute(
    large: Cluster, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """After the kills, a follower runs for an hour with constant memory and a short journal."""
    streams = (("soak", "source"), ("soak", "target"))
    with ForeignClient(large.controller_uri, lasting=True) as foreign:
        place = Place(large, foreign, tmp_path, say)
        with Exactly(place, streams, rate=RATE, seed=29) as run:
            until = time.monotonic() + HOUR
            run.disturb(seconds=HOUR / 6, kills=KILLS)
            run.wait_moving()
            seen = []
            while time.monotonic() < until:
                time.sleep(MINUTE)
                seen.append((run.followers.memory, run.journal()))
                memory, journal = seen[-1]
                say(f"  {memory >> 20} MiB of memory, {journal >> 10} KiB of journal")
                if len(seen) % 5 == 0:
                    run.scale()
                    run.wait_moving()
            run.end(patience=1200)
    first, last = seen[: len(seen) // 4], seen[-len(seen) // 4 :]
    assert max(last)[0] - max(first)[0] < GROWTH
    assert max(journal for _, journal in seen) < JOURNAL
