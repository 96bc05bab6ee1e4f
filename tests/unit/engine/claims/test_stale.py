"""Streams whose resource is gone, on a model store."""

from dataclasses import replace

import pytest

from sluice.core.claims.claim import Claim, Claimant
from sluice.core.values.model import StreamConfig, StreamName
from sluice.engine.claims import claims, scope_lifecycle
from sluice.engine.claims.stale import Tagged, drop, stale, tagged
from support.model import ModelStore, World

UIDS = [f"0b1d9c8e-0000-4000-8000-00000000000{n}" for n in range(4)]
CLAIMANTS = [
    Claimant(cluster="here", namespace="team", name=f"r{n}", uid=uid, created=1000)
    for n, uid in enumerate(UIDS)
]
NOW = 103_000


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_lifecycle, "_gates", {})


@pytest.fixture
def world() -> World:
    """Return a store with streams, a prefix with streams of all ages, and another cluster's."""
    made = World()
    store = ModelStore(made)
    prefix = Claim(claimant=CLAIMANTS[2], scope="out", prefix="app-")
    made.time = CLAIMANTS[2].created - 500
    put(made, "app-older")
    put(made, "app-noted")
    made.time = NOW
    claims.make(Claim(claimant=CLAIMANTS[0], scope="in", stream="a"), store, NOW)
    claims.make(Claim(claimant=CLAIMANTS[1], scope="in", stream="b"), store, NOW)
    other = replace(CLAIMANTS[3], cluster="there")
    claims.make(Claim(claimant=other, scope="in", stream="c"), store, NOW)
    claims.make(prefix, store, NOW)
    store.create_stream(prefix.marker.model_copy(update={"scope": "in"}), StreamConfig())
    noted = replace(prefix, existing=True, prefix="app-n")
    claims.look(noted, store)
    made.time += 2000
    put(made, "app-newer")
    put(made, "app-bob", tags=CLAIMANTS[1].tags())
    return made


def put(world: World, stream: str, *, tags: tuple[str, ...] = ()) -> None:
    """Make a stream as an application does."""
    name = StreamName(scope="out", stream=stream)
    assert ModelStore(world).create_stream(name, StreamConfig(tags=tags))


def test_what_is_ours_is_found_by_its_tags(world: World) -> None:
    """The search covers all scopes, and of a prefix the listed or newer streams.

    It finds no stream of another cluster.
    """
    marker = f"_sluice-{UIDS[2]}"
    assert tagged(ModelStore(world), "here") == [
        Tagged("in", "a", None, "team/r0", UIDS[0], ("a",)),
        Tagged("in", "b", None, "team/r1", UIDS[1], ("b",)),
        Tagged("out", marker, "app-", "team/r2", UIDS[2], ("app-newer", "app-noted")),
        Tagged("out", "app-bob", None, "team/r1", UIDS[1], ("app-bob",)),
    ]


def test_only_what_has_no_resource_is_stale_and_dropped(world: World) -> None:
    """Existing resources keep their streams. Dropping is repeatable and spares all others."""
    store = ModelStore(world)
    found = stale(store, "here", {UIDS[1]})
    assert [entry.uid for entry in found] == [UIDS[0], UIDS[2]]
    assert [drop(entry, store, "here") for entry in found] == [1, 2]
    assert [drop(entry, store, "here") for entry in found] == [0, 0]
    assert stale(store, "here", {UIDS[1]}) == []
    left = {name.stream for name in world.streams}
    assert left == {"b", "c", "app-older", "app-bob", f"_sluice-{UIDS[2]}"}


def test_what_has_another_owner_by_now_is_left_alone(world: World) -> None:
    """A successor may have adopted the stream between search and drop."""
    store = ModelStore(world)
    (found, *_) = stale(store, "here", ())
    claims.adopt(Claim(claimant=CLAIMANTS[3], scope="in", stream="a"), store, UIDS[0])
    assert drop(found, store, "here") == 0
    assert StreamName(scope="in", stream="a") in world.streams


def test_a_copy_of_a_markers_tags_claims_nothing(world: World) -> None:
    """Only the marker with the uid's own name stands for a prefix."""
    put(
        world,
        "_sluice-x",
        tags=Claim(claimant=CLAIMANTS[2], scope="out", prefix="b").marker_tags(1),
    )
    assert "_sluice-x" not in {found.stream for found in tagged(ModelStore(world), "here")}
