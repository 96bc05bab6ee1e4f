"""What an EphemeralStream does in a store, on a model of one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from sluice.core.claim import SCOPE_MARKER, Claim, Claimant, Holding, Ownership
from sluice.core.identity import owner_tags
from sluice.core.model import Retention, RetentionType, Scaling, StreamConfig, StreamName
from sluice.engine import claims, scopes, whose
from sluice.errors import (
    ScopeNotFound,
    StoreBusy,
    StoreRejected,
    StoreUnavailable,
    StreamExists,
    StreamNotFound,
)
from support.model import Fate, ModelStore, World

UID = "0b1d9c8e-0000-4000-8000-000000000001"
OTHER_UID = "0b1d9c8e-0000-4000-8000-000000000002"
ALICE = Claimant(cluster="here", namespace="team", name="alice", uid=UID, created=100_000)
BOB = Claimant(cluster="here", namespace="team", name="bob", uid=OTHER_UID, created=200_000)
NAME = StreamName(scope="in", stream="state")
CONFIG = StreamConfig(scaling=Scaling(min_segments=2), tags=("team=a",))
ONE = Claim(claimant=ALICE, scope="in", stream="state", config=CONFIG)
PREFIX = Claim(claimant=ALICE, scope="in", prefix="app-")
NOW = 103_000
"""The operator's time when it makes a marker."""
AHEAD = 5_000
"""How far the store's clock is ahead of it."""


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every run make the same calls in the same order, and know nothing of another."""
    monkeypatch.setattr(whose, "AT_ONCE", 1)
    monkeypatch.setattr(scopes, "_gates", {})


@pytest.fixture
def world() -> World:
    """Gives a store whose clock is ahead."""
    made = World()
    made.rescales = True
    made.time = NOW + AHEAD
    return made


@pytest.fixture
def store(world: World) -> ModelStore:
    """Gives a store in which every call succeeds."""
    return ModelStore(world)


def put(
    world: World, stream: str, *, created: int | None = None, tags: tuple[str, ...] = ()
) -> StreamName:
    """A stream that somebody makes, at a time of the store's clock."""
    if created is not None:
        world.time = created
    name = StreamName(scope="in", stream=stream)
    assert ModelStore(world).create_stream(name, StreamConfig(tags=tags))
    return name


def tags_of(world: World, name: StreamName) -> set[str]:
    """A stream's tags."""
    return set(world.streams[name].config.tags)


def names(world: World) -> set[str]:
    """All streams."""
    return {name.stream for name in world.streams}


# -- one stream


def test_a_stream_is_made_with_its_configuration_and_our_tags(
    world: World, store: ModelStore
) -> None:
    """It is ours then, and its configuration is as wanted."""
    assert claims.look(ONE, store) == Holding(scope=True)
    assert claims.make(ONE, store, NOW)
    assert not claims.make(ONE, store, NOW)
    assert tags_of(world, NAME) == {"team=a", *ALICE.tags()}
    assert world.streams[NAME].config.scaling == CONFIG.scaling
    found = claims.look(ONE, store)
    assert found.ownership is Ownership.OURS
    assert found.streams == ("state",)
    assert found.created is not None
    assert found.drift == ()


def test_a_missing_scope_is_an_error_unless_it_is_to_be_made(store: ModelStore) -> None:
    """Nothing is made in it."""
    claim = replace(ONE, scope="new")
    assert claims.look(claim, store) == Holding(scope=False)
    with pytest.raises(ScopeNotFound):
        claims.make(claim, store, NOW)
    assert claims.release(claim, store, delete=True) == 0
    prefix = replace(PREFIX, scope="new")
    assert claims.look(prefix, store) == Holding(scope=False)
    assert claims.release(prefix, store, delete=True) == 0


FOREIGN = {
    "a person": (),
    "a copy": owner_tags("ab" * 16),
    "another resource": BOB.tags(),
    "the same uid in another cluster": replace(ALICE, cluster="there").tags(),
}


@pytest.mark.parametrize("tags", FOREIGN.values(), ids=FOREIGN)
def test_a_stream_of_somebody_else_is_never_touched(
    world: World, store: ModelStore, tags: tuple[str, ...]
) -> None:
    """It is refused when made or configured, left alone when released, and stays as it is."""
    put(world, "state", tags=tags)
    before = store.describe(NAME)
    for change in (lambda: claims.make(ONE, store, NOW), lambda: claims.configure(ONE, store)):
        with pytest.raises(StreamExists, match="in/state") as caught:
            change()
        assert caught.value.field == "spec.stream"
    assert claims.release(ONE, store, delete=True) == 0
    assert claims.release(ONE, store, delete=False) == 0
    assert store.describe(NAME) == before
    found = claims.look(ONE, store)
    assert found.ownership is (Ownership.OTHERS if tags else Ownership.UNOWNED)
    assert found.streams == ()
    assert found.holder_uid == (OTHER_UID if tags == BOB.tags() else None)


