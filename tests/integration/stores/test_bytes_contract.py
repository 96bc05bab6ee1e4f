"""Reads and appends of bytes in a segment store, with every refusal."""

import os
from uuid import uuid4

import pytest

from sluice.core.values.model import SegmentInfo, StreamName
from sluice.errors import (
    InvalidEventNumber,
    NoSuchSegment,
    SegmentSealed,
    SegmentTruncated,
    StoreRejected,
)
from sluice.stores.pravega.segments.segments import PravegaSegments
from sluice.stores.pravega.store import PravegaStore
from support.store.blocks import MIB, content, write


def test_bytes_come_back_as_they_were_written(store: PravegaStore, staging: str) -> None:
    """Blocks of up to 8 MiB and an event's header are written whole.

    Reads of parts are in order.
    """
    blocks = [os.urandom(size) for size in (1, 8 * MIB + 8, 3 * MIB + 1, 12_345)]
    write(store, staging, *blocks)
    data = b"".join(blocks)
    assert content(store, staging, 0, len(data)) == data
    assert content(store, staging, 7, len(data) - 7) == data[7:-7]
    assert content(store, staging, 5, 5) == b""


def test_short_replies_are_completed(store: PravegaStore, staging: str) -> None:
    """A read for more bytes than the store gives at a time goes on for the rest, in order."""
    data = os.urandom(9 * MIB + 13)
    write(store, staging, data)
    greedy = PravegaSegments(store._transport, store._transport, block=4 * MIB, depth=8)
    assert content(greedy, staging, 0, len(data)) == data


def test_a_read_that_is_given_up_leaves_no_traces(store: PravegaStore, staging: str) -> None:
    """Late answers to an abandoned read do not count for the next call."""
    write(store, staging, *[bytes(MIB)] * 8)
    for _ in store.read(staging, 0, 8 * MIB):
        break
    assert store.infos([staging]) == [SegmentInfo(start=0, length=8 * MIB, sealed=False)]
    assert content(store, staging, 0, 8 * MIB) == bytes(8 * MIB)


def test_a_read_beyond_a_sealed_end_is_rejected(store: PravegaStore, staging: str) -> None:
    """A read beyond the end of a sealed segment fails instead of waiting."""
    write(store, staging, b"abc")
    store.seal(staging)
    with pytest.raises(StoreRejected, match="ends at byte 3, before byte 5"):
        content(store, staging, 0, 5)


def test_truncated_bytes_are_an_error_with_the_first_offset_left(
    store: PravegaStore, stream: StreamName, segment: str
) -> None:
    """A read of truncated bytes fails as a whole, and its error has the first readable offset."""
    write(store, segment, b"0123456789")
    store.truncate_stream(stream, {0: 4, 1: 0})
    assert store.infos([segment]) == [SegmentInfo(start=4, length=10, sealed=False)]
    with pytest.raises(SegmentTruncated, match=segment) as caught:
        content(store, segment, 2, 10)
    assert caught.value.start_offset == 4
    assert content(store, segment, 4, 10) == b"456789"


def test_an_appender_goes_on_from_the_number_that_the_store_has(
    store: PravegaStore, staging: str
) -> None:
    """The store keeps the last event number of each writer with the data."""
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


def test_an_appender_knows_where_its_last_block_ends(store: PravegaStore, staging: str) -> None:
    """Other clients may append meanwhile, and one confirmation may cover many blocks."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        assert appender.offset is None
        appender.append(b"abc", event_number=1)
        appender.flush()
        assert appender.offset == 3
        assert store.append_at(staging, 3, b"others")
        assert appender.offset == 3
        for number in range(2, 2_000):
            appender.append(b"defg", event_number=number)
        appender.flush()
        assert appender.acknowledged == 1_999
        assert appender.offset == 9 + 4 * 1_998


def test_confirmations_are_taken_in_without_waiting(store: PravegaStore, staging: str) -> None:
    """`pump` takes in confirmations without waiting, so that a thread can serve many appenders."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        appender.pump()
        assert appender.acknowledged is None
        for number in range(1, 6):
            appender.append(b"abc", event_number=number)
        while appender.acknowledged != 5:
            appender.pump()
        assert appender.offset == 15
        appender.pump()


def test_a_refusal_comes_with_the_confirmations(store: PravegaStore, staging: str) -> None:
    """`pump` raises the store's refusal, as an append does."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        store.seal(staging)
        appender.append(b"abc", event_number=1)

        def pump() -> None:
            while True:
                appender.pump()

        with pytest.raises(SegmentSealed, match=staging):
            pump()


def test_a_segment_counts_the_events_that_its_blocks_say(store: PravegaStore, segment: str) -> None:
    """A block without a number counts as one event. A number below 1 is a ValueError."""
    with store.appender(segment, writer=uuid4(), window=MIB) as appender:
        appender.append(b"abc", event_number=1, events=7)
        appender.append(b"d", event_number=2)
        appender.append(bytes(100), event_number=3, events=2_000_000_000)
        appender.flush()
        for events in (0, -1, 1 << 31):
            with pytest.raises(ValueError, match=f"not {events}"):
                appender.append(b"x", event_number=4, events=events)
    assert store.attributes([(segment, store.event_count)]) == [2_000_000_008]


def test_the_slower_of_two_appenders_of_one_writer_is_refused(
    store: PravegaStore, staging: str
) -> None:
    """The slower appender's blocks are not stored. The other one goes on."""
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
    """The store gets the buffer's bytes at the time of the call, also with blocks in flight."""
    buffer, written = bytearray(MIB), b""
    with store.appender(staging, writer=uuid4(), window=4 * MIB) as appender:
        for number in range(12):
            buffer[:] = bytes([number]) * MIB
            written += bytes(buffer)
            appender.append(buffer, event_number=number)
        appender.flush()
    assert content(store, staging, 0, len(written)) == written


@pytest.mark.exhaustive
def test_many_small_blocks_keep_their_order(store: PravegaStore, staging: str) -> None:
    """20 000 blocks keep their order while the client takes in acknowledgements."""
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
    """The error is NoSuchSegment, although the store only closes the connection."""
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
    """Of two appends at one offset, the second returns False and stores nothing."""
    assert store.append_at(staging, 0, b"abc")
    assert not store.append_at(staging, 0, b"def")
    assert not store.append_at(staging, 4, b"def")
    assert store.append_at(staging, 3, b"def")
    assert content(store, staging, 0, 6) == b"abcdef"


def test_blocks_that_no_frame_holds_are_refused_before_they_are_sent(
    store: PravegaStore, staging: str
) -> None:
    """An empty block and one of 16 MiB are a ValueError."""
    with store.appender(staging, writer=uuid4(), window=MIB) as appender:
        for size in (0, 16 * MIB):
            with pytest.raises(ValueError, match=f"not {size}"):
                appender.append(bytes(size), event_number=1)
    with pytest.raises(ValueError, match="not 0"):
        store.append_at(staging, 0, b"")
