"""The controller's answers to every call of the catalog."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from localstore import Standalone
from sluice.config import Settings, StoreTimeouts
from sluice.core.values.model import (
    KeyRange,
    RetentionType,
    ScaleType,
    Scaling,
    Segment,
    StoreAddress,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.errors import (
    InvalidSpec,
    ScopeNotFound,
    StoreBusy,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.connect import connect
from sluice.stores.pravega.store import PravegaStore
from support.kube.link import Link

ONE = StreamConfig()
EPOCH = 1 << 32


def keys(low: float, high: float) -> KeyRange:
    """Return a key range."""
    return KeyRange(low=low, high=high)


def test_a_store_is_made_from_its_address(standalone: Standalone, scope: str) -> None:
    """`connect` makes a client that answers."""
    store = connect(StoreAddress(uri=standalone.controller_uri), Settings())
    assert store.scope_exists(scope)
    store.close()


def test_a_closed_store_connects_anew(standalone: Standalone, scope: str, segment: str) -> None:
    """After `close`, a client finds the controller and the segment stores again."""
    store = connect(StoreAddress(uri=standalone.controller_uri), Settings())
    for _ in range(2):
        assert store.scope_exists(scope)
        assert store.infos([segment]) != [None]
        store.close()


def test_names_that_the_store_does_not_allow_are_errors_of_the_spec(
    store: PravegaStore, scope: str
) -> None:
    """The error is InvalidSpec and contains the name."""
    with pytest.raises(InvalidSpec, match="a/b"):
        store.create_scope("a/b")
    with pytest.raises(InvalidSpec, match="a b"):
        store.create_stream(StreamName(scope=scope, stream="a b"), ONE)


def test_a_policy_that_the_store_does_not_allow_is_an_error_of_the_spec(
    store: PravegaStore, name: StreamName
) -> None:
    """A stream without segments is refused before the store does so without a reason."""
    with pytest.raises(InvalidSpec, match="wants 0 segments"):
        store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=0)))


def test_what_does_not_exist_is_not_described(store: PravegaStore, name: StreamName) -> None:
    """`describe` returns None for a missing stream and for a missing scope."""
    assert store.describe(name) is None
    assert store.describe(StreamName(scope="no-such-scope", stream="s")) is None


def test_a_stream_is_made_once(store: PravegaStore, name: StreamName) -> None:
    """A second creation returns False, with the same configuration or another."""
    assert store.create_stream(name, ONE)
    assert not store.create_stream(name, ONE)
    assert not store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=3)))
    store.seal_stream(name)
    assert not store.create_stream(name, ONE)


def test_a_stream_in_a_missing_scope_is_not_made(store: PravegaStore) -> None:
    """The error ScopeNotFound names the scope."""
    with pytest.raises(ScopeNotFound, match="no-such-scope"):
        store.create_stream(StreamName(scope="no-such-scope", stream="s"), ONE)


@pytest.mark.parametrize(
    "config",
    [
        StreamConfig(),
        StreamConfig(
            scaling=Scaling(
                type=ScaleType.BY_EVENTS, target_rate=100, scale_factor=3, min_segments=2
            ),
            retention=StreamRetention(type=RetentionType.TIME, minimum=60_000, maximum=2**62),
            tags=("a", "z.example/k=v", "ü" * 80),
        ),
        StreamConfig(
            scaling=Scaling(type=ScaleType.BY_BYTES, target_rate=64, scale_factor=2),
            retention=StreamRetention(type=RetentionType.SIZE, minimum=1, maximum=0),
        ),
    ],
)
def test_a_configuration_is_kept_whole(
    store: PravegaStore, name: StreamName, config: StreamConfig
) -> None:
    """A stream is described with the configuration of its creation or last update."""
    assert store.create_stream(name, config)
    created = store.describe(name)
    assert created is not None
    assert created.config == config
    changed = config.model_copy(update={"tags": ("other",)})
    store.update_stream(name, changed)
    updated = store.describe(name)
    assert updated is not None
    assert updated.config == changed


def test_a_fresh_stream_has_one_head_and_tail_with_uniform_ranges(
    store: PravegaStore, name: StreamName
) -> None:
    """A new stream's segments have numbers from 0 on, in the order of their key ranges."""
    store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=4)))
    described = store.describe(name)
    assert described is not None
    assert not described.sealed
    assert described.head == described.tail
    assert described.tail == tuple(
        Segment(id=number, keys=keys(number / 4, (number + 1) / 4)) for number in range(4)
    )


