"""Merges of segments in a segment store, with conditions and repetitions."""

import os
from contextlib import suppress
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from sluice.core.values.model import SegmentInfo, StreamName
from sluice.errors import ConditionFailed, NoSuchSegment, SegmentSealed
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.writing import CompareAndSet
from support.store.blocks import content, write


def test_a_merge_moves_all_bytes_and_sets_the_attribute(
    store: PravegaStore, segment: str, staging: str
) -> None:
    """The source's bytes stand at the target's end, and the source is gone."""
    attribute = uuid4()
    write(store, segment, b"old")
    write(store, staging, b"new")
    store.seal(staging)
    store.merge(segment, staging, CompareAndSet(attribute, None, 6))
    assert content(store, segment, 0, 6) == b"oldnew"
    assert store.attributes([(segment, attribute)]) == [6]
    assert store.infos([staging]) == [None]


def test_a_merge_with_another_value_changes_nothing_but_seals_the_source(
    store: PravegaStore, segment: str, staging: str
) -> None:
    """A failed condition leaves the target unchanged. The store seals the source all the same."""
    attribute = uuid4()
    write(store, staging, b"new")
    with pytest.raises(ConditionFailed, match=str(attribute)):
        store.merge(segment, staging, CompareAndSet(attribute, 5, 6))
    assert store.attributes([(segment, attribute)]) == [None]
    assert store.infos([segment, staging]) == [
        SegmentInfo(start=0, length=0, sealed=False),
        SegmentInfo(start=0, length=3, sealed=True),
    ]


def test_a_repeated_merge_changes_nothing(store: PravegaStore, segment: str, staging: str) -> None:
    """A repetition succeeds or finds no source. The target has the bytes once."""
    condition = CompareAndSet(uuid4(), None, 1)
    write(store, staging, b"new")
    store.merge(segment, staging, condition)
    for _ in range(3):
        with suppress(NoSuchSegment):
            store.merge(segment, staging, condition)
    assert content(store, segment, 0, 3) == b"new"
    assert store.infos([segment]) == [SegmentInfo(start=0, length=3, sealed=False)]


def test_a_merged_segment_is_safe_from_being_deleted(
    store: PravegaStore, stream: StreamName
) -> None:
    """Sluice's deletion of a merged source does nothing. The store would lose the merged bytes."""
    target = store.staging_name(stream, 0, uuid4().hex)
    store.create(target)
    data = b""
    for number in range(30):
        source = store.staging_name(stream, 0, uuid4().hex)
        store.create(source)
        block = os.urandom(1000)
        write(store, source, block)
        store.merge(target, source, CompareAndSet(UUID(int=1), number or None, number + 1))
        assert not store.delete(source)
        data += block
        assert content(store, target, 0, len(data)) == data


def test_a_second_source_with_the_same_condition_is_refused(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """Of two merges that expect the same value, only one succeeds."""
    condition = CompareAndSet(uuid4(), None, 1)
    first, second = (store.staging_name(stream, 0, uuid4().hex) for _ in range(2))
    for staging in (first, second):
        store.create(staging)
        write(store, staging, b"new")
    store.merge(segment, first, condition)
    with pytest.raises(ConditionFailed):
        store.merge(segment, second, condition)
    assert content(store, segment, 0, 3) == b"new"


def test_a_merge_adds_the_events_it_is_told(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """The store adds up event counts only if the merge tells the number of events."""
    attribute = uuid4()
    for number, (events, total) in enumerate([(0, None), (7, 7), (5, 12)]):
        staging = store.staging_name(stream, 0, uuid4().hex)
        store.create(staging)
        write(store, staging, b"a", b"b", b"c")
        condition = CompareAndSet(attribute, number or None, number + 1)
        store.merge(segment, staging, condition, events=events)
        assert store.attributes([(segment, store.event_count)]) == [total]


def test_a_merge_into_a_sealed_segment_is_refused(
    store: PravegaStore, segment: str, staging: str, stream: StreamName
) -> None:
    """The target of a merge must be open."""
    store.seal_stream(stream)
    with pytest.raises(SegmentSealed, match=segment):
        store.merge(segment, staging, CompareAndSet(uuid4(), None, 1))


def test_parts_merge_into_one_segment_of_our_own(store: PravegaStore, stream: StreamName) -> None:
    """Staging segments merge into another one at any cut of the bytes, also empty ones."""
    data = os.urandom(100_000)
    whole = store.staging_name(stream, 0, uuid4().hex)
    store.create(whole)
    cuts = [0, 1, 33_333, 33_333, 99_999, 100_000]
    for number, (start, end) in enumerate(pairwise(cuts)):
        part = store.staging_name(stream, 0, uuid4().hex)
        store.create(part)
        if start < end:
            write(store, part, data[start:end])
        store.merge(whole, part, CompareAndSet(UUID(int=1), number or None, number + 1))
    assert content(store, whole, 0, len(data)) == data