def test_a_stream_is_known_again_when_our_tags_were_taken_away(
    world: World, store: ModelStore
) -> None:
    """Its creation time tells, as long as it has a segment of the first; configuring mends it."""
    claims.make(ONE, store, NOW)
    known = replace(ONE, known=claims.look(ONE, store).created)
    world.streams[NAME].config = CONFIG
    assert claims.look(ONE, store).ownership is Ownership.UNOWNED
    found = claims.look(known, store)
    assert found.ownership is Ownership.OURS
    assert found.drift == ("the tags of Sluice are missing",)
    claims.configure(known, store)
    assert claims.look(ONE, store).drift == ()
    world.streams[NAME].config = CONFIG.model_copy(update={"tags": ALICE.tags()[:1]})
    assert claims.look(known, store).ownership is Ownership.OURS
    world.streams[NAME].config = CONFIG.model_copy(update={"tags": BOB.tags()})
    assert claims.look(known, store).ownership is Ownership.OTHERS
    world.streams[NAME].config = CONFIG
    assert claims.release(known, store, delete=True) == 1
    assert NAME not in world.streams


def test_a_stream_that_was_made_again_is_not_known(world: World, store: ModelStore) -> None:
    """One of the same name without our tags is another's, and so is one of unknown age."""
    claims.make(ONE, store, NOW)
    known = replace(ONE, known=claims.look(ONE, store).created)
    world.streams[NAME].config = CONFIG
    world.scale(NAME, 1, truncate=True)
    assert claims.look(known, store) == Holding(scope=True, ownership=Ownership.UNOWNED)
    store.seal_stream(NAME)
    store.delete_stream(NAME)
    put(world, "state")
    assert claims.look(known, store).ownership is Ownership.UNOWNED
    assert claims.release(known, store, delete=True) == 0


def test_a_scaled_stream_has_its_creation_time_until_it_is_truncated(
    world: World, store: ModelStore
) -> None:
    """Segments of later epochs were made later."""
    claims.make(ONE, store, NOW)
    created = claims.look(ONE, store).created
    world.scale(NAME, 3)
    assert claims.look(ONE, store).created == created
    world.scale(NAME, 4, truncate=True)
    found = claims.look(ONE, store)
    assert found.created is None
    assert found.streams == ("state",)


def test_a_sealed_stream_is_reported(store: ModelStore) -> None:
    """Somebody sealed it; nobody can write to it any more."""
    claims.make(ONE, store, NOW)
    store.seal_stream(NAME)
    assert claims.look(ONE, store).drift == ("it is sealed",)
    assert not claims.make(ONE, store, NOW)
    with pytest.raises(StoreRejected, match="sealed"):
        claims.configure(ONE, store)


def test_a_released_stream_is_gone_or_left_without_our_tags(
    world: World, store: ModelStore
) -> None:
    """Deleted or retained; the second time there is nothing to do."""
    claims.make(ONE, store, NOW)
    assert claims.release(ONE, store, delete=False) == 1
    assert tags_of(world, NAME) == {"team=a"}
    assert claims.release(ONE, store, delete=True) == 0
    claims.adopt(ONE, store, None)
    assert claims.release(ONE, store, delete=True) == 1
    assert NAME not in world.streams
    assert claims.release(ONE, store, delete=True) == 0


def test_a_sealed_stream_is_retained_as_it_is(world: World, store: ModelStore) -> None:
    """The store changes nothing of it, so it does not hold anything up."""
    claims.make(ONE, store, NOW)
    store.seal_stream(NAME)
    assert claims.release(ONE, store, delete=False) == 1
    assert NAME in world.streams


# -- adopting and configuring


def test_an_unowned_stream_is_adopted_as_it_is(world: World, store: ModelStore) -> None:
    """Its configuration and its segments stay, by hand scaled as they are; tags are added."""
    put(world, "state", tags=("theirs",))
    world.scale(NAME, 3)
    segments = world.streams[NAME].segments
    claims.adopt(ONE, store, None)
    claims.adopt(ONE, store, None)
    config = world.streams[NAME].config
    assert world.streams[NAME].segments == segments
    assert config.scaling.min_segments == 3  # or the store would have scaled it
    assert set(config.tags) == {"theirs", "team=a", *ALICE.tags()}
    assert claims.look(ONE, store).ownership is Ownership.OURS
    claims.release(ONE, store, delete=False)
    assert world.streams[NAME].segments == segments
    assert tags_of(world, NAME) == {"theirs", "team=a"}


