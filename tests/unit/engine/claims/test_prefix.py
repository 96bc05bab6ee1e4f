"""The streams under a prefix that an EphemeralStream claims."""

import copy
from dataclasses import replace
from itertools import count

import pytest

from sluice.core.claims.claim import IN_DOUBT, Holding, Ownership, has_list
from sluice.core.values.identity import owner_tags
from sluice.core.values.model import StreamConfig, StreamName
from sluice.engine.claims import claims, deleting, ownership
from sluice.errors import StoreBusy, StoreTimeout, StoreUnavailable, StreamExists
from support.engine.claims import AHEAD, ALICE, BOB, NOW, OTHER_UID, PREFIX, names, put
from support.model import Fate, ModelStore, World


def test_only_what_is_new_under_a_prefix_is_ours(world: World, store: ModelStore) -> None:
    """Older, doubtful, internal and foreign streams stay, and so do those outside the prefix."""
    put(world, "app-old", created=ALICE.created + AHEAD - 1)
    put(world, "app-doubtful", created=ALICE.created + AHEAD + IN_DOUBT - 1)
    now = ALICE.created + IN_DOUBT + 1000
    world.time = now + AHEAD
    put(world, "app-before-the-marker")
    before = claims.look(PREFIX, store)
    assert not before.marked
    assert before.ownership is Ownership.ABSENT
    assert (before.streams, before.left_alone) == ((), 3)
    assert claims.make(PREFIX, store, now)
    assert not claims.make(PREFIX, store, now + 1)
    put(world, "app-new")
    put(world, "application")
    put(world, "_app-internal")
    put(world, "app-bob", tags=BOB.tags())
    put(world, "app-copy", tags=owner_tags("ab" * 16))
    found = claims.look(PREFIX, store)
    assert found == Holding(
        scope=True,
        marked=True,
        ownership=Ownership.OURS,
        streams=("app-before-the-marker", "app-new"),
        left_alone=4,
    )
    assert claims.release(PREFIX, store, delete=True) == 2
    assert names(world) == {
        "app-old",
        "app-doubtful",
        "application",
        "_app-internal",
        "app-bob",
        "app-copy",
    }
    assert claims.look(PREFIX, store).empty
    assert claims.release(PREFIX, store, delete=True) == 0


def test_existing_streams_are_ours_where_the_claim_says_so(world: World, store: ModelStore) -> None:
    """Streams of another owner stay theirs. The claim keeps no list of earlier streams."""
    claim = replace(PREFIX, existing=True)
    put(world, "app-old", created=1)
    put(world, "app-bob", tags=BOB.tags())
    assert claims.look(claim, store).streams == ()
    claims.make(claim, store, NOW)
    found = claims.look(claim, store)
    assert (found.streams, found.left_alone) == (("app-old",), 1)


def test_a_stream_stays_ours_when_nobody_knows_its_age_any_more(
    world: World, store: ModelStore
) -> None:
    """A stream that is not in the claim's list is newer. A listed stream of unknown age stays."""
    old = put(world, "app-old", created=1)
    world.scale(old, 2, truncate=True)
    claims.make(PREFIX, store, NOW)
    seen, unseen = put(world, "app-seen"), put(world, "app-unseen")
    del world.streams[unseen]
    claims.look(PREFIX, store)
    put(world, "app-unseen")
    for name in (seen, unseen):
        world.scale(name, 2, truncate=True)
    found = claims.look(PREFIX, store)
    assert (found.streams, found.left_alone) == (("app-seen", "app-unseen"), 1)
    assert claims.release(PREFIX, store, delete=True) == 2
    assert names(world) == {"app-old"}


@pytest.mark.parametrize("api", [-30_000, -5_000, 0, 5_000])
@pytest.mark.parametrize("other", [-5_000, 0, 5_000])
def test_what_was_there_before_is_never_ours_however_clocks_go(
    world: World, store: ModelStore, api: int, other: int
) -> None:
    """No clock of the API server or of another segment store makes a stream younger.

    A stream that is made after the claim belongs to it, whatever age that store reports.
    """
    resource = replace(ALICE, created=ALICE.created + api)
    claim = replace(PREFIX, claimant=resource)
    made = ALICE.created  # by the clock of the marker's segment store, as all times below
    put(world, "app-old", created=made - 2_000 + other)
    world.time = made + 300
    assert claims.make(claim, store, resource.created + 300)
    assert claims.look(claim, store).streams == ()
    put(world, "app-new", created=made + 1_000 + other)
    found = claims.look(claim, store)
    assert (found.streams, found.left_alone) == (("app-new",), 1)
    assert claims.release(claim, store, delete=True) == 1
    assert "app-old" in names(world)


