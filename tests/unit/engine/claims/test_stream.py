"""A stream that an EphemeralStream claims: made, recognised, adopted, configured, released."""

from dataclasses import replace

import pytest

from sluice.core.claims.claim import Holding, Ownership
from sluice.core.values.identity import owner_tags
from sluice.core.values.model import RetentionType, Scaling, StreamConfig, StreamRetention
from sluice.engine.claims import claims
from sluice.errors import ScopeNotFound, StoreRejected, StreamExists, StreamNotFound
from support.engine.claims import (
    ALICE,
    BOB,
    CONFIG,
    NAME,
    NOW,
    ONE,
    OTHER_UID,
    PREFIX,
    UID,
    put,
    tags_of,
)
from support.model import Fate, ModelStore, World


def test_a_stream_is_made_with_its_configuration_and_our_tags(
    world: World, store: ModelStore
) -> None:
    """The claim then owns it, with the wanted configuration."""
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
    """Looking and releasing succeed without the scope. Only making a stream needs it."""
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
    """Making and configuring are refused, and a release leaves the stream unchanged."""
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
    """Its creation time identifies it while it has a first segment.

    Configuring restores the tags.
    """
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
    """A namesake without Sluice's tags, or of unknown age, belongs to another client."""
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
    """Another client sealed it, and no client can write to it any more."""
    claims.make(ONE, store, NOW)
    store.seal_stream(NAME)
    assert claims.look(ONE, store).drift == ("it is sealed",)
    assert not claims.make(ONE, store, NOW)
    with pytest.raises(StoreRejected, match="sealed"):
        claims.configure(ONE, store)


def test_a_released_stream_is_gone_or_left_without_our_tags(
    world: World, store: ModelStore
) -> None:
    """The release deletes or retains it; a second release does nothing."""
    claims.make(ONE, store, NOW)
    assert claims.release(ONE, store, delete=False) == 1
    assert tags_of(world, NAME) == {"team=a"}
    assert claims.release(ONE, store, delete=True) == 0
    claims.adopt(ONE, store, None)
    assert claims.release(ONE, store, delete=True) == 1
    assert NAME not in world.streams
    assert claims.release(ONE, store, delete=True) == 0


def test_a_sealed_stream_is_retained_as_it_is(world: World, store: ModelStore) -> None:
    """The store rejects changes of a sealed stream, so the release does not wait for them."""
    claims.make(ONE, store, NOW)
    store.seal_stream(NAME)
    assert claims.release(ONE, store, delete=False) == 1
    assert NAME in world.streams


def test_an_unowned_stream_is_adopted_as_it_is(world: World, store: ModelStore) -> None:
    """Its configuration and its segments, even hand-scaled, stay. Adopting adds tags."""
    put(world, "state", tags=("theirs",))
    world.scale(NAME, 3)
    segments = world.streams[NAME].segments
    claims.adopt(ONE, store, None)
    claims.adopt(ONE, store, None)
    config = world.streams[NAME].config
    assert world.streams[NAME].segments == segments
    assert config.scaling.min_segments == 3  # otherwise the store would have scaled it
    assert set(config.tags) == {"theirs", "team=a", *ALICE.tags()}
    assert claims.look(ONE, store).ownership is Ownership.OURS
    claims.release(ONE, store, delete=False)
    assert world.streams[NAME].segments == segments
    assert tags_of(world, NAME) == {"theirs", "team=a"}


def test_only_the_named_predecessor_leaves_its_stream(world: World, store: ModelStore) -> None:
    """Its tags are replaced, and the predecessor owns nothing then."""
    bob = replace(ONE, claimant=BOB)
    claims.make(bob, store, NOW)
    for wrong in (None, UID, "x"):
        with pytest.raises(StreamExists, match="EphemeralStream team/bob"):
            claims.adopt(ONE, store, wrong)
    claims.adopt(ONE, store, OTHER_UID)
    assert tags_of(world, NAME) == {"team=a", *ALICE.tags()}
    assert claims.release(bob, store, delete=True) == 0


def test_what_others_have_is_not_adopted(world: World, store: ModelStore) -> None:
    """This holds for a copy's target, another cluster's stream, and a sealed or missing one."""
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
    """The user's tags are replaced and Sluice's stay. An unchanged configuration costs no call."""
    claims.make(ONE, store, NOW)
    wanted = StreamConfig(
        scaling=Scaling(min_segments=3),
        retention=StreamRetention(type=RetentionType.TIME, minimum=1000),
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
