"""Transactions in a store, also during scale events of the stream."""

from uuid import uuid4

import pytest

from sluice.core.values.model import (
    KeyRange,
    ScaleType,
    Scaling,
    Segment,
    StreamName,
    TransactionState,
)
from sluice.errors import NoSuchSegment, StoreRejected, StreamNotFound
from sluice.stores.pravega.store import PravegaStore
from sluice.stores.transactions import Transaction
from sluice.stores.writing import CompareAndSet
from support.store.blocks import content, write

WHOLE = [KeyRange(low=0, high=1)]
HALVES = [KeyRange(low=0, high=0.5), KeyRange(low=0.5, high=1)]
LEASE = 60.0


def tail(store: PravegaStore, name: StreamName) -> tuple[Segment, ...]:
    """Return the segments that take events."""
    found = store.describe(name)
    assert found is not None
    return found.tail


def reshape(store: PravegaStore, name: StreamName, ranges: list[KeyRange]) -> None:
    """Replace all segments by others."""
    store.scale(name, [segment.id for segment in tail(store, name)], ranges)


def loosen(store: PravegaStore, name: StreamName) -> None:
    """Let the stream be scaled to any number of segments."""
    config = store.configuration(name)
    assert config is not None
    never = Scaling(type=ScaleType.BY_EVENTS, target_rate=2_000_000_000, scale_factor=2)
    store.update_stream(name, config.model_copy(update={"scaling": never}))


def put(store: PravegaStore, name: StreamName, opened: Transaction, place: int, data: bytes) -> str:
    """Stage an event, merge it into a transaction's segment, and return that segment's name."""
    segment = opened.segments[place].id
    into = store.staging_name(name, segment, opened.key)
    staged = store.staging_name(name, segment, uuid4().hex)
    store.create(staged)
    write(store, staged, data)
    store.merge(into, staged, CompareAndSet(uuid4(), None, 1))
    return into


def readable(store: PravegaStore, name: StreamName) -> list[list[bytes]]:
    """Return the bytes of each segment, as the stream's epochs made them."""
    made = []
    for generation in store.generations(name):
        names = [store.segment_name(name, segment.id) for segment in generation]
        infos = store.infos(names)
        made.append(
            [
                content(store, one, info.start, info.length)
                for one, info in zip(names, infos, strict=True)
                if info is not None
            ]
        )
    return made


def commit(store: PravegaStore, name: StreamName, *opened: Transaction) -> None:
    """Commit transactions, and wait until the store has done so."""
    for transaction in opened:
        assert store.commit_transaction(name, transaction.key)
    for transaction in opened:
        assert store.settled(name, transaction.key) is TransactionState.COMMITTED


def test_a_transaction_has_a_segment_beside_each_that_takes_events(
    store: PravegaStore, stream: StreamName
) -> None:
    """The transaction's segments exist and are empty. Their names follow from its key."""
    opened = store.open_transaction(stream, lease=LEASE)
    assert opened.segments == tail(store, stream)
    names = [store.staging_name(stream, one.id, opened.key) for one in opened.segments]
    assert [info and info.length for info in store.infos(names)] == [0, 0]
    assert store.transaction(stream, opened.key) is TransactionState.OPEN


def test_nothing_of_a_transaction_is_there_before_its_commit(
    store: PravegaStore, stream: StreamName
) -> None:
    """Committed bytes stand after those that were written meanwhile."""
    opened = store.open_transaction(stream, lease=LEASE)
    put(store, stream, opened, 0, b"ours")
    write(store, store.segment_name(stream, 0), b"before")
    assert readable(store, stream) == [[b"before", b""]]
    commit(store, stream, opened)
    assert readable(store, stream) == [[b"beforeours", b""]]


def test_a_commit_after_a_scale_puts_its_bytes_into_segments_of_their_own(
    store: PravegaStore, stream: StreamName
) -> None:
    """A commit after a scale event makes segments with the numbers and keys of the old ones."""
    loosen(store, stream)
    reshape(store, stream, WHOLE)
    opened = store.open_transaction(stream, lease=LEASE)
    reshape(store, stream, HALVES)
    write(store, store.segment_name(stream, tail(store, stream)[0].id), b"live")
    before = tail(store, stream)
    put(store, stream, opened, 0, b"ours")
    commit(store, stream, opened)
    after = tail(store, stream)
    assert [segment.keys for segment in after] == HALVES
    assert all(store.is_beside(a.id, b.id) for a, b in zip(before, after, strict=True))
    assert not {segment.id for segment in before} & {segment.id for segment in after}
    assert readable(store, stream) == [[b"", b""], [b""], [b"live", b""], [b"ours"], [b"", b""]]
    (again,) = store.generations(stream)[3]
    assert store.is_beside(again.id, opened.segments[0].id)
    assert again.keys == WHOLE[0]


def test_what_is_staged_before_the_scale_is_merged_after_it(
    store: PravegaStore, stream: StreamName
) -> None:
    """Bytes staged before a scale event are merged after it. The segment's number must be right."""
    loosen(store, stream)
    ((foreseen,),) = store.following([segment.id for segment in tail(store, stream)], [WHOLE])
    staged = store.staging_name(stream, foreseen, uuid4().hex)
    store.create(staged)
    write(store, staged, b"early")
    commit(store, stream, store.open_transaction(stream, lease=LEASE))  # epochs need not be known
    reshape(store, stream, WHOLE)
    opened = store.open_transaction(stream, lease=LEASE)
    assert store.is_beside(opened.segments[0].id, foreseen)
    into = store.staging_name(stream, opened.segments[0].id, opened.key)
    attribute = uuid4()
    store.seal(staged)
    store.merge(into, staged, CompareAndSet(attribute, None, 5), events=1)
    assert store.attributes([(into, attribute)]) == [5]
    commit(store, stream, opened)
    assert readable(store, stream)[-1] == [b"early"]