def test_a_stream_that_was_there_before_and_is_made_again_is_new(
    world: World, store: ModelStore
) -> None:
    """Its age differs from that of the earlier stream of its name."""
    old = put(world, "app-a", created=1)
    assert claims.make(PREFIX, store, NOW)
    assert claims.look(PREFIX, store).streams == ()
    store.seal_stream(old)
    store.delete_stream(old)
    world.time = NOW + AHEAD
    put(world, "app-a")
    assert claims.look(PREFIX, store).streams == ("app-a",)


def test_a_claim_counts_once_its_list_is_whole(world: World) -> None:
    """If it is cut off before, it owns no stream and is resumed. If given up, its marker goes."""
    store = ModelStore(world)
    old = put(world, "app-old", created=1)

    def cut_off(call: str) -> Fate:
        return Fate.REQUEST_LOST if call.startswith("set_attribute") else Fate.DONE

    with pytest.raises(StoreUnavailable):
        claims.make(PREFIX, ModelStore(world, cut_off), NOW)
    put(world, "app-meanwhile")
    found = claims.look(PREFIX, store)
    assert (found.marked, found.ownership, found.streams) == (False, Ownership.ABSENT, ())
    kept = copy.deepcopy(world)
    assert claims.release(PREFIX, ModelStore(kept), delete=True) == 0
    assert (PREFIX.marker in kept.streams, old in kept.streams) == (False, True)
    assert claims.make(PREFIX, store, NOW)
    put(world, "app-new")
    found = claims.look(PREFIX, store)
    assert (found.streams, found.left_alone) == (("app-new",), 2), "in doubt it is not ours"


def test_a_claim_of_before_goes_by_clocks(world: World, store: ModelStore) -> None:
    """The marker of such a claim has no list."""
    tags = tuple(tag for tag in PREFIX.marker_tags(NOW) if not has_list([tag]))
    assert store.create_stream(PREFIX.marker, StreamConfig(tags=tags))
    put(world, "app-old", created=ALICE.created + AHEAD)
    put(world, "app-new", created=ALICE.created + AHEAD + IN_DOUBT + 10)
    assert claims.look(PREFIX, store).streams == ("app-new",)


def test_streams_under_a_prefix_are_retained(world: World, store: ModelStore) -> None:
    """Only the marker is deleted."""
    claims.make(PREFIX, store, NOW)
    put(world, "app-new")
    assert claims.release(PREFIX, store, delete=False) == 1
    assert names(world) == {"app-new"}


def test_streams_that_keep_coming_are_not_forgotten(world: World) -> None:
    """An unfinished release is tried again, and the marker stays until no stream is left."""
    numbers = count()

    def gate(call: str) -> Fate:
        if call.startswith("delete_stream in/app-"):
            put(world, f"app-{next(numbers)}")
        return Fate.DONE

    claims.make(PREFIX, ModelStore(world), NOW)
    put(world, "app-first")
    with pytest.raises(StoreBusy):
        claims.release(PREFIX, ModelStore(world, gate), delete=True)
    assert PREFIX.marker in world.streams
    assert claims.release(PREFIX, ModelStore(world), delete=True) == 1
    assert names(world) == set()


def test_a_claim_that_is_watched_ends_only_when_it_is_let_go(world: World) -> None:
    """Late streams are deleted, too, however fast they come. The marker is deleted last."""
    numbers = count()

    def gate(call: str) -> Fate:
        if call.startswith("delete_stream in/app-"):
            put(world, f"app-{next(numbers)}")
        return Fate.DONE

    store = ModelStore(world)
    claims.make(PREFIX, store, NOW)
    put(world, "app-first")
    assert claims.release(PREFIX, ModelStore(world, gate), delete=True, watch=True) == 4
    assert claims.release(PREFIX, store, delete=True, watch=True) == 1
    put(world, "app-late")
    assert claims.release(PREFIX, store, delete=True, watch=True) == 1
    assert claims.release(PREFIX, store, delete=True, watch=True) == 0
    assert names(world) == {PREFIX.marker.stream}
    put(world, "app-last")
    assert claims.release(PREFIX, store, delete=True) == 1
    assert names(world) == set()


def test_another_clusters_prefix_is_refused(world: World, store: ModelStore) -> None:
    """So are parts and extensions of it. Resources of one cluster settle that among themselves."""
    there = replace(PREFIX, claimant=replace(BOB, cluster="there"))
    claims.make(there, store, NOW)
    for prefix in ("app-", "app-x-", "ap"):
        with pytest.raises(StreamExists, match="another cluster") as caught:
            claims.make(replace(PREFIX, prefix=prefix), store, NOW)
        assert caught.value.field == "spec.streamPrefix"
    assert claims.make(replace(PREFIX, prefix="bpp-"), store, NOW)
    near = replace(PREFIX, claimant=replace(ALICE, uid=OTHER_UID[:-1] + "3"), prefix="bpp-x")
    assert claims.make(near, store, NOW)