def test_a_scaled_stream_has_another_tail_than_head(
    store: PravegaStore, stream: StreamName
) -> None:
    """After scale events the head is the first epoch and the tail the last, sealed or not."""
    first = (Segment(id=0, keys=keys(0, 0.5)), Segment(id=1, keys=keys(0.5, 1)))
    store.scale(stream, [0, 1], [keys(0, 0.1), keys(0.1, 1)])
    store.scale(stream, [EPOCH + 3], [keys(0.1, 0.7), keys(0.7, 1)])
    last = (
        Segment(id=EPOCH + 2, keys=keys(0, 0.1)),
        Segment(id=2 * EPOCH + 5, keys=keys(0.1, 0.7)),
        Segment(id=2 * EPOCH + 4, keys=keys(0.7, 1)),
    )
    for sealed in (False, True):
        described = store.describe(stream)
        assert described is not None
        assert (described.head, described.tail, described.sealed) == (first, last, sealed)
        store.seal_stream(stream)


def test_what_came_after_segments_is_known_though_it_is_truncated_away(
    store: PravegaStore, stream: StreamName
) -> None:
    """All generations from given segments to the tail are known, even if truncated."""
    began = store.describe(stream)
    assert began is not None
    store.scale(stream, [0], [keys(0, 0.2), keys(0.2, 0.5)])
    store.scale(stream, [EPOCH + 2, EPOCH + 3], [keys(0, 0.5)])
    whole = store.generations(stream)
    store.truncate_stream(stream, {2 * EPOCH + 4: 0, 1: 0})
    assert store.generations(stream) == ((*whole[2], began.head[1]),)
    for number in range(3):
        then = (began.head[1], *whole[number]) if number else began.head
        assert store.generations(stream, then) == (then, *whole[number + 1 :])
        store.seal_stream(stream)


@pytest.mark.parametrize(
    "edges",
    [
        [0.4, 0.5],
        [0.2, 0.5],
        [1 / 3, 2 / 3],
        [0.1, 0.15, 0.33, 0.7, 0.71, 0.9],
        [i / 12 for i in range(1, 12)],
        [i / 13 for i in range(1, 13)],
        [i / 29 for i in range(1, 29)],
    ],
    ids=str,
)
def test_ids_of_segments_are_known_before_a_scale_event_makes_them(
    store: PravegaStore, stream: StreamName, edges: list[float]
) -> None:
    """`following` predicts the ids, though the store numbers segments in an order of its own."""
    ranges = [keys(low, high) for low, high in pairwise([0.0, *edges, 1.0])]
    (foreseen,) = store.following([0, 1], [ranges])
    store.scale(stream, [0, 1], ranges)
    described = store.describe(stream)
    assert described is not None
    assert [segment.id for segment in described.tail] == list(foreseen)


def test_the_last_epoch_of_a_sealed_stream_is_found_among_many(
    store: PravegaStore, name: StreamName
) -> None:
    """The tail is the last epoch, however many scale events came after the head."""
    store.create_stream(name, ONE)
    for epoch in range(6):
        store.scale(name, [epoch * EPOCH + epoch], [keys(0, 1)])
    store.seal_stream(name)
    described = store.describe(name)
    assert described is not None
    assert described.tail == (Segment(id=6 * EPOCH + 6, keys=keys(0, 1)),)
    assert described.head == (Segment(id=0, keys=keys(0, 1)),)


def test_a_truncated_stream_begins_at_its_cut(store: PravegaStore, stream: StreamName) -> None:
    """The head may have segments of several epochs, each with its own key range."""
    store.scale(stream, [1], [keys(0.5, 0.8), keys(0.8, 1)])
    store.truncate_stream(stream, {0: 0, EPOCH + 2: 0, EPOCH + 3: 0})
    described = store.describe(stream)
    assert described is not None
    assert described.head == (
        Segment(id=0, keys=keys(0, 0.5)),
        Segment(id=EPOCH + 2, keys=keys(0.5, 0.8)),
        Segment(id=EPOCH + 3, keys=keys(0.8, 1)),
    )


def test_a_stream_made_again_goes_on_counting_segments(
    store: PravegaStore, stream: StreamName
) -> None:
    """A new stream of an old name has higher segment numbers and a later creation time."""
    (old,) = store.attributes([(store.segment_name(stream, 0), store.creation_time)])
    store.seal_stream(stream)
    assert store.delete_stream(stream)
    store.create_stream(stream, StreamConfig(scaling=Scaling(min_segments=2)))
    described = store.describe(stream)
    assert described is not None
    assert described.head == described.tail
    assert [segment.id for segment in described.tail] == [2, 3]
    asked = [(store.segment_name(stream, n), store.creation_time) for n in (0, 2)]
    gone, new = store.attributes(asked)
    assert gone is None
    assert old is not None
    assert new is not None
    assert new > old