def test_transactions_of_two_epochs_are_committed_in_the_order_that_was_decided(
    store: PravegaStore, stream: StreamName
) -> None:
    """Commits of two epochs keep the order of the epochs, even if decided at once."""
    loosen(store, stream)
    reshape(store, stream, WHOLE)
    first = store.open_transaction(stream, lease=LEASE)
    reshape(store, stream, HALVES)
    second = store.open_transaction(stream, lease=LEASE)
    reshape(store, stream, WHOLE)
    put(store, stream, second, 1, b"second")
    put(store, stream, first, 0, b"first")
    commit(store, stream, first, second)
    found = [b"".join(made) for made in readable(store, stream)]
    assert [one for one in found if one] == [b"first", b"second"]
    assert [segment.keys for segment in tail(store, stream)] == WHOLE


def test_two_transactions_of_an_epoch_are_committed_in_the_order_that_was_decided(
    store: PravegaStore, stream: StreamName
) -> None:
    """Within an epoch, the order of the decisions counts, not that of the openings."""
    late, early = (store.open_transaction(stream, lease=LEASE) for _ in range(2))
    put(store, stream, late, 0, b"2")
    put(store, stream, early, 0, b"1")
    commit(store, stream, early, late)
    assert readable(store, stream) == [[b"12", b""]]


def test_a_committed_transaction_can_be_committed_again_and_not_aborted(
    store: PravegaStore, stream: StreamName
) -> None:
    """A repeated commit succeeds and changes nothing."""
    opened = store.open_transaction(stream, lease=LEASE)
    put(store, stream, opened, 0, b"once")
    for _ in range(3):
        commit(store, stream, opened)
    assert not store.abort_transaction(stream, opened.key)
    assert not store.keep_transaction(stream, opened.key, lease=LEASE)
    assert readable(store, stream) == [[b"once", b""]]


def test_an_aborted_transaction_takes_nothing_and_leaves_nothing(
    store: PravegaStore, stream: StreamName
) -> None:
    """Its segments and their merged bytes are gone. It can no longer be committed or renewed."""
    opened = store.open_transaction(stream, lease=LEASE)
    into = put(store, stream, opened, 0, b"gone")
    assert store.keep_transaction(stream, opened.key, lease=LEASE)
    for _ in range(2):
        assert store.abort_transaction(stream, opened.key)
        assert store.settled(stream, opened.key) is TransactionState.ABORTED
    assert store.infos([into]) == [None]
    assert not store.keep_transaction(stream, opened.key, lease=LEASE)
    assert not store.commit_transaction(stream, opened.key)
    assert readable(store, stream) == [[b"", b""]]
    late = store.staging_name(stream, 0, uuid4().hex)
    store.create(late)
    write(store, late, b"late")
    store.seal(late)
    with pytest.raises(NoSuchSegment):
        store.merge(into, late, CompareAndSet(uuid4(), None, 1))


def test_a_transaction_that_never_was_is_unknown(store: PravegaStore, stream: StreamName) -> None:
    """The state of a key that no transaction had is UNKNOWN, as of one that ended long ago."""
    never = f"{0:016x}{987654321:016x}"
    assert store.transaction(stream, never) is TransactionState.UNKNOWN
    assert not store.commit_transaction(stream, never)
    assert not store.keep_transaction(stream, never, lease=LEASE)


def test_a_sealed_stream_has_no_open_transactions(store: PravegaStore, stream: StreamName) -> None:
    """Open transactions are aborted when the stream is sealed. New ones are refused."""
    opened = store.open_transaction(stream, lease=LEASE)
    store.seal_stream(stream)
    assert store.settled(stream, opened.key) is TransactionState.ABORTED
    with pytest.raises(StoreRejected):
        store.open_transaction(stream, lease=LEASE)


def test_a_stream_that_is_not_there_has_no_transactions(
    store: PravegaStore, name: StreamName
) -> None:
    """The refusal names the stream."""
    with pytest.raises(StreamNotFound, match=str(name)):
        store.open_transaction(name, lease=LEASE)


def test_a_commit_counts_no_events(store: PravegaStore, stream: StreamName) -> None:
    """A commit loses the transaction's event counts, so that the stream's counts are too low."""
    write(store, store.segment_name(stream, 0), b"event")
    opened = store.open_transaction(stream, lease=LEASE)
    into = store.staging_name(stream, 0, opened.key)
    staged = store.staging_name(stream, 0, uuid4().hex)
    store.create(staged)
    write(store, staged, b"event")
    store.seal(staged)
    store.merge(into, staged, CompareAndSet(uuid4(), None, 1), events=1)
    assert store.attributes([(into, store.event_count)]) == [1]
    commit(store, stream, opened)
    assert readable(store, stream) == [[b"eventevent", b""]]
    assert store.attributes([(store.segment_name(stream, 0), store.event_count)]) == [1]