def test_a_marker_with_others_tags_is_nobodys_claim(world: World, store: ModelStore) -> None:
    """Making the claim is refused, and the marker is never deleted."""
    put(world, PREFIX.marker.stream)
    with pytest.raises(StreamExists, match=PREFIX.marker.stream):
        claims.make(PREFIX, store, NOW)
    assert not claims.look(PREFIX, store).marked
    assert claims.release(PREFIX, store, delete=True) == 0
    assert names(world) == {PREFIX.marker.stream}


def test_many_streams_are_deleted_in_several_calls(
    world: World, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call makes progress and ends, and the claim stays marked until the last call."""
    monkeypatch.setattr(ownership, "_PART", 3)
    claims.make(PREFIX, store, NOW)
    for number in range(10):
        put(world, f"app-{number}")
    left = []
    for _ in range(3):
        with pytest.raises(StoreBusy, match=r"3 streams under .* are deleted, and more are left"):
            claims.release(PREFIX, store, delete=True, seconds=0)
        left.append(len(claims.look(PREFIX, store).streams))
    assert left == [7, 4, 1]
    assert claims.release(PREFIX, store, delete=True, seconds=0) == 1
    assert claims.look(PREFIX, store).empty


def test_a_store_that_is_too_slow_for_all_of_them_gets_rid_of_some(
    world: World, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller's time ends within a part; the streams deleted so far stay deleted."""
    monkeypatch.setattr(ownership, "_PART", 3)
    claims.make(PREFIX, store, NOW)
    for number in range(10):
        put(world, f"app-{number}")
    deleted = count(1)
    drop = deleting.drop

    def slow(at: ModelStore, name: StreamName) -> None:
        if next(deleted) > 4:
            raise StoreTimeout("too late")
        drop(at, name)

    with monkeypatch.context() as patch:
        patch.setattr(deleting, "drop", slow)
        with pytest.raises(StoreTimeout):
            claims.release(PREFIX, store, delete=True)
    assert len(claims.look(PREFIX, store).streams) == 6
    assert claims.release(PREFIX, store, delete=True) == 6


def test_what_was_replaced_since_the_look_is_not_touched(world: World) -> None:
    """Hundreds are deleted before its turn, and its name may be a copy's target by then."""
    claims.make(PREFIX, ModelStore(world), NOW)
    for name in ("app-a", "app-b", "app-c"):
        put(world, name)
    claims.look(PREFIX, ModelStore(world))

    def gate(call: str) -> Fate:
        if call == "delete_stream in/app-a":
            world.time += 1
            for name, tags in (("app-b", owner_tags("ab" * 16)), ("app-c", BOB.tags())):
                del world.streams[PREFIX.marker.model_copy(update={"stream": name})]
                put(world, name, tags=tags)
        return Fate.DONE

    assert claims.release(PREFIX, ModelStore(world, gate), delete=True) == 1
    assert names(world) == {"app-b", "app-c"}


def test_a_stream_that_was_made_again_since_the_look_is_looked_at_anew(world: World) -> None:
    """The release checks the stream as it is then, and does not rely on the earlier look."""
    calls: list[str] = []
    claims.make(PREFIX, ModelStore(world), NOW)
    for name in ("app-a", "app-b"):
        put(world, name)

    def gate(call: str) -> Fate:
        calls.append(call)
        if call == "delete_stream in/app-a":
            world.time += 1
            del world.streams[PREFIX.marker.model_copy(update={"stream": "app-b"})]
            put(world, "app-b")
        return Fate.DONE

    assert claims.release(PREFIX, ModelStore(world, gate), delete=True) == 2
    listed = [number for number, call in enumerate(calls) if call.startswith("list_streams")]
    assert calls.index("delete_stream in/app-b") > listed[1]
    assert names(world) == set()


def test_a_marker_that_is_somebody_elses_by_then_stays(world: World) -> None:
    """The release checks the marker directly before its deletion, as it checks streams."""
    claims.make(PREFIX, ModelStore(world), NOW)
    put(world, "app-a")

    def gate(call: str) -> Fate:
        if call == "delete_stream in/app-a":
            found = world.streams[PREFIX.marker]
            found.config = found.config.model_copy(update={"tags": BOB.tags()})
        return Fate.DONE

    claims.release(PREFIX, ModelStore(world, gate), delete=True)
    assert names(world) == {PREFIX.marker.stream}
