import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from sluice.archive.runs.verify import verify_archive
from sluice.core.scope.request import ScopeRequest
from sluice.core.scope.scope import StreamState
from sluice.engine.tasks.limits import Limits
from sluice.errors import SluiceError
from support.archiving.scope_roots import BACK, TO, Env, root_in, run_plan
from support.engine.scope_drivers import SharedStore, put_scope
from support.engine.scope_requests import states_of
from support.model import Fate, World
from support.model.gated_objects import GatedObjects

ONE = Limits(parallelism=1)
NAMES = ["s000", "s001"]
COPIED = dict.fromkeys(NAMES, StreamState.COPIED.value)


EVERYWHERE = pytest.mark.parametrize(
    "step", [29, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some calls", "every call"]
)


class Killed(BaseException):
    """The driver's end."""


class Killing:
    """A gate that kills the driver at one call, and at all calls after it.

    Args:
        at: the number of the call, from 0.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, _: str) -> Fate:
        """Return the fate of a call."""
        self.left -= 1
        if self.left < 0:
            raise Killed
        return Fate.DONE


def small_env(*, archived: bool = False) -> Env:
    """Return a scope of two streams, archived or not."""
    world = World()
    put_scope(world, [[9, 30, 1], [1]], [[5]])
    world.scopes.add("out")
    env = Env(world)
    if archived:
        env.run(TO)
        env.abandon(TO)
    return env


def killed_run(env: Env, request: ScopeRequest, gate: Callable[[str], Fate]) -> None:
    """Plan and run with a driver that is killed."""
    store, root = SharedStore(env.world, gate), root_in(GatedObjects(env.objects, gate))
    env.run(request, store=store, root=root, limits=ONE)


@EVERYWHERE
def test_archiving_that_is_killed_anywhere_is_gone_on_with(step: int) -> None:
    """At any call, each archive is whole or invisible, and has one run in the end."""
    ends = set()
    for at in range(0, 1000, step):
        env, gate = small_env(), Killing(at)
        with suppress(Killed):
            killed_run(env, TO, gate)
        for path in env.root.paths():
            assert verify_archive(env.root.archive(path)).problems == []
        ends.add(len([*env.root.paths()]))
        if gate.left >= 0:
            break
        found = env.resolved(TO)
        report = found if not hasattr(found, "recorded") else env.run(TO, limits=ONE)
        assert states_of(report) == COPIED
        assert [len(env.manifests(name)) for name in NAMES] == [1, 1]
        env.abandon(TO)
        assert {name.split("/")[2] for name in env.objects.held} <= {
            "heads",
            "runs",
            "data",
            "leases",
        }
    assert ends == {0, 1, 2}
    assert at > 50


@EVERYWHERE
def test_a_restore_that_is_killed_anywhere_is_gone_on_with(step: int) -> None:
    """At any call, no stream is restored twice, and nothing is left in the end."""
    for at in range(0, 1000, step):
        env, gate = small_env(archived=True), Killing(at)
        with suppress(Killed):
            killed_run(env, BACK, gate)
        if gate.left >= 0:
            break
        found = env.resolved(BACK)
        report = found if not hasattr(found, "recorded") else env.run(BACK, limits=ONE)
        assert states_of(report) == COPIED
        assert env.content("out") == env.content("in")
        env.abandon(BACK)
        assert env.world.staging() == []
    assert at > 50


@pytest.mark.parametrize("request_", [TO, BACK], ids=["archived", "restored"])
def test_what_is_abandoned_anywhere_leaves_whole_streams_only(request_: ScopeRequest) -> None:
    """This holds at any call of the killed driver. A repetition completes the copy."""
    for at in range(0, 1000, 29):
        env, gate = small_env(archived=request_ is BACK), Killing(at)
        with suppress(Killed):
            killed_run(env, request_, gate)
        if gate.left >= 0:
            break
        known = None if at % 2 else env.resolved(request_).plan
        env.abandon(request_, known=known)
        assert not [name for name in env.objects.held if "/work/" in name or "/leases/" in name]
        assert env.world.staging() == []
        found = env.resolved(request_)
        report = found if not hasattr(found, "recorded") else env.run(request_, limits=ONE)
        assert states_of(report) == COPIED
        assert env.content("out") == ({} if request_ is TO else env.content("in"))
    assert at > 50


@pytest.mark.parametrize("request_", [TO, BACK], ids=["archived", "restored"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 8))]
)
def test_drivers_at_once_do_no_harm(seed: int, request_: ScopeRequest) -> None:
    """Each of the two drivers loses some calls, and each stream is done once."""
    env = small_env(archived=request_ is BACK)
    chance = random.Random(seed)  # noqa: S311 - no secrets

    def gate(_: str) -> Fate:
        return Fate(chance.choices(list(Fate), weights=[40, 1, 1])[0])

    plan = env.plan(request_)

    def drive(_: int) -> None:
        store, root = SharedStore(env.world, gate), root_in(GatedObjects(env.objects, gate))
        with suppress(SluiceError):
            run_plan(request_, plan, store, root, patience=1)

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(drive, range(2))]
    found = env.resolved(request_, again=True)
    report = found if not hasattr(found, "recorded") else env.run(request_, again=True)
    assert states_of(report) == COPIED
    assert [len(env.manifests(name)) for name in NAMES] == [1, 1]
    assert request_ is TO or env.content("out") == env.content("in")


def test_an_abort_stops_a_driver_that_is_at_work() -> None:
    """The driver begins no other stream, but a run that it records at that moment stays."""
    env = small_env()
    plan = env.plan(TO)
    first = []

    def gate(what: str) -> Fate:
        if what.startswith("put_new") and "/heads/" in what and not first:
            first.append(what)
            env.abandon(TO)
        return Fate.DONE

    store, root = SharedStore(env.world), root_in(GatedObjects(env.objects, gate))
    report = run_plan(TO, plan, store, root, limits=ONE)
    assert sorted(states_of(report).values()) == ["Copied", "CopyAborted"]
    assert len([*env.root.paths()]) == 1
    assert states_of(env.run(TO)) == COPIED
    assert [len(env.manifests(name)) for name in NAMES] == [1, 1]
