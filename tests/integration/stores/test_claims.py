"""The work of an EphemeralStream in a real store, checked with the store's own listing."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from uuid import uuid4

import pytest

from localstore import ForeignClient
from sluice.core.claims.claim import SCOPE_MARKER, Claim, Claimant, Holding, Ownership
from sluice.core.values.model import (
    KeyRange,
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamName,
    StreamRetention,
)
from sluice.engine.claims import claims
from sluice.engine.claims.stale import drop, stale
from sluice.errors import ScopeNotEmpty, StreamExists
from sluice.stores.pravega.store import PravegaStore

MANY = 20
HALVES = [KeyRange(low=0, high=0.3), KeyRange(low=0.3, high=1)]

Say = Callable[[str], None]


@pytest.fixture
def own(store: PravegaStore) -> str:
    """Return the name of a scope that does not exist."""
    return f"claims-{uuid4().hex[:12]}"


@pytest.fixture
def claimant() -> Callable[[], Claimant]:
    """Return a function that makes resources, in a cluster that no other test uses."""
    cluster, numbers = uuid4().hex, count()

    def made() -> Claimant:
        return Claimant(
            cluster=cluster,
            namespace="team",
            name=f"resource-{next(numbers)}",
            uid=str(uuid4()),
            created=now(),
        )

    return made


@contextmanager
def timed(say: Say, what: str) -> Iterator[None]:
    """Log the duration of the block."""
    begun = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - begun:.3f} s")


def now() -> int:
    """Return the current time, in milliseconds since 1970."""
    return round(time.time() * 1000)


def test_a_stream_lives_and_goes_with_its_scope(
    store: PravegaStore, own: str, claimant: Callable[[], Claimant], say: Say
) -> None:
    """A claim makes scope and stream. A release leaves nothing in the store."""
    config = StreamConfig(scaling=Scaling(min_segments=2), tags=("team=a",))
    claim = Claim(claimant=claimant(), scope=own, make_scope=True, stream="state", config=config)
    assert claims.look(claim, store) == Holding(scope=False)
    with timed(say, "make scope and stream"):
        assert claims.make(claim, store, now())
    assert not claims.make(claim, store, now())
    assert store.list_streams(own, internal=True) == [SCOPE_MARKER, "state"]
    with timed(say, "look at a stream"):
        found = claims.look(claim, store)
    assert found.ownership is Ownership.OURS
    assert found.drift == ()
    assert found.created is not None
    assert abs(found.created - now()) < 60_000
    changed = StreamConfig(
        scaling=Scaling(min_segments=3),
        retention=StreamRetention(type=RetentionType.TIME, minimum=60_000),
        tags=("team=b",),
    )
    claim = replace(claim, config=changed)
    with timed(say, "configure a stream"):
        claims.configure(claim, store)
    assert claims.look(claim, store).drift == ()
    assert claims.look(claim, store).created == found.created
    with timed(say, "release stream and scope"):
        assert claims.release(claim, store, delete=True) == 1
    assert not store.scope_exists(own)
    assert own not in store.list_scopes()
    assert claims.release(claim, store, delete=True) == 0


def test_a_release_that_was_cut_off_after_sealing_is_finished(
    store: PravegaStore, scope: str, claimant: Callable[[], Claimant], say: Say
) -> None:
    """A sealed stream still has its owner, with tags or without."""
    for stripped in (False, True):
        name = StreamName(scope=scope, stream=f"s-{uuid4().hex[:8]}")
        claim = Claim(claimant=claimant(), scope=scope, stream=name.stream)
        claims.make(claim, store, now())
        claim = replace(claim, known=claims.look(claim, store).created)
        if stripped:
            store.update_stream(name, StreamConfig())
        store.seal_stream(name)
        assert "it is sealed" in claims.look(claim, store).drift
        with timed(say, "release a sealed stream"):
            assert claims.release(claim, store, delete=True) == 1
        assert name.stream not in store.list_streams(scope)


def test_a_stream_of_the_official_client_is_not_touched(
    store: PravegaStore, scope: str, foreign: ForeignClient, claimant: Callable[[], Claimant]
) -> None:
    """A stream of the official client stays untouched until it is adopted unchanged."""
    name = StreamName(scope=scope, stream=f"theirs-{uuid4().hex[:8]}")
    foreign.create(scope, name.stream, segments=2)
    foreign.write(scope, name.stream, events=100)
    claim = Claim(claimant=claimant(), scope=scope, stream=name.stream)
    assert claims.look(claim, store).ownership is Ownership.UNOWNED
    with pytest.raises(StreamExists, match=str(name)):
        claims.make(claim, store, now())
    assert claims.release(claim, store, delete=True) == 0
    assert foreign.visible(scope, name.stream).events == 100
    claims.adopt(claim, store, None)
    assert claims.look(claim, store).ownership is Ownership.OURS
    assert foreign.visible(scope, name.stream).events == 100
    assert claims.release(claim, store, delete=True) == 1
    assert name.stream not in store.list_streams(scope)


@pytest.mark.parametrize(
    "scaling",
    [
        Scaling(),
        Scaling(type=ScaleType.BY_EVENTS, target_rate=1000, scale_factor=2, min_segments=1),
    ],
    ids=["fixed", "by events"],
)
def test_adopting_and_retaining_scale_nothing(
    store: PravegaStore, name: StreamName, claimant: Callable[[], Claimant], scaling: Scaling
) -> None:
    """A stream that was scaled by hand keeps its segments and their key ranges."""
    store.create_stream(name, StreamConfig(scaling=scaling, tags=("theirs",)))
    store.scale(name, [0], HALVES)
    before = store.describe(name)
    assert before is not None
    claim = Claim(claimant=claimant(), scope=name.scope, stream=name.stream)
    claims.adopt(claim, store, None)
    adopted = store.describe(name)
    claims.release(claim, store, delete=False)
    left = store.describe(name)
    assert adopted is not None
    assert left is not None
    assert (adopted.tail, left.tail) == (before.tail, before.tail)
    assert left.config.tags == ("theirs",)
    assert claims.look(claim, store).ownership is Ownership.UNOWNED


def test_a_change_of_tags_alone_scales_a_fixed_stream(
    store: PravegaStore, name: StreamName
) -> None:
    """With fixed scaling, a change of tags alone merges segments that were scaled by hand.

    So adoption records the present number of segments.
    """
    store.create_stream(name, StreamConfig())
    store.scale(name, [0], HALVES)
    store.update_stream(name, StreamConfig(tags=("tag",)))
    changed = store.describe(name)
    assert changed is not None
    assert [segment.keys for segment in changed.tail] == [KeyRange(low=0, high=1)]


def test_a_scaled_and_truncated_stream_is_of_unknown_age(
    store: PravegaStore, name: StreamName, claimant: Callable[[], Claimant]
) -> None:
    """The age is unknown once the first segments are gone. Later ones date from scale events."""
    claim = Claim(claimant=claimant(), scope=name.scope, stream=name.stream)
    claims.make(claim, store, now())
    created = claims.look(claim, store).created
    assert created is not None
    store.scale(name, [0], HALVES)
    assert claims.look(claim, store).created == created
    described = store.describe(name)
    assert described is not None
    store.truncate_stream(name, {segment.id: 0 for segment in described.tail})
    assert claims.look(claim, store).created is None


@pytest.mark.exhaustive
def test_many_streams_under_a_prefix_go_with_their_claim(
    store: PravegaStore, own: str, claimant: Callable[[], Claimant], say: Say
) -> None:
    """New streams under a prefix go with the claim. Older ones and other names stay."""
    store.create_scope(own)
    for stream in ("app-old", "other"):
        store.create_stream(StreamName(scope=own, stream=stream), StreamConfig())
    time.sleep(1.2)  # the age of streams made within a second of the resource is in doubt
    claim = Claim(claimant=claimant(), scope=own, make_scope=True, prefix="app-")
    assert claims.look(claim, store) == Holding(scope=True, left_alone=1)
    with timed(say, "make a marker"):
        claims.make(claim, store, now())
    assert store.list_streams(own) == ["app-old", "other"]
    time.sleep(1.2)
    new = [f"app-{number:03}" for number in range(MANY)]
    with ThreadPoolExecutor(16) as pool:
        names = [StreamName(scope=own, stream=stream) for stream in new]
        assert all(pool.map(lambda name: store.create_stream(name, StreamConfig()), names))
    for what in ("first", "second"):
        with timed(say, f"{what} look at {MANY} streams"):
            found = claims.look(claim, store)
    assert found.streams == tuple(new)
    assert found.left_alone == 1
    with timed(say, f"release {MANY} streams under a prefix"):
        assert claims.release(claim, store, delete=True) == MANY
    assert store.list_streams(own, internal=True) == ["app-old", "other"]
    assert claims.look(claim, store) == Holding(scope=True, left_alone=1)


def test_whose_a_stream_is_stays_known_when_its_age_is_not(
    store: PravegaStore, own: str, claimant: Callable[[], Claimant]
) -> None:
    """The marker's attributes name the earlier streams. Internal streams never count."""
    claim = Claim(claimant=claimant(), scope=own, make_scope=True, prefix="app-")
    store.create_scope(own)

    def aged(stream: str, *, seen: bool = False) -> None:
        """Make a stream whose age cannot be known."""
        name = StreamName(scope=own, stream=stream)
        store.create_stream(name, StreamConfig())
        if seen:
            claims.look(claim, store)
        store.scale(name, [0], HALVES)
        described = store.describe(name)
        assert described is not None
        store.truncate_stream(name, {segment.id: 0 for segment in described.tail})

    aged("app-before")
    claims.make(claim, store, now())
    aged("app-seen", seen=True)
    aged("app-unseen")
    found = claims.look(claim, store)
    assert (found.streams, found.left_alone) == (("app-seen", "app-unseen"), 1)
    claims.release(claim, store, delete=True)
    assert store.list_streams(own, internal=True) == ["app-before"]


