"""A segment store's answers about segments and attributes, with every error reply."""

from uuid import uuid4

import pytest

from sluice.core.values.model import SegmentInfo, StreamName
from sluice.errors import NoSuchSegment, SegmentSealed
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.writing import CompareAndSet
from support.store.blocks import MIB, content, write


@pytest.fixture
def missing(store: PravegaStore, stream: StreamName) -> str:
    """Return the name of a missing staging segment, whose stream exists."""
    return store.staging_name(stream, 0, uuid4().hex)


def test_many_infos_come_in_the_order_asked(
    store: PravegaStore, segment: str, staging: str, missing: str
) -> None:
    """A call may ask for more segments than a window has. A missing segment is None."""
    write(store, staging, b"abc")
    empty = SegmentInfo(start=0, length=0, sealed=False)
    three = SegmentInfo(start=0, length=3, sealed=False)
    assert store.infos([segment, staging, missing] * 300) == [empty, three, None] * 300
    assert store.infos([]) == []


def test_a_segment_of_our_own_is_made_and_deleted_once(store: PravegaStore, missing: str) -> None:
    """`create` and `delete` return whether they did anything."""
    assert store.create(missing)
    assert not store.create(missing)
    assert store.delete(missing)
    assert not store.delete(missing)
    assert store.infos([missing]) == [None]


def test_the_name_of_a_deleted_segment_is_not_given_back_at_once(
    store: PravegaStore, missing: str
) -> None:
    """After the deletion of a segment with bytes, its name cannot be used again for a while."""
    store.create(missing)
    store.append_at(missing, 0, b"bytes")
    assert store.delete(missing) is True
    assert store.create(missing) is False
    assert store.infos([missing]) == [None]


def test_a_segment_of_our_own_needs_no_stream(store: PravegaStore, name: StreamName) -> None:
    """A staging segment can be made before its stream and its epoch exist."""
    staging = store.staging_name(name, (5 << 32) + 7, uuid4().hex)
    assert store.create(staging)
    assert store.describe(name) is None
    assert store.delete(staging)


def test_a_sealed_segment_takes_no_more_bytes(store: PravegaStore, staging: str) -> None:
    """A second seal changes nothing. The store refuses appends of either kind."""
    write(store, staging, b"abc")
    store.seal(staging)
    store.seal(staging)
    assert store.infos([staging]) == [SegmentInfo(start=0, length=3, sealed=True)]
    with pytest.raises(SegmentSealed, match=staging):
        write(store, staging, *[bytes(MIB)] * 20)
    with pytest.raises(SegmentSealed, match=staging):
        store.append_at(staging, 3, b"x")
    assert content(store, staging, 0, 3) == b"abc"


def test_a_segment_sealed_during_an_append_refuses_what_follows(
    store: PravegaStore, staging: str
) -> None:
    """The appender raises SegmentSealed, although the store hangs up right after its refusal."""
    with store.appender(staging, writer=uuid4(), window=4 * MIB) as appender:
        appender.append(b"abc", event_number=1)
        appender.flush()
        store.seal(staging)

        def go_on() -> None:
            for number in range(2, 30):
                appender.append(bytes(MIB), event_number=number)
            appender.flush()

        with pytest.raises(SegmentSealed, match=staging):
            go_on()
    assert store.infos([staging]) == [SegmentInfo(start=0, length=3, sealed=True)]


def test_a_missing_segment_is_an_error_with_its_name(
    store: PravegaStore, segment: str, missing: str
) -> None:
    """Each call that needs the segment raises NoSuchSegment with its name."""
    condition = CompareAndSet(uuid4(), None, 1)
    with pytest.raises(NoSuchSegment, match=missing):
        store.seal(missing)
    with pytest.raises(NoSuchSegment, match=missing):
        store.set_attribute(missing, condition)
    with pytest.raises(NoSuchSegment, match=missing):
        store.merge(segment, missing, condition)
    with pytest.raises(NoSuchSegment, match=missing):
        write(store, missing, b"x")
    with pytest.raises(NoSuchSegment, match=missing):
        store.append_at(missing, 0, b"x")
    with pytest.raises(NoSuchSegment, match=missing) as caught:
        content(store, missing, 0, 1)
    assert caught.value.segment == missing


def test_an_attribute_is_compared_and_set(store: PravegaStore, staging: str) -> None:
    """An attribute changes only if it has the expected value, or none if none is expected."""
    attribute = uuid4()
    assert store.attributes([(staging, attribute)]) == [None]
    assert not store.set_attribute(staging, CompareAndSet(attribute, 7, 8))
    assert store.set_attribute(staging, CompareAndSet(attribute, None, 5))
    assert not store.set_attribute(staging, CompareAndSet(attribute, None, 6))
    assert store.attributes([(staging, attribute)]) == [5]
    assert store.set_attribute(staging, CompareAndSet(attribute, 5, -(2**62)))
    assert store.attributes([(staging, attribute)]) == [-(2**62)]


def test_a_sealed_segment_keeps_its_attributes(store: PravegaStore, staging: str) -> None:
    """Attributes of a sealed segment can be read, but not changed."""
    attribute = uuid4()
    assert store.set_attribute(staging, CompareAndSet(attribute, None, 5))
    store.seal(staging)
    assert store.attributes([(staging, attribute)]) == [5]
    with pytest.raises(SegmentSealed, match=staging):
        store.set_attribute(staging, CompareAndSet(attribute, 5, 6))


def test_attributes_of_many_segments_come_in_the_order_asked(
    store: PravegaStore, segment: str, missing: str
) -> None:
    """Unset attributes and missing segments are None, in the order of the request."""
    attribute = uuid4()
    store.set_attribute(segment, CompareAndSet(attribute, None, 3))
    asked = [(segment, attribute), (segment, uuid4()), (missing, attribute)]
    assert store.attributes(asked * 200) == [3, None, None] * 200


def test_a_segment_counts_blocks_as_events_and_knows_its_creation_time(
    store: PravegaStore, segment: str
) -> None:
    """Each block counts as one event. A segment without writes has no count at all."""
    asked = [(segment, store.event_count), (segment, store.creation_time)]
    count, created = store.attributes(asked)
    assert count is None
    assert created is not None
    assert created > 1_600_000_000_000
    write(store, segment, b"a", b"b", b"c")
    assert store.append_at(segment, 3, b"d")
    assert store.attributes(asked) == [4, created]
