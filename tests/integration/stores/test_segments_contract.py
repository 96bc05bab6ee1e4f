"""What a segment store answers, for every call and with every error reply that can be provoked."""

import os
from contextlib import suppress
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from sluice.core.model import SegmentInfo, StreamName
from sluice.errors import (
    ConditionFailed,
    InvalidEventNumber,
    NoSuchSegment,
    SegmentSealed,
    SegmentTruncated,
    StoreRejected,
)
from sluice.stores.base import Condition
from sluice.stores.pravega.segments import PravegaSegments
from sluice.stores.pravega.store import PravegaStore

MIB = 1 << 20


def write(store: PravegaStore, name: str, *blocks: bytes) -> None:
    """Append blocks, numbered from 1 on by a writer of their own."""
    with store.appender(name, writer=uuid4(), window=4 * MIB) as appender:
        for number, block in enumerate(blocks, start=1):
            appender.append(block, event_number=number)
        appender.flush()


def content(store: PravegaSegments, name: str, start: int, end: int) -> bytes:
    """The bytes [start, end), checked to come in order."""
    data = bytearray()
    for block in store.read(name, start, end):
        assert block.offset == start + len(data)
        data += block.data
    return bytes(data)


@pytest.fixture
def missing(store: PravegaStore, stream: StreamName) -> str:
    """Gives a name of a segment that does not exist, though its stream does."""
    return store.staging_name(stream, 0, uuid4().hex)


# Segments and what they are


def test_many_infos_come_in_the_order_asked(
    store: PravegaStore, segment: str, staging: str, missing: str
) -> None:
    """More segments than one window are asked for in one go; a missing one is None."""
    write(store, staging, b"abc")
    empty = SegmentInfo(start=0, length=0, sealed=False)
    three = SegmentInfo(start=0, length=3, sealed=False)
    assert store.infos([segment, staging, missing] * 300) == [empty, three, None] * 300
    assert store.infos([]) == []


def test_a_segment_of_our_own_is_made_and_deleted_once(store: PravegaStore, missing: str) -> None:
    """Making and deleting say whether they did anything."""
    assert store.create(missing)
    assert not store.create(missing)
    assert store.delete(missing)
    assert not store.delete(missing)
    assert store.infos([missing]) == [None]


def test_the_name_of_a_deleted_segment_is_not_given_back_at_once(
    store: PravegaStore, missing: str
) -> None:
    """A name under which bytes were deleted can be neither made nor used again soon after."""
    store.create(missing)
    store.append_at(missing, 0, b"bytes")
    assert store.delete(missing) is True
    assert store.create(missing) is False
    assert store.infos([missing]) == [None]


def test_a_segment_of_our_own_needs_no_stream(store: PravegaStore, name: StreamName) -> None:
    """It can be made for a stream, and an epoch, that do not exist yet."""
    staging = store.staging_name(name, (5 << 32) + 7, uuid4().hex)
    assert store.create(staging)
    assert store.describe(name) is None
    assert store.delete(staging)


def test_a_sealed_segment_takes_no_more_bytes(store: PravegaStore, staging: str) -> None:
    """Sealing twice is fine; appends of either kind are refused, also after earlier blocks."""
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
    """The appender says so although the store hangs up right after its refusal."""
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
    """Every call that needs the segment says which one is missing."""
    condition = Condition(uuid4(), None, 1)
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


# Attributes


def test_an_attribute_is_compared_and_set(store: PravegaStore, staging: str) -> None:
    """Only the expected value, or none where none is expected, lets an attribute change."""
    attribute = uuid4()
    assert store.attributes([(staging, attribute)]) == [None]
    assert not store.set_attribute(staging, Condition(attribute, 7, 8))
    assert store.set_attribute(staging, Condition(attribute, None, 5))
    assert not store.set_attribute(staging, Condition(attribute, None, 6))
    assert store.attributes([(staging, attribute)]) == [5]
    assert store.set_attribute(staging, Condition(attribute, 5, -(2**62)))
    assert store.attributes([(staging, attribute)]) == [-(2**62)]


