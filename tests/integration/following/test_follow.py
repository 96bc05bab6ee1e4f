"""Copies that follow sources while the Java client writes to them, on a real store."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from localstore import ForeignClientError
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.copy.report import Outcome
from sluice.pipelines.programs.stores import Stores
from sluice.stores.reading import joined
from support.following.follower import follow
from support.following.followers import Followers
from support.store.inline import SETTINGS
from support.until import until
from support.witness.foreign_witness import assert_equal, assert_readable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.following.followers import Pair

KEYS = 32
SIZE = 108
"""Bytes of an event with its header."""


def named(stream: tuple[str, str]) -> StreamName:
    """Return a stream's name."""
    return StreamName(scope=stream[0], stream=stream[1])


@pytest.fixture
def streams(foreign: ForeignClient, scope: str) -> Pair:
    """Return a source of two segments with events, and a target that does not exist yet."""
    source = (scope, "source")
    foreign.create(*source, segments=2)
    foreign.write(*source, events=2000, keys=KEYS)
    return source, (scope, "target")


@pytest.fixture
def followers(streams: Pair, standalone: Standalone, tmp_path: Path) -> Iterator[Followers]:
    """Yield followers of the source. No follower outlives the test."""
    with (
        (tmp_path / "followers.txt").open("a+") as file,
        Followers(standalone.controller_uri, streams, file) as made,
    ):
        yield made


@pytest.mark.exhaustive
def test_a_sealed_source_is_copied_and_no_more(
    streams: Pair, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A source that is sealed before the copy ends the copy. A further run finds it whole."""
    source, target = streams
    assert foreign.seal(*source)
    report = follow(standalone.controller_uri, named(source), named(target))
    assert report is not None
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == 2000
    assert_equal(standalone.segment_store, foreign, source, target)
    assert follow(standalone.controller_uri, named(source), named(target)) is None


@pytest.mark.exhaustive
def test_large_events_are_followed(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """Events of 3 MB come whole. A reader of the target never waits for the rest of an event."""
    source, target = streams
    followers.start()
    foreign.write(*source, events=8, size=3_000_000, keys=KEYS, first=2000)
    assert foreign.seal(*source)
    assert followers.result() == 0, followers.said()
    expected = foreign.read(*source)
    assert_equal(standalone.segment_store, foreign, source, target)
    assert_readable(foreign, target, events=expected.events, digest=expected.digest)


@pytest.mark.exhaustive
def test_lost_bytes_are_left_out_and_all_else_is_followed(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """After a truncation without a follower, the next follower goes on behind the lost bytes."""
    source, target = streams
    before = contents(standalone, source)
    followers.start("--record")
    wait_for(foreign, target, sum(map(len, before.values())))
    followers.kill()
    foreign.write(*source, events=1000, keys=KEYS, first=2000)
    whole = contents(standalone, source)
    begins = {segment: len(data) + 5 * SIZE for segment, data in before.items()}
    assert foreign.truncate(*source, offsets=begins)
    assert foreign.seal(*source)
    report = follow(standalone.controller_uri, named(source), named(target), record=True)
    assert report is not None
    assert report.outcome is Outcome.COPIED, report.error
    assert [one.lost for one in report.segments] == [5 * SIZE] * 2
    assert contents(standalone, target) == {
        segment: before[segment] + data[begins[segment] :] for segment, data in whole.items()
    }
    assert report.events == 3000 - 10


def test_a_foreign_writer_in_the_target_is_named(
    streams: Pair,
    standalone: Standalone,
    foreign: ForeignClient,
    followers: Followers,
) -> None:
    """The follower stops at foreign bytes in the target, and names their segment and offsets."""
    source, target = streams
    followers.start()
    followed = sum(one.end for one in foreign.info(*source).segments)
    wait_for(foreign, target, followed)
    foreign.write(*target, events=1, keys=1, first=0, seed=9)
    foreign.write(*source, events=2000, keys=KEYS, first=2000)
    assert followers.result() == 1
    last = followers.said().splitlines()[-1]
    assert last.startswith("TargetReplaced: another client wrote 108 bytes into segment "), last


def contents(server: Standalone, stream: tuple[str, str]) -> dict[int, bytes]:
    """Return the bytes of a stream's segments by id, of a stream that was not truncated."""
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=server.controller_uri)]
        ids = [one.id for made in store.generations(named(stream)) for one in made]
        segments = [store.segment_name(named(stream), one) for one in ids]
        infos = store.infos(segments)
        return {
            number: joined(store.read(name, 0, info.length))
            for number, name, info in zip(ids, segments, infos, strict=True)
            if info is not None
        }


def wait_for(foreign: ForeignClient, target: tuple[str, str], count: int) -> None:
    """Wait until a target has this number of bytes. The target may not exist yet."""

    def has_all() -> bool:
        with suppress(ForeignClientError):
            return length(foreign, target) == count
        return False

    until(f"{count} bytes in the target", has_all)


def length(foreign: ForeignClient, stream: tuple[str, str]) -> int:
    """Return the number of bytes in a stream; 0 while it does not exist."""
    if stream[1] not in (foreign.streams(stream[0]) or []):
        return 0
    return sum(one.end for one in foreign.info(*stream).segments)
