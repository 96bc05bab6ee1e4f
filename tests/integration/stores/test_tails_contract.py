"""Segments that are followed while other clients append, seal, truncate and delete them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.model import KeyRange, Scaling, SegmentInfo, StreamConfig, StreamName
from sluice.errors import NoSuchSegment, SegmentTruncated, StoreRejected
from sluice.stores.pravega.segments import tail_links
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.tails import Arrived, Broken, Ended
from sluice.stores.writing import CompareAndSet
from support.search import FAR, searches
from support.store.blocks import MIB, content, write
from support.store.following import Heard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import ForeignClient, Standalone
    from sluice.stores.pravega.segments.tails import SegmentTails

MOST = 8 * MIB
MANY = 100 if FAR == 1 else 500


@pytest.fixture
def tails(store: PravegaStore) -> Iterator[SegmentTails]:
    """Yield a connection for following."""
    with store.tails(most=MOST) as tails:
        yield tails


def test_what_foreign_writers_append_comes_in_order(
    store: PravegaStore, stream: StreamName, foreign: ForeignClient, tails: SegmentTails
) -> None:
    """Foreign writers' bytes arrive in order, from before their first to the seal."""
    names = [store.segment_name(stream, number) for number in range(2)]
    heard = Heard(tails, dict.fromkeys(names, 0))
    stop = foreign.start_writer(stream.scope, stream.stream, rate=5_000, keys=50)
    heard.until(lambda: heard.bytes > 2 * MIB)
    written = stop()
    assert written.failed == 0
    store.seal_stream(stream)
    heard.until_all_ended()
    assert heard.broken == []
    for name in names:
        assert heard.data[name] == content(store, name, 0, heard.ended[name])
    assert store.infos(names) == [
        SegmentInfo(start=0, length=heard.ended[name], sealed=True) for name in names
    ]


def test_a_segment_that_is_behind_is_read_up_to_its_tail(
    store: PravegaStore, staging: str, tails: SegmentTails
) -> None:
    """A segment that is behind is read in the store's largest blocks, then as bytes come."""
    data = os.urandom(9 * MIB + 13)
    write(store, staging, data)
    heard = Heard(tails, {staging: 7})
    heard.until(lambda: heard.bytes == len(data) - 7)
    assert store.append_at(staging, len(data), b"more")
    heard.until(lambda: heard.bytes == len(data) - 3)
    assert heard.data[staging] == (data + b"more")[7:]


def test_a_segment_that_is_sealed_ends_behind_its_last_byte(
    store: PravegaStore, staging: str, tails: SegmentTails
) -> None:
    """A segment ends after its last byte, whenever it is sealed."""
    write(store, staging, b"abc")
    heard = Heard(tails, {staging: 0})
    heard.until(lambda: heard.bytes == 3)
    assert tails.take(0.5) == []
    store.seal(staging)
    heard.until_all_ended()
    assert heard.ended == {staging: 3}
    tails.watch(staging, 1)
    assert tails.take(5) == [Arrived(staging, 1, b"bc"), Ended(staging, 3)]
    tails.watch(staging, 3)
    assert tails.take(5) == [Ended(staging, 3)]


def test_segments_that_are_scaled_end(
    store: PravegaStore, name: StreamName, tails: SegmentTails
) -> None:
    """Scaled segments end. The stream's other segments and the successors go on."""
    store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=2)))
    before = [store.segment_name(name, number) for number in range(2)]
    write(store, before[0], b"abc")
    heard = Heard(tails, dict.fromkeys(before, 0))
    heard.until(lambda: heard.bytes == 3)
    halves = [KeyRange(low=0, high=0.25), KeyRange(low=0.25, high=0.5)]
    store.scale(name, [0], halves)
    heard.until(lambda: bool(heard.ended))
    assert heard.ended == {before[0]: 3}
    found = store.describe(name)
    assert found is not None
    after = [store.segment_name(name, segment.id) for segment in found.tail]
    for one in after:
        if one not in before:
            heard.watch(one, 0)
        write(store, one, b"xyz")
    heard.until(lambda: heard.bytes == 3 + 3 * len(after))
    assert [bytes(heard.data[one]) for one in after] == [b"xyz"] * 3
    assert (list(heard.ended), heard.broken) == ([before[0]], [])