def test_a_sealed_segment_keeps_its_attributes(store: PravegaStore, staging: str) -> None:
    """They can be read, and are refused to change."""
    attribute = uuid4()
    assert store.set_attribute(staging, Condition(attribute, None, 5))
    store.seal(staging)
    assert store.attributes([(staging, attribute)]) == [5]
    with pytest.raises(SegmentSealed, match=staging):
        store.set_attribute(staging, Condition(attribute, 5, 6))


def test_attributes_of_many_segments_come_in_the_order_asked(
    store: PravegaStore, segment: str, missing: str
) -> None:
    """Values, unset ones and missing segments are told apart from values only."""
    attribute = uuid4()
    store.set_attribute(segment, Condition(attribute, None, 3))
    asked = [(segment, attribute), (segment, uuid4()), (missing, attribute)]
    assert store.attributes(asked * 200) == [3, None, None] * 200


def test_a_segment_counts_blocks_as_events_and_knows_its_creation_time(
    store: PravegaStore, segment: str
) -> None:
    """Each block counts as one event; a segment nobody wrote to has no count at all."""
    asked = [(segment, store.event_count), (segment, store.creation_time)]
    count, created = store.attributes(asked)
    assert count is None
    assert created is not None
    assert created > 1_600_000_000_000
    write(store, segment, b"a", b"b", b"c")
    assert store.append_at(segment, 3, b"d")
    assert store.attributes(asked) == [4, created]


# Merges


def test_a_merge_moves_all_bytes_and_sets_the_attribute(
    store: PravegaStore, segment: str, staging: str
) -> None:
    """The source's bytes stand at the target's end, and the source is gone."""
    attribute = uuid4()
    write(store, segment, b"old")
    write(store, staging, b"new")
    store.seal(staging)
    store.merge(segment, staging, Condition(attribute, None, 6))
    assert content(store, segment, 0, 6) == b"oldnew"
    assert store.attributes([(segment, attribute)]) == [6]
    assert store.infos([staging]) == [None]


def test_a_merge_with_another_value_changes_nothing_but_seals_the_source(
    store: PravegaStore, segment: str, staging: str
) -> None:
    """A failed condition leaves the target as it was; the store seals the source all the same."""
    attribute = uuid4()
    write(store, staging, b"new")
    with pytest.raises(ConditionFailed, match=str(attribute)):
        store.merge(segment, staging, Condition(attribute, 5, 6))
    assert store.attributes([(segment, attribute)]) == [None]
    assert store.infos([segment, staging]) == [
        SegmentInfo(start=0, length=0, sealed=False),
        SegmentInfo(start=0, length=3, sealed=True),
    ]


def test_a_repeated_merge_changes_nothing(store: PravegaStore, segment: str, staging: str) -> None:
    """It succeeds or finds the source missing; the bytes are in once."""
    condition = Condition(uuid4(), None, 1)
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
    """Deleting the source of a merge does nothing: the store would lose what was merged."""
    target = store.staging_name(stream, 0, uuid4().hex)
    store.create(target)
    data = b""
    for number in range(30):
        source = store.staging_name(stream, 0, uuid4().hex)
        store.create(source)
        block = os.urandom(1000)
        write(store, source, block)
        store.merge(target, source, Condition(UUID(int=1), number or None, number + 1))
        assert not store.delete(source)
        data += block
        assert content(store, target, 0, len(data)) == data


