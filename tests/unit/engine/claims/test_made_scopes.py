"""A scope that an EphemeralStream made, and when it goes."""

from dataclasses import replace

import pytest

from sluice.core.claim import SCOPE_MARKER
from sluice.core.model import StreamConfig, StreamName
from sluice.engine import claims
from sluice.errors import StoreUnavailable
from support.claims import BOB, NOW, ONE, OWN
from support.model import Fate, ModelStore, World


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


def test_a_scope_with_a_key_value_table_stays(world: World, store: ModelStore) -> None:
    """Until the table is gone; it is no stream, and nobody asks the store to delete the scope."""
    claims.make(OWN, store, NOW)
    world.tables.add(StreamName(scope="new", stream="table"))
    claims.release(OWN, store, delete=True)
    assert store.list_streams("new", internal=True) == [SCOPE_MARKER]
    assert world.refusals == 0
    world.tables.clear()
    claims.release(OWN, store, delete=True)
    assert "new" not in world.scopes


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


def test_only_the_last_of_many_looks_what_is_in_the_scope(world: World) -> None:
    """While others still delete streams there, nobody lists it."""
    second = replace(OWN, claimant=BOB, stream="second")
    asked: list[str] = []

    def gate(call: str) -> Fate:
        asked.append(call)
        if asked.count("seal_stream new/second") == 1 and call == "seal_stream new/second":
            claims.release(OWN, store, delete=True)
            assert "new" in world.scopes
            assert not any(word.startswith("list_streams") for word in asked)
        return Fate.DONE

    store = ModelStore(world, gate)
    claims.make(OWN, store, NOW)
    claims.make(second, store, NOW)
    claims.release(second, store, delete=True)
    assert any(word.startswith("list_streams") for word in asked)
    assert "new" not in world.scopes


def test_who_is_kept_from_deleting_looks_when_he_comes_again(world: World) -> None:
    """An error while others skip the look leaves no scope behind."""
    store = ModelStore(world)
    claims.make(OWN, store, NOW)
    with pytest.raises(StoreUnavailable):
        claims.release(
            OWN,
            ModelStore(
                world, lambda call: Fate.REQUEST_LOST if call.startswith("seal") else Fate.DONE
            ),
            delete=True,
        )
    claims.release(OWN, store, delete=True)
    assert "new" not in world.scopes