def test_what_is_merged_into_a_segment_comes_too(
    store: PravegaStore, segment: str, staging: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged bytes arrive, as for a committed transaction. The merged segment ends or is gone.

    The store may hang up on a read of the merged segment, and so on all reads. The others go on.
    """
    monkeypatch.setattr(tail_links, "_CALM", 0.0)
    write(store, segment, b"old")
    write(store, staging, b"new")
    with store.tails(most=MOST) as tails:
        heard = Heard(tails, {segment: 0, staging: 3})
        heard.until(lambda: heard.bytes == 3)
        assert tails.take(0.5) == []
        store.merge(segment, staging, CompareAndSet(uuid4(), None, 1))
        heard.until(lambda: heard.bytes == 6 and bool(heard.ended or heard.broken))
    assert heard.data[segment] == b"oldnew"
    assert heard.ended in ({}, {staging: 3})
    assert [(name, type(error)) for name, error in heard.broken] in (
        [],
        [(staging, NoSuchSegment)],
    )


def test_bytes_that_were_truncated_are_an_error_with_the_first_offset_left(
    store: PravegaStore, stream: StreamName, segment: str, tails: SegmentTails
) -> None:
    """A truncation before or during the watch is an error with the first remaining offset."""
    write(store, segment, bytes(3 * MIB))
    store.truncate_stream(stream, {0: 4, 1: 0})
    tails.watch(segment, 0)
    (broken,) = tails.take(5)
    assert isinstance(broken, Broken)
    assert isinstance(broken.error, SegmentTruncated)
    assert broken.error.start_offset == 4
    tails.watch(segment, 4)
    (block,) = tails.take(5)
    assert isinstance(block, Arrived)
    store.truncate_stream(stream, {0: 3 * MIB - 1, 1: 0})
    heard = [block]
    while isinstance(heard[-1], Arrived):
        heard += tails.take(5)
    assert isinstance(heard[-1], Broken)
    assert isinstance(heard[-1].error, SegmentTruncated)
    assert heard[-1].error.start_offset == 3 * MIB - 1
    tails.watch(segment, 3 * MIB - 1)
    assert tails.take(5) == [Arrived(segment, 3 * MIB - 1, b"\0")]


def test_a_reader_at_the_tail_does_not_mind_truncation(
    store: PravegaStore, stream: StreamName, segment: str, tails: SegmentTails
) -> None:
    """A truncation up to the reader's position at the tail does not affect it."""
    write(store, segment, b"abc")
    heard = Heard(tails, {segment: 0})
    heard.until(lambda: heard.bytes == 3)
    store.truncate_stream(stream, {0: 3, 1: 0})
    assert tails.take(0.5) == []
    assert store.append_at(segment, 3, b"def")
    heard.until(lambda: heard.bytes == 6)
    assert heard.data[segment] == b"abcdef"


def test_a_segment_that_is_deleted_does_not_stop_others(
    store: PravegaStore, stream: StreamName, staging: str, tails: SegmentTails
) -> None:
    """A deleted segment ends with an error, and the others go on."""
    other = store.segment_name(stream, 1)
    heard = Heard(tails, {staging: 0, other: 0})
    write(store, staging, b"abc")
    write(store, other, b"abc")
    heard.until(lambda: heard.bytes == 6)
    assert tails.take(0.5) == []
    store.delete(staging)
    heard.until(lambda: bool(heard.broken))
    assert store.append_at(other, 3, b"def")
    heard.until(lambda: heard.bytes == 9)
    assert [(name, type(error)) for name, error in heard.broken] == [(staging, NoSuchSegment)]
    tails.watch(staging, 3)
    (event,) = tails.take(5)
    assert isinstance(event, Broken)
    assert isinstance(event.error, NoSuchSegment)


def test_an_offset_behind_the_end_stops_nobody_else(
    store: PravegaStore, segment: str, staging: str, tails: SegmentTails
) -> None:
    """An offset after the end stops only its segment, though the store would hang up on all."""
    tails.watch(segment, 0)
    tails.watch(staging, 5)
    missing = staging[:-32] + uuid4().hex
    tails.watch(missing, 0)
    came = {event.segment: event for _ in range(2) for event in tails.take(1)}
    assert set(came) == {staging, missing}
    errors = [event.error for event in came.values() if isinstance(event, Broken)]
    assert {type(error) for error in errors} == {StoreRejected, NoSuchSegment}
    write(store, segment, b"abc")
    assert tails.take(5) == [Arrived(segment, 0, b"abc")]


def test_a_segment_to_which_nothing_comes_costs_nothing_and_stays(
    standalone: Standalone, segment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store returns KeepAlives many times. Then it still answers the first read."""
    monkeypatch.setattr(tail_links, "_KEEP_ALIVE", 0.2)
    timeouts = StoreTimeouts(connect=10, call=20, stall=3)
    store = PravegaStore(standalone.controller_uri, credentials=None, timeouts=timeouts)
    with store.tails(most=MOST) as tails:
        tails.watch(segment, 0)
        assert tails.take(4) == []
        (link,) = tails._links
        assert link.connection.requests == 2
        assert link.pinged > link.made + 3
        write(store, segment, b"abc")
        assert tails.take(5) == [Arrived(segment, 0, b"abc")]
    store.close()


@searches
def test_many_segments_are_followed_over_one_connection(
    store: PravegaStore, stream: StreamName, tails: SegmentTails
) -> None:
    """Many segments share one connection, and each gets its own bytes."""
    names = [store.staging_name(stream, number % 2, uuid4().hex) for number in range(MANY)]
    for name in names:
        assert store.create(name)
    heard = Heard(tails, dict.fromkeys(names, 0))
    heard.until(lambda: not tails._queued)
    for place, name in enumerate(names):
        assert store.append_at(name, 0, f"first {place} ".encode())
    heard.until(lambda: len(heard.data) == len(names))
    for place, name in enumerate(reversed(names)):
        assert store.append_at(name, len(heard.data[name]), f"second {place}".encode())
        store.seal(name)
    heard.until_all_ended()
    assert heard.broken == []
    assert len(list(tails._links)) <= 1
    last = len(names) - 1
    for place, name in enumerate(names):
        assert heard.data[name] == f"first {place} second {last - place}".encode()
        assert heard.ended[name] == len(heard.data[name])
