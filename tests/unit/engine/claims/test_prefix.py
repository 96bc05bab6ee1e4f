"""The streams under a prefix that an EphemeralStream claims."""

from dataclasses import replace
from itertools import count

import pytest

from sluice.core.claim import Holding, Ownership
from sluice.core.identity import owner_tags
from sluice.core.model import StreamName
from sluice.engine import claims, whose
from sluice.errors import StoreBusy, StoreTimeout, StreamExists
from support.claims import AHEAD, ALICE, BOB, NOW, OTHER_UID, PREFIX, names, put
from support.model import Fate, ModelStore, World


def test_only_what_is_new_under_a_prefix_is_ours(world: World, store: ModelStore) -> None:
    """Older streams, doubtful ones, internal ones, others' and those beside it are left alone."""
    put(world, "app-old", created=ALICE.created + AHEAD - 1)
    put(world, "app-doubtful", created=ALICE.created + AHEAD + 500)
    world.time = NOW + AHEAD
    put(world, "app-before-the-marker")
    before = claims.look(PREFIX, store)
    assert not before.marked
    assert before.ownership is Ownership.ABSENT
    assert (before.streams, before.left_alone) == ((), 3)
    assert claims.make(PREFIX, store, NOW)
    assert not claims.make(PREFIX, store, NOW + 1)
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
    """All but those with an owner of their own; nothing before the claim is remembered."""
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
    """A look notes it; one that was scaled and truncated before the first look is left alone."""
    claims.make(PREFIX, store, NOW)
    seen, unseen = put(world, "app-seen"), put(world, "app-unseen")
    del world.streams[unseen]
    claims.look(PREFIX, store)
    put(world, "app-unseen")
    for name in (seen, unseen):
        world.scale(name, 2, truncate=True)
    found = claims.look(PREFIX, store)
    assert (found.streams, found.left_alone) == (("app-seen",), 1)
    assert claims.release(PREFIX, store, delete=True) == 1
    assert names(world) == {"app-unseen"}


def test_streams_under_a_prefix_are_retained(world: World, store: ModelStore) -> None:
    """Only the marker goes."""
    claims.make(PREFIX, store, NOW)
    put(world, "app-new")
    assert claims.release(PREFIX, store, delete=False) == 1
    assert names(world) == {"app-new"}


def test_streams_that_keep_coming_are_not_forgotten(world: World) -> None:
    """A release that cannot end is tried again; the marker stays until nothing is left."""
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
    """Streams that come late go as well, however fast they come; its marker goes last."""
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
    """A part of it, or more; the resources of one cluster tell that among themselves."""
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
    """It is refused, and never deleted."""
    put(world, PREFIX.marker.stream)
    with pytest.raises(StreamExists, match=PREFIX.marker.stream):
        claims.make(PREFIX, store, NOW)
    assert not claims.look(PREFIX, store).marked
    assert claims.release(PREFIX, store, delete=True) == 0
    assert names(world) == {PREFIX.marker.stream}


def test_many_streams_are_deleted_in_several_calls(
    world: World, store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call gets on and ends, and the claim stays remembered until the last one."""
    monkeypatch.setattr(whose, "_PART", 3)
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
    """The time of the caller ends in the midst of a part: what is deleted by then is deleted."""
    monkeypatch.setattr(whose, "_PART", 3)
    claims.make(PREFIX, store, NOW)
    for number in range(10):
        put(world, f"app-{number}")
    deleted = count(1)
    drop = claims._drop

    def slow(at: ModelStore, name: StreamName) -> None:
        if next(deleted) > 4:
            raise StoreTimeout("too late")
        drop(at, name)

    with monkeypatch.context() as patch:
        patch.setattr(claims, "_drop", slow)
        with pytest.raises(StoreTimeout):
            claims.release(PREFIX, store, delete=True)
    assert len(claims.look(PREFIX, store).streams) == 6
    assert claims.release(PREFIX, store, delete=True) == 6


def test_what_was_replaced_since_the_look_is_not_touched(world: World) -> None:
    """Hundreds go before it is a stream's turn: by then its name may be a copy's target."""
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
    """It is dropped as what it is by then, and by no look at another one of that name."""
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
    """It is looked at as streams are, directly before."""
    claims.make(PREFIX, ModelStore(world), NOW)
    put(world, "app-a")

    def gate(call: str) -> Fate:
        if call == "delete_stream in/app-a":
            found = world.streams[PREFIX.marker]
            found.config = found.config.model_copy(update={"tags": BOB.tags()})
        return Fate.DONE

    claims.release(PREFIX, ModelStore(world, gate), delete=True)
    assert names(world) == {PREFIX.marker.stream}
