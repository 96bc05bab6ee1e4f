"""Copies that follow events of any kind by the Java client, on a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from integration.following.test_follow import (
    contents,
    followers,
    length,
    named,
    streams,
    wait_for,
)
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega import names
from support.engine.plans import COPY
from support.following.follower import follow
from support.following.followers import Followers
from support.search import FAR
from support.store.inline import SETTINGS
from support.until import until
from support.witness.foreign_witness import assert_equal, assert_readable, hashes, left_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.following.followers import Pair

__all__ = ["followers", "streams"]

KEYS: Final = 16
"""Routing keys; the events that are there at first have twice as many."""
MIB: Final = 1 << 20
MEMORY: Final = 128 * MIB
"""Bytes that a follower's pod asks for."""

LARGE: Final = (100 if FAR > 1 else 24) * MIB


def assert_followed(
    server: Standalone, foreign: ForeignClient, followers: Followers, streams: Pair
) -> None:
    """Seal the source. Check that the target is equal and readable, and that nothing is left."""
    source, target = streams
    assert foreign.seal(*source)
    assert followers.result() == 0, followers.said()
    assert followers.said().splitlines()[-1] == Outcome.COPIED.value
    expected = foreign.read(*source)
    assert expected.clean, expected
    reports = assert_equal(server.segment_store, foreign, source, target)
    assert_readable(foreign, target, events=expected.events, digest=expected.digest)
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=server.controller_uri)]
        asked = [
            (store.segment_name(named(target), one["id"]), store.event_count) for one in reports
        ]
        assert store.attributes(asked) == [one["events"] for one in reports]
    assert staged(server, foreign, target) == []


def staged(server: Standalone, foreign: ForeignClient, target: tuple[str, str]) -> list[str]:
    """Return the journals, and the staging segments of events at the end of the target."""
    keys = [identity.journal_key(COPY, number) for number in range(16)]
    return left_of(
        server.segment_store,
        [
            names.staging_name(named(target), one.id, key)
            for one in foreign.info(*target).segments
            for key in (*keys, identity.event_key(COPY, one.end))
        ],
    )


@pytest.mark.exhaustive
def test_events_longer_than_an_append_are_followed_in_bounded_memory(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
    say: Callable[[str], None],
) -> None:
    """Long events are readable once and whole, though a follower is killed in their midst."""
    source, target = streams
    followers.start()
    wait_for(foreign, target, length(foreign, source))
    foreign.write(*source, events=2, size=LARGE, keys=2, seed=3)
    foreign.write(*source, events=100, keys=KEYS, seed=4)
    large = [one.end for one in foreign.info(*source).segments]
    until("an event is staged", lambda: len(staged(standalone, foreign, target)) > 1)
    followers.kill()
    before = contents(standalone, target)
    assert sum(map(len, before.values())) < sum(large)
    followers.start()
    wait_for(foreign, target, sum(large))
    foreign.write(*source, events=4, size=9 * MIB, keys=2, first=2, seed=3)
    wait_for(foreign, target, length(foreign, source))
    used = followers.peak
    say(f"  the follower had {used / MIB:.0f} MiB at most; an event has {LARGE / MIB:.0f} MiB")
    assert used < MEMORY
    assert_followed(standalone, foreign, followers, streams)


@pytest.mark.exhaustive
@pytest.mark.parametrize("transactions", [40, 1])
def test_transactions_are_followed(
    transactions: int,
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
    say: Callable[[str], None],
) -> None:
    """Many small transactions beside single events, and a large one, are followed."""
    source, target = streams
    followers.start()
    wait_for(foreign, target, length(foreign, source))
    size, events = (100, 4000) if transactions > 1 else (50_000, 2000 * min(FAR, 4))
    stop = foreign.start_writer(*source, rate=200, keys=2 * KEYS, first=2000)
    foreign.write(*source, events=events, size=size, keys=KEYS, seed=5, transactions=transactions)
    stop()
    wait_for(foreign, target, length(foreign, source))
    used = followers.peak
    say(f"  {transactions} transactions of {events * size / MIB:.0f} MiB: {used / MIB:.0f} MiB")
    assert used < MEMORY
    assert_followed(standalone, foreign, followers, streams)


@pytest.mark.exhaustive
def test_plain_bytes_are_followed(
    scope: str, standalone: Standalone, foreign: ForeignClient, tmp_path: Path
) -> None:
    """A byte stream of the Java client is followed: its reader finds the same bytes."""
    source, target = (scope, "bytes"), (scope, "target")
    foreign.create(*source, segments=1)
    foreign.write_bytes(*source, 3_000_001)
    with (
        (tmp_path / "followers.txt").open("a+") as file,
        Followers(standalone.controller_uri, (source, target), file) as followers,
    ):
        followers.start()
        wait_for(foreign, target, 3_000_001)
        foreign.write_bytes(*source, 2_000_003, seed=7)
        wait_for(foreign, target, 5_000_004)
    foreign.write_bytes(*source, 9, seed=8)
    assert foreign.seal(*source)
    report = follow(standalone.controller_uri, named(source), named(target))
    assert report is not None
    assert report.outcome is Outcome.COPIED, report.error
    assert [one.plain for one in report.segments] == [True]
    kept = ("id", "length", "sha256")
    ours, theirs = (hashes(standalone.segment_store, foreign, one) for one in (target, source))
    assert [[one[k] for k in kept] for one in ours] == [[one[k] for k in kept] for one in theirs]
    assert foreign.seal(*target)
    assert foreign.read_bytes(*target) == (5_000_013, theirs[0]["sha256"])


@pytest.mark.exhaustive
def test_a_source_that_turns_to_plain_bytes_is_named(
    streams: Pair, standalone: Standalone, foreign: ForeignClient, followers: Followers
) -> None:
    """If a source turns to plain bytes, the follower ends and names segment and offset."""
    source, target = streams
    followers.start()
    before = contents(standalone, source)
    wait_for(foreign, target, sum(map(len, before.values())))
    foreign.write(*source, events=10, keys=KEYS, first=2000, segments=[0])
    end = {one.id: one.end for one in foreign.info(*source).segments}[0]
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=standalone.controller_uri)]
        text = b"text without events"
        assert store.append_at(store.segment_name(named(source), 0), end, text)
    assert followers.result() == 1
    last = followers.said().splitlines()[-1]
    assert last.startswith(f"EventsDamaged: no event begins at offset {end} of "), last
    assert len(contents(standalone, target)[0]) == end