def test_sealing_and_deleting_follow_an_order(store: PravegaStore, stream: StreamName) -> None:
    """A stream must be sealed before it is deleted. A second seal changes nothing."""
    with pytest.raises(StreamNotSealed, match=str(stream)):
        store.delete_stream(stream)
    store.seal_stream(stream)
    store.seal_stream(stream)
    assert store.delete_stream(stream)
    assert not store.delete_stream(stream)
    assert store.describe(stream) is None


def test_a_sealed_stream_takes_no_changes(store: PravegaStore, stream: StreamName) -> None:
    """The store rejects updates, truncations and scale events of a sealed stream."""
    store.seal_stream(stream)
    with pytest.raises(StoreRejected, match="STREAM_SEALED"):
        store.update_stream(stream, ONE)
    with pytest.raises(StoreRejected, match="STREAM_SEALED"):
        store.truncate_stream(stream, {0: 0, 1: 0})
    with pytest.raises(StoreRejected, match="FAILURE"):
        store.scale(stream, [0, 1], [keys(0, 1)])


def test_of_two_changes_at_once_one_may_have_to_come_again(
    store: PravegaStore, stream: StreamName
) -> None:
    """A refused change is StoreBusy, to be tried again. The stream has one of the two changes."""
    changes = [StreamConfig(tags=(tag,)) for tag in ("one", "other")]

    def change(config: StreamConfig) -> bool:
        try:
            store.update_stream(stream, config)
        except StoreBusy:
            return False
        return True

    with ThreadPoolExecutor(len(changes)) as threads:
        for _ in range(10):
            assert any(threads.map(change, changes))
    found = store.describe(stream)
    assert found is not None
    assert found.config in changes


def test_calls_on_a_missing_stream_name_it(store: PravegaStore, name: StreamName) -> None:
    """Each call that needs the stream raises StreamNotFound with its name.

    Deletion returns False.
    """
    with pytest.raises(StreamNotFound, match=str(name)):
        store.update_stream(name, ONE)
    with pytest.raises(StreamNotFound, match=str(name)):
        store.truncate_stream(name, {0: 0})
    with pytest.raises(StreamNotFound, match=str(name)):
        store.seal_stream(name)
    assert not store.delete_stream(name)


def test_a_scale_below_the_policy_is_rejected_at_once(
    store: PravegaStore, stream: StreamName
) -> None:
    """A stream keeps at least the number of segments in its policy."""
    with pytest.raises(StoreRejected, match="PRECONDITION_FAILED"):
        store.scale(stream, [0, 1], [keys(0, 1)])


def test_only_segments_that_a_stream_was_made_with_are_original(
    store: PravegaStore, stream: StreamName
) -> None:
    """This holds also for a stream that was made again, with higher segment numbers."""
    store.scale(stream, [0, 1], [keys(0, 0.3), keys(0.3, 1)])
    described = store.describe(stream)
    assert described is not None
    assert [store.is_original(segment.id) for segment in described.head] == [True, True]
    assert [store.is_original(segment.id) for segment in described.tail] == [False, False]
    store.seal_stream(stream)
    store.delete_stream(stream)
    store.create_stream(stream, ONE)
    again = store.describe(stream)
    assert again is not None
    assert [store.is_original(segment.id) for segment in again.head] == [True]


def test_a_controller_that_is_not_there_is_unavailable() -> None:
    """The error comes before the deadline and contains the address."""
    store = PravegaStore(
        "tcp://127.0.0.1:1", credentials=None, timeouts=StoreTimeouts(call=20, connect=5)
    )
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1"):
        store.scope_exists("any")
    store.close()


def test_a_call_ends_at_its_deadline(standalone: Standalone, scope: str) -> None:
    """A controller that does not answer in time causes a StoreTimeout, which is retryable."""
    host, _, port = standalone.controller_uri.removeprefix("tcp://").partition(":")
    with Link(host, int(port)) as link:
        store = PravegaStore(
            f"tcp://127.0.0.1:{link.port}", credentials=None, timeouts=StoreTimeouts(call=3)
        )
        assert store.scope_exists(scope)
        link.freeze()
        with pytest.raises(StoreTimeout) as caught:
            store.scope_exists(scope)
        assert caught.value.retryable
        store.close()