@pytest.mark.exhaustive
def test_many_resources_share_a_scope_that_goes_with_the_last(
    store: PravegaStore, own: str, claimant: Callable[[], Claimant], say: Say
) -> None:
    """16 resources claim and release a scope side by side, without a refusal or leftovers."""
    several = [
        Claim(claimant=claimant(), scope=own, make_scope=True, stream=f"s-{number}")
        for number in range(16)
    ]
    with ThreadPoolExecutor(8) as pool:
        with timed(say, "make 16 streams in a new scope, 8 at a time"):
            assert all(pool.map(lambda claim: claims.make(claim, store, now()), several))
        assert len(store.list_streams(own)) == 16
        with timed(say, "release 16 streams and their scope, 8 at a time"):
            assert all(pool.map(lambda claim: claims.release(claim, store, delete=True), several))
    assert not store.scope_exists(own)


def test_a_scope_in_use_keeps_its_marker_and_its_index_of_tags(
    store: PravegaStore, own: str, foreign: ForeignClient, claimant: Callable[[], Claimant]
) -> None:
    """A foreign stream keeps the scope. Once it is gone, the next release deletes the scope."""
    claim = Claim(claimant=claimant(), scope=own, make_scope=True, stream="ours")
    claims.make(claim, store, now())
    foreign.create(own, "theirs")
    assert claims.release(claim, store, delete=True) == 1
    assert store.list_streams(own, internal=True) == [SCOPE_MARKER, "theirs"]
    with pytest.raises(ScopeNotEmpty):
        store.delete_scope(own)
    tagged = StreamName(scope=own, stream="tagged")
    assert store.create_stream(tagged, StreamConfig(tags=("tag",)))
    assert store.list_streams(own, "tag") == ["tagged"]
    for stream in ("theirs", "tagged"):
        foreign.delete(own, stream)
    claims.release(claim, store, delete=True)
    assert not store.scope_exists(own)