def test_only_the_named_predecessor_leaves_its_stream(world: World, store: ModelStore) -> None:
    """Its tags are replaced; it has nothing then."""
    bob = replace(ONE, claimant=BOB)
    claims.make(bob, store, NOW)
    for wrong in (None, UID, "x"):
        with pytest.raises(StreamExists, match="EphemeralStream team/bob"):
            claims.adopt(ONE, store, wrong)
    claims.adopt(ONE, store, OTHER_UID)
    assert tags_of(world, NAME) == {"team=a", *ALICE.tags()}
    assert claims.release(bob, store, delete=True) == 0


def test_what_others_have_is_not_adopted(world: World, store: ModelStore) -> None:
    """Neither a copy's target, nor another cluster's, nor a sealed or a missing stream."""
    with pytest.raises(StreamNotFound):
        claims.adopt(ONE, store, None)
    with pytest.raises(StreamNotFound):
        claims.configure(ONE, store)
    put(world, "state", tags=owner_tags("ab" * 16))
    with pytest.raises(StreamExists, match="StreamCopy"):
        claims.adopt(ONE, store, None)
    world.streams[NAME].config = StreamConfig(tags=replace(BOB, cluster="there").tags())
    with pytest.raises(StreamExists, match="another cluster"):
        claims.adopt(ONE, store, OTHER_UID)
    world.streams[NAME].config = StreamConfig()
    store.seal_stream(NAME)
    with pytest.raises(StreamExists, match="sealed"):
        claims.adopt(ONE, store, None)


def test_a_changed_configuration_is_given_to_the_stream(world: World, store: ModelStore) -> None:
    """The user's tags are replaced, ours stay; what is as wanted costs no call."""
    claims.make(ONE, store, NOW)
    wanted = StreamConfig(
        scaling=Scaling(min_segments=3),
        retention=Retention(type=RetentionType.TIME, minimum=1000),
        tags=("team=b",),
    )
    changed = replace(ONE, config=wanted)
    assert len(claims.look(changed, store).drift) == 3
    claims.configure(changed, store)
    assert claims.look(changed, store).drift == ()
    assert len(world.streams[NAME].segments) == 3
    assert tags_of(world, NAME) == {"team=b", *ALICE.tags()}
    calls: list[str] = []
    claims.configure(changed, ModelStore(world, lambda call: calls.append(call) or Fate.DONE))
    assert not [call for call in calls if call.startswith("update")]


# -- streams under a prefix


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


# -- scopes

OWN = replace(ONE, scope="new", make_scope=True)


def test_a_scope_that_we_made_goes_with_its_last_stream(world: World, store: ModelStore) -> None:
    """Whoever of this cluster lets it go, and whichever claim made it."""
    claims.make(OWN, store, NOW)
    second = replace(OWN, claimant=BOB, stream="second", make_scope=False)
    claims.make(second, store, NOW)
    claims.release(OWN, store, delete=True)
    assert store.list_streams("new", internal=True) == [SCOPE_MARKER, "second"]
    claims.release(second, store, delete=True)
    assert "new" not in world.scopes
    assert not world.streams


@pytest.mark.parametrize("stream", ["theirs", "_RGgroup"])
def test_a_scope_with_anything_in_it_stays(world: World, store: ModelStore, stream: str) -> None:
    """Internal streams too are in use by somebody; nobody even asks the store to delete it."""
    claims.make(OWN, store, NOW)
    theirs = StreamName(scope="new", stream=stream)
    store.create_stream(theirs, StreamConfig())
    claims.release(OWN, store, delete=True)
    assert store.list_streams("new", internal=True) == sorted([stream, SCOPE_MARKER])
    assert world.refusals == 0


def test_a_scope_that_others_made_stays(world: World, store: ModelStore) -> None:
    """An empty one, one made by hand, and one of another cluster."""
    claims.make(replace(ONE, make_scope=True), store, NOW)
    claims.release(ONE, store, delete=True)
    assert "in" in world.scopes
    there = replace(OWN, claimant=replace(BOB, cluster="there"))
    claims.make(there, store, NOW)
    second = replace(OWN, stream="second")
    claims.make(second, store, NOW)
    claims.release(there, store, delete=False)
    claims.release(second, store, delete=True)
    assert "new" in world.scopes


def test_a_refused_deletion_puts_the_scopes_marker_back(world: World) -> None:
    """A stream that comes after the last look keeps its scope, which stays ours."""

    def gate(call: str) -> Fate:
        if call == "delete_scope new":
            ModelStore(world).create_stream(StreamName(scope="new", stream="late"), StreamConfig())
        return Fate.DONE

    claims.make(OWN, ModelStore(world), NOW)
    claims.release(OWN, ModelStore(world, gate), delete=True)
    store = ModelStore(world)
    assert store.list_streams("new", internal=True) == [SCOPE_MARKER, "late"]
    late = StreamName(scope="new", stream="late")
    store.seal_stream(late)
    store.delete_stream(late)
    claims.release(OWN, store, delete=True)
    assert "new" not in world.scopes


