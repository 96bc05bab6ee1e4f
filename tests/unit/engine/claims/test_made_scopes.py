"""The life of a scope that an EphemeralStream made."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from sluice.core.claims.claim import SCOPE_MARKER
from sluice.core.values.model import StreamConfig, StreamName
from sluice.engine.claims import claims, scope_lifecycle
from sluice.errors import StoreUnavailable
from support.engine.claims import BOB, NOW, ONE, OWN
from support.model import Fate, ModelStore, World


def test_a_scope_that_we_made_goes_with_its_last_stream(world: World, store: ModelStore) -> None:
    """Any claim of this cluster may release it, whichever claim made it."""
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
    """Internal streams count as used, and no call to delete the scope is made."""
    claims.make(OWN, store, NOW)
    theirs = StreamName(scope="new", stream=stream)
    store.create_stream(theirs, StreamConfig())
    claims.release(OWN, store, delete=True)
    assert store.list_streams("new", internal=True) == sorted([stream, SCOPE_MARKER])
    assert world.refusals == 0


def test_a_scope_with_a_key_value_table_stays(world: World, store: ModelStore) -> None:
    """The table is no stream. Until it is deleted, no call to delete the scope is made."""
    claims.make(OWN, store, NOW)
    world.tables.add(StreamName(scope="new", stream="table"))
    claims.release(OWN, store, delete=True)
    assert store.list_streams("new", internal=True) == [SCOPE_MARKER]
    assert world.refusals == 0
    world.tables.clear()
    claims.release(OWN, store, delete=True)
    assert "new" not in world.scopes


def test_a_scope_that_others_made_stays(world: World, store: ModelStore) -> None:
    """An empty scope, a scope made by hand, and one of another cluster stay."""
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
    """A stream that appears after the last look keeps its scope, which stays Sluice's."""

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
    """While other claims still delete streams there, no claim lists the scope."""
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


def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event that is set once a thread waits for the scope at another address.

    The wait lasts up to a minute.
    """
    there = threading.Event()

    class Name(scope_lifecycle._Name):
        def _wait(self, over: Callable[[], bool]) -> None:
            if not over():
                there.set()
            super()._wait(over)

    monkeypatch.setattr(scope_lifecycle, "ELSEWHERE", 60.0)
    monkeypatch.setattr(scope_lifecycle, "_Name", Name)
    return there


def test_a_scope_is_not_removed_while_it_is_used_at_another_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One store has many addresses: a Service's, a host's, each node's."""
    there = waiting(monkeypatch)
    here, elsewhere = ModelStore(world), ModelStore(world)
    scopes_of(here, elsewhere, monkeypatch)
    claims.make(OWN, here, NOW)
    here.seal_stream(StreamName(scope="new", stream=OWN.stream or ""))
    here.delete_stream(StreamName(scope="new", stream=OWN.stream or ""))
    with ThreadPoolExecutor(1) as pool:
        with scope_lifecycle.used("new", here, cluster="here", make=False):
            removed = pool.submit(scope_lifecycle.remove, "new", elsewhere, cluster="here")
            assert there.wait(60)
            made = StreamName(scope="new", stream="made")
            here.create_stream(made, StreamConfig(tags=("team=a",)))
        assert not removed.result(60)
    assert world.refusals == 0
    assert made in world.streams


def test_a_scope_is_not_used_while_it_is_removed_at_another_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that makes a stream there makes the scope again afterwards."""
    there = waiting(monkeypatch)
    here, elsewhere = ModelStore(world), ModelStore(world)
    scopes_of(here, elsewhere, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        with scope_lifecycle.unused("new", here):
            made = pool.submit(claims.make, OWN, elsewhere, NOW)
            assert there.wait(60)
            assert "new" not in world.scopes
        assert made.result(60)
    assert "new" in world.scopes


def test_a_scope_of_that_name_at_a_store_that_hangs_keeps_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scope may be another store's, so the wait for it is bounded."""
    monkeypatch.setattr(scope_lifecycle, "ELSEWHERE", 0.0)
    here, elsewhere = ModelStore(world), ModelStore(World())
    scopes_of(here, elsewhere, monkeypatch)
    with scope_lifecycle.used("new", elsewhere, cluster="here", make=False):
        assert claims.make(OWN, here, NOW)
        assert claims.release(OWN, here, delete=True) == 1
    assert "new" not in world.scopes
    with scope_lifecycle.unused("new", elsewhere):
        assert claims.make(OWN, here, NOW)


def scopes_of(here: ModelStore, elsewhere: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget all scopes, and check that both connections have different addresses."""
    monkeypatch.setattr(scope_lifecycle, "_gates", {})
    monkeypatch.setattr(scope_lifecycle, "_names", {})
    assert repr(here) != repr(elsewhere)
