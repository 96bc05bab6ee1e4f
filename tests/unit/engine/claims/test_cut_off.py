"""Making and releasing claims, cut off at any call and repeated."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from sluice.core.claims.claim import Claim
from sluice.engine.claims import claims, scope_lifecycle
from sluice.errors import StoreUnavailable
from support.engine.claims import NAME, NOW, ONE, OWN, PREFIX, fresh, put
from support.model import Fate, ModelStore, World

MAKES: dict[str, tuple[Claim, Callable[[World], None]]] = {
    "stream": (ONE, lambda _: None),
    "prefix": (PREFIX, lambda world: [put(world, f"app-{n}") for n in range(3)] and None),
}


def breaking(world: World, call: int, fate: Fate) -> ModelStore:
    """Make a store that a process loses at one of its calls and does not use afterwards."""
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
    """Yield the worlds in which each call was a process's last, cut off before or after it."""
    for fate in (Fate.REQUEST_LOST, Fate.REPLY_LOST):
        for call in count():
            world = prepare()
            store = breaking(world, call, fate)
            try:
                act(store)
            except StoreUnavailable:
                scope_lifecycle._gates.clear()  # another process has no such memory
                yield world
            else:
                break


@pytest.mark.parametrize(("claim", "more"), MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("delete", [True, False])
def test_a_release_ends_the_same_wherever_it_was_cut_off(
    claim: Claim, more: Callable[[World], None], *, delete: bool
) -> None:
    """After a crash at any call, a repeated release leaves the same as an unbroken one."""

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
    """After a crash at any call, a repetition makes the same as an unbroken run."""
    for world in broken_runs(fresh, lambda store: claims.make(claim, store, NOW)):
        claims.make(claim, ModelStore(world), NOW)
        whole = fresh()
        claims.make(claim, ModelStore(whole), NOW)
        assert world.streams == whole.streams


def test_adopting_and_configuring_end_the_same_wherever_they_were_cut_off() -> None:
    """Each is one change, and may be made once or twice."""

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
    """The scope is deleted in the end. At worst an empty scope without Sluice's marker stays."""
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
                    scope_lifecycle._gates.clear()
                    try:
                        broken(store)
                    except StoreUnavailable:
                        pass
                    else:
                        break
                    if not same_process:
                        scope_lifecycle._gates.clear()
                    for act in acts[acts.index(broken) :]:
                        act(ModelStore(world))
                assert not world.streams
                assert world.refusals == 0
                left += "new" in world.scopes
    # The process died between making the scope and its marker, or between the two deletions.
    assert left == (1 if same_process else 6)