# -- crashes

MAKES: dict[str, tuple[Claim, Callable[[World], None]]] = {
    "stream": (ONE, lambda _: None),
    "prefix": (PREFIX, lambda world: [put(world, f"app-{n}") for n in range(3)] and None),
}


def breaking(world: World, call: int, fate: Fate) -> ModelStore:
    """A store that a process loses at one of its calls, and has no use for afterwards."""
    calls = count()

    def gate(_: str) -> Fate:
        now = next(calls)
        if now > call:
            return Fate.REQUEST_LOST
        return fate if now == call else Fate.DONE

    return ModelStore(world, gate)


def broken_runs(
    prepare: Callable[[], World], act: Callable[[ModelStore], object]
) -> Iterator[World]:
    """The worlds in which each of the calls was the last of a process, on either side of it."""
    for fate in (Fate.REQUEST_LOST, Fate.REPLY_LOST):
        for call in count():
            world = prepare()
            store = breaking(world, call, fate)
            try:
                act(store)
            except StoreUnavailable:
                scopes._gates.clear()  # another process knows nothing
                yield world
            else:
                break


def fresh() -> World:
    """A world whose streams are newer than the resource."""
    world = World()
    world.rescales = True
    world.time = NOW + AHEAD
    return world


@pytest.mark.parametrize(("claim", "more"), MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("delete", [True, False])
def test_a_release_ends_the_same_wherever_it_was_cut_off(
    claim: Claim, more: Callable[[World], None], *, delete: bool
) -> None:
    """After a crash at any call a repeated release leaves what an unbroken one does."""

    def prepare() -> World:
        world = fresh()
        claims.make(claim, ModelStore(world), NOW)
        put(world, "theirs")
        more(world)
        return world

    whole = prepare()
    claims.release(claim, ModelStore(whole), delete=delete)
    runs = 0
    for world in broken_runs(prepare, lambda s: claims.release(claim, s, delete=delete)):
        claims.release(claim, ModelStore(world), delete=delete)
        assert {n: s.config for n, s in world.streams.items()} == {
            n: s.config for n, s in whole.streams.items()
        }
        assert world.staging() == []
        runs += 1
    assert runs >= 8


@pytest.mark.parametrize("claim", [ONE, PREFIX], ids=["stream", "prefix"])
def test_making_ends_the_same_wherever_it_was_cut_off(claim: Claim) -> None:
    """After a crash at any call a repeat makes what an unbroken one does."""
    for world in broken_runs(fresh, lambda store: claims.make(claim, store, NOW)):
        claims.make(claim, ModelStore(world), NOW)
        whole = fresh()
        claims.make(claim, ModelStore(whole), NOW)
        assert world.streams == whole.streams


def test_adopting_and_configuring_end_the_same_wherever_they_were_cut_off() -> None:
    """Each is one change, made once or twice."""

    def prepare() -> World:
        world = fresh()
        put(world, "state")
        world.scale(NAME, 3)
        return world

    def act(store: ModelStore) -> None:
        claims.adopt(ONE, store, None)
        claims.configure(ONE, store)

    whole = prepare()
    act(ModelStore(whole))
    for world in broken_runs(prepare, act):
        act(ModelStore(world))
        assert world.streams == whole.streams


@pytest.mark.parametrize("same_process", [True, False])
def test_a_scope_is_made_and_removed_across_crashes(*, same_process: bool) -> None:
    """It is gone in the end, and at worst an empty one stays that nobody knows to be ours."""
    left = 0
    acts: list[Callable[[ModelStore], object]] = [
        lambda store: claims.make(OWN, store, NOW),
        lambda store: claims.release(OWN, store, delete=True),
    ]
    for broken in acts:

        def prepare(broken: Callable[[ModelStore], object] = broken) -> World:
            world = fresh()
            if broken is acts[1]:
                claims.make(OWN, ModelStore(world), NOW)
            return world

        for fate in (Fate.REQUEST_LOST, Fate.REPLY_LOST):
            for call in count():
                world = prepare()
                store = breaking(world, call, fate)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(ModelStore, "__repr__", lambda _: "store")
                    scopes._gates.clear()
                    try:
                        broken(store)
                    except StoreUnavailable:
                        pass
                    else:
                        break
                    if not same_process:
                        scopes._gates.clear()
                    for act in acts[acts.index(broken) :]:
                        act(ModelStore(world))
                assert not world.streams
                assert world.refusals == 0
                left += "new" in world.scopes
    # Cut off between the scope's making and the marker's, or between the two deletions.
    assert left == (1 if same_process else 6)
