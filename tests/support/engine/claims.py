"""Claims of an EphemeralStream, and their streams in the model store."""

from dataclasses import replace

from sluice.core.claims.claim import Claim, Claimant
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from support.model import ModelStore, World

UID = "0b1d9c8e-0000-4000-8000-000000000001"
OTHER_UID = "0b1d9c8e-0000-4000-8000-000000000002"
ALICE = Claimant(cluster="here", namespace="team", name="alice", uid=UID, created=100_000)
BOB = Claimant(cluster="here", namespace="team", name="bob", uid=OTHER_UID, created=200_000)
NAME = StreamName(scope="in", stream="state")
CONFIG = StreamConfig(scaling=Scaling(min_segments=2), tags=("team=a",))
ONE = Claim(claimant=ALICE, scope="in", stream="state", config=CONFIG)
PREFIX = Claim(claimant=ALICE, scope="in", prefix="app-")
NOW = 103_000
"""The operator's time when it makes a marker, in ms."""
AHEAD = 5_000
"""Milliseconds by which the store's clock is ahead of it."""
OWN = replace(ONE, scope="new", make_scope=True)


def fresh() -> World:
    """Return a world whose streams are newer than the resource."""
    world = World()
    world.time = NOW + AHEAD
    return world


def put(
    world: World, stream: str, *, created: int | None = None, tags: tuple[str, ...] = ()
) -> StreamName:
    """Make another client's stream, at a time of the store's clock in ms."""
    if created is not None:
        world.time = created
    name = StreamName(scope="in", stream=stream)
    assert ModelStore(world).create_stream(name, StreamConfig(tags=tags))
    return name


def tags_of(world: World, name: StreamName) -> set[str]:
    """Return a stream's tags."""
    return set(world.streams[name].config.tags)


def names(world: World) -> set[str]:
    """Return the names of all streams."""
    return {name.stream for name in world.streams}