def test_streams_without_a_resource_are_found_and_dropped(
    store: PravegaStore, own: str, claimant: Callable[[], Claimant], say: Say
) -> None:
    """Only streams with this cluster's tags count. They are found and dropped."""
    gone, alive, prefixed = claimant(), claimant(), claimant()
    elsewhere = replace(gone, cluster="elsewhere")
    claims.make(Claim(claimant=gone, scope=own, make_scope=True, stream="gone"), store, now())
    claims.make(Claim(claimant=alive, scope=own, stream="alive"), store, now())
    claims.make(Claim(claimant=elsewhere, scope=own, stream="elsewhere"), store, now())
    claims.make(Claim(claimant=prefixed, scope=own, prefix="app-"), store, now())
    time.sleep(1.2)
    store.create_stream(StreamName(scope=own, stream="app-1"), StreamConfig())
    with timed(say, "look for stale streams"):
        found = stale(store, gone.cluster, {alive.uid})
    assert {entry.uid: entry.streams for entry in found} == {
        gone.uid: ("gone",),
        prefixed.uid: ("app-1",),
    }
    assert [drop(entry, store, gone.cluster) for entry in found] == [1, 1]
    assert store.list_streams(own, internal=True) == [SCOPE_MARKER, "alive", "elsewhere"]
    assert stale(store, gone.cluster, {alive.uid}) == []