def test_a_second_source_with_the_same_condition_is_refused(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """Of two merges that expect the same value only one goes through."""
    condition = Condition(uuid4(), None, 1)
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
    """The store does not add up event counts by itself, and does in a merge that says so."""
    attribute = uuid4()
    for number, (events, total) in enumerate([(0, None), (7, 7), (5, 12)]):
        staging = store.staging_name(stream, 0, uuid4().hex)
        store.create(staging)
        write(store, staging, b"a", b"b", b"c")
        condition = Condition(attribute, number or None, number + 1)
        store.merge(segment, staging, condition, events=events)
        assert store.attributes([(segment, store.event_count)]) == [total]


def test_a_merge_into_a_sealed_segment_is_refused(
    store: PravegaStore, segment: str, staging: str, stream: StreamName
) -> None:
    """The target of a merge must be open."""
    store.seal_stream(stream)
    with pytest.raises(SegmentSealed, match=segment):
        store.merge(segment, staging, Condition(uuid4(), None, 1))


def test_parts_merge_into_one_segment_of_our_own(store: PravegaStore, stream: StreamName) -> None:
    """Segments of our own merge into another one at any cut of the bytes, empty ones too."""
    data = os.urandom(100_000)
    whole = store.staging_name(stream, 0, uuid4().hex)
    store.create(whole)
    cuts = [0, 1, 33_333, 33_333, 99_999, 100_000]
    for number, (start, end) in enumerate(pairwise(cuts)):
        part = store.staging_name(stream, 0, uuid4().hex)
        store.create(part)
        if start < end:
            write(store, part, data[start:end])
        store.merge(whole, part, Condition(UUID(int=1), number or None, number + 1))
    assert content(store, whole, 0, len(data)) == data


# Reads


def test_bytes_come_back_as_they_were_written(store: PravegaStore, staging: str) -> None:
    """Blocks up to 8 MiB with an event's header are written whole and read in parts, in order."""
    blocks = [os.urandom(size) for size in (1, 8 * MIB + 8, 3 * MIB + 1, 12_345)]
    write(store, staging, *blocks)
    data = b"".join(blocks)
    assert content(store, staging, 0, len(data)) == data
    assert content(store, staging, 7, len(data) - 7) == data[7:-7]
    assert content(store, staging, 5, 5) == b""


def test_short_replies_are_completed(store: PravegaStore, staging: str) -> None:
    """Asked for more than the store gives at a time, reads go on for the rest, in order."""
    data = os.urandom(9 * MIB + 13)
    write(store, staging, data)
    greedy = PravegaSegments(store._transport, block=4 * MIB, depth=8)
    assert content(greedy, staging, 0, len(data)) == data


def test_a_read_that_is_given_up_leaves_no_traces(store: PravegaStore, staging: str) -> None:
    """Answers still on their way are not taken for those of the next call."""
    write(store, staging, *[bytes(MIB)] * 8)
    for _ in store.read(staging, 0, 8 * MIB):
        break
    assert store.infos([staging]) == [SegmentInfo(start=0, length=8 * MIB, sealed=False)]
    assert content(store, staging, 0, 8 * MIB) == bytes(8 * MIB)


def test_a_read_beyond_a_sealed_end_is_rejected(store: PravegaStore, staging: str) -> None:
    """A read does not wait for bytes that never come."""
    write(store, staging, b"abc")
    store.seal(staging)
    with pytest.raises(StoreRejected, match="ends at byte 3, before byte 5"):
        content(store, staging, 0, 5)


def test_truncated_bytes_are_an_error_with_the_first_offset_left(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """A read that touches bytes that are gone fails whole and says where the rest begins."""
    write(store, segment, b"0123456789")
    store.truncate_stream(stream, {0: 4, 1: 0})
    assert store.infos([segment]) == [SegmentInfo(start=4, length=10, sealed=False)]
    with pytest.raises(SegmentTruncated, match=segment) as caught:
        content(store, segment, 2, 10)
    assert caught.value.start_offset == 4
    assert content(store, segment, 4, 10) == b"456789"


# Appends


def test_an_appender_goes_on_from_the_number_that_the_store_has(
    store: PravegaStore, staging: str
) -> None:
    """The last event number is kept for each writer, with the data."""
    writer = uuid4()
    with store.appender(staging, writer=writer, window=MIB) as appender:
        assert (appender.last, appender.acknowledged) == (None, None)
        appender.append(b"abc", event_number=3)
        appender.append(memoryview(b"defg"), event_number=70)
        appender.flush()
        assert (appender.last, appender.acknowledged) == (None, 70)
    with store.appender(staging, writer=writer, window=MIB) as appender:
        assert appender.last == 70
        with pytest.raises(ValueError, match="70 does not follow 70"):
            appender.append(b"x", event_number=70)
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        assert appender.last is None
    assert content(store, staging, 0, 7) == b"abcdefg"


def test_the_slower_of_two_appenders_of_one_writer_is_refused(
    store: PravegaStore, staging: str
) -> None:
    """Its blocks are not stored; the other goes on, and a new appender sees its number."""
    writer = uuid4()
    with (
        store.appender(staging, writer=writer, window=MIB) as fast,
        store.appender(staging, writer=writer, window=MIB) as slow,
    ):
        fast.append(b"fast", event_number=4)
        fast.flush()

        def try_slow() -> None:
            slow.append(b"slow", event_number=9)
            slow.flush()

        with pytest.raises(InvalidEventNumber, match=str(writer)):
            try_slow()
        fast.append(b"FAST", event_number=8)
        fast.flush()
    with store.appender(staging, writer=writer, window=MIB) as again:
        assert again.last == 8
    assert content(store, staging, 0, 8) == b"fastFAST"


def test_a_buffer_may_be_changed_once_it_is_sent(store: PravegaStore, staging: str) -> None:
    """Appended is what the buffer held at the call, also while blocks are in flight."""
    buffer, written = bytearray(MIB), b""
    with store.appender(staging, writer=uuid4(), window=4 * MIB) as appender:
        for number in range(12):
            buffer[:] = bytes([number]) * MIB
            written += bytes(buffer)
            appender.append(buffer, event_number=number)
        appender.flush()
    assert content(store, staging, 0, len(written)) == written


def test_many_small_blocks_keep_their_order(store: PravegaStore, staging: str) -> None:
    """More acknowledgements than anybody waits for are taken in on the way."""
    with store.appender(staging, writer=uuid4(), window=64 * 1024) as appender:
        for number in range(20_000):
            appender.append(number.to_bytes(4, "big"), event_number=number)
        appender.flush()
        assert appender.acknowledged == 19_999
    data = content(store, staging, 0, 80_000)
    assert data == b"".join(number.to_bytes(4, "big") for number in range(20_000))


def test_an_append_to_a_segment_deleted_meanwhile_is_refused(
    store: PravegaStore, staging: str
) -> None:
    """The appender says that the segment is gone, although the store only hangs up."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        appender.append(b"abc", event_number=1)
        appender.flush()
        store.delete(staging)

        def go_on() -> None:
            for number in range(2, 10):
                appender.append(bytes(MIB), event_number=number)
            appender.flush()

        with pytest.raises(NoSuchSegment, match=staging):
            go_on()
    with pytest.raises(NoSuchSegment, match=staging):
        write(store, staging, b"x")


def test_an_append_at_an_offset_wants_exactly_that_length(
    store: PravegaStore, staging: str
) -> None:
    """Of two appends at one offset the second says False and stores nothing."""
    assert store.append_at(staging, 0, b"abc")
    assert not store.append_at(staging, 0, b"def")
    assert not store.append_at(staging, 4, b"def")
    assert store.append_at(staging, 3, b"def")
    assert content(store, staging, 0, 6) == b"abcdef"


def test_blocks_that_no_frame_holds_are_refused_before_they_are_sent(
    store: PravegaStore, staging: str
) -> None:
    """An empty block or one of 16 MiB is a mistake of the caller."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        for size in (0, 16 * MIB):
            with pytest.raises(ValueError, match=f"not {size}"):
                appender.append(bytes(size), event_number=1)
    with pytest.raises(ValueError, match="not 0"):
        store.append_at(staging, 0, b"")
