import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from sluice.archive.verify import verify_archive
from sluice.core.scope import StreamState
from sluice.core.scope_request import ScopeRequest
from sluice.engine.limits import Limits
from sluice.errors import SluiceError
from support.gated_objects import GatedObjects
from support.model import Fate, World
from support.scope_drivers import SharedStore, put_scope
from support.scope_requests import states_of
from support.scope_shelves import BACK, TO, Lab, run_plan, shelf_in

ONE = Limits(parallelism=1)
NAMES = ["s000", "s001"]
COPIED = dict.fromkeys(NAMES, StreamState.COPIED.value)


EVERYWHERE = pytest.mark.parametrize(
    "step", [7, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some calls", "every call"]
)


class Killed(BaseException):
    """The driver's end."""


class Killing:
    """A gate that kills whoever comes to one call, and all that come after it.

    Args:
        at: which one, from 0.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, _: str) -> Fate:
        """What becomes of a call."""
        self.left -= 1
        if self.left < 0:
            raise Killed
        return Fate.DONE


def small_lab(*, archived: bool = False) -> Lab:
    """A scope of two streams, which are archived or not."""
    world = World()
    put_scope(world, [[9, 30, 1], [1]], [[5]])
    world.scopes.add("out")
    lab = Lab(world)
    if archived:
        lab.run(TO)
        lab.abandon(TO)
    return lab


def killed_run(lab: Lab, request: ScopeRequest, gate: Callable[[str], Fate]) -> None:
    """Plan and run with a driver that is killed."""
    store, shelf = SharedStore(lab.world, gate), shelf_in(GatedObjects(lab.objects, gate))
    lab.run(request, store=store, shelf=shelf, limits=ONE)


@EVERYWHERE
def test_archiving_that_is_killed_anywhere_is_gone_on_with(step: int) -> None:
    """At any call: each archive is whole or cannot be seen, and has one run in the end."""
    ends = set()
    for at in range(0, 1000, step):
        lab, gate = small_lab(), Killing(at)
        with suppress(Killed):
            killed_run(lab, TO, gate)
        for path in lab.shelf.paths():
            assert verify_archive(lab.shelf.archive(path)).problems == []
        ends.add(len([*lab.shelf.paths()]))
        if gate.left >= 0:
            break
        found = lab.resolved(TO)
        report = found if not hasattr(found, "recorded") else lab.run(TO, limits=ONE)
        assert states_of(report) == COPIED
        assert [len(lab.manifests(name)) for name in NAMES] == [1, 1]
        lab.abandon(TO)
        assert {name.split("/")[2] for name in lab.objects.held} <= {
            "heads",
            "runs",
            "data",
            "leases",
        }
    assert ends == {0, 1, 2}
    assert at > 50


@EVERYWHERE
def test_a_restore_that_is_killed_anywhere_is_gone_on_with(step: int) -> None:
    """At any call: no stream is restored twice, and nothing is left in the end."""
    for at in range(0, 1000, step):
        lab, gate = small_lab(archived=True), Killing(at)
        with suppress(Killed):
            killed_run(lab, BACK, gate)
        if gate.left >= 0:
            break
        found = lab.resolved(BACK)
        report = found if not hasattr(found, "recorded") else lab.run(BACK, limits=ONE)
        assert states_of(report) == COPIED
        assert lab.content("out") == lab.content("in")
        lab.abandon(BACK)
        assert lab.world.staging() == []
    assert at > 50


@pytest.mark.parametrize("request_", [TO, BACK], ids=["archived", "restored"])
def test_what_is_abandoned_anywhere_leaves_whole_streams_only(request_: ScopeRequest) -> None:
    """Whatever the driver was at when it was killed; asked for again, all is done."""
    for at in range(0, 1000, 13):
        lab, gate = small_lab(archived=request_ is BACK), Killing(at)
        with suppress(Killed):
            killed_run(lab, request_, gate)
        if gate.left >= 0:
            break
        known = None if at % 2 else lab.resolved(request_).plan
        lab.abandon(request_, known=known)
        assert not [name for name in lab.objects.held if "/work/" in name or "/leases/" in name]
        assert lab.world.staging() == []
        found = lab.resolved(request_)
        report = found if not hasattr(found, "recorded") else lab.run(request_, limits=ONE)
        assert states_of(report) == COPIED
        assert lab.content("out") == ({} if request_ is TO else lab.content("in"))
    assert at > 50


@pytest.mark.parametrize("request_", [TO, BACK], ids=["archived", "restored"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 8))]
)
def test_drivers_at_once_do_no_harm(seed: int, request_: ScopeRequest) -> None:
    """Two of them, whose calls are lost now and then; each stream is done once."""
    lab = small_lab(archived=request_ is BACK)
    chance = random.Random(seed)  # noqa: S311 - no secrets

    def gate(_: str) -> Fate:
        return Fate(chance.choices(list(Fate), weights=[40, 1, 1])[0])

    plan = lab.plan(request_)

    def drive(_: int) -> None:
        store, shelf = SharedStore(lab.world, gate), shelf_in(GatedObjects(lab.objects, gate))
        with suppress(SluiceError):
            run_plan(request_, plan, store, shelf, patience=5)

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(drive, range(2))]
    found = lab.resolved(request_, again=True)
    report = found if not hasattr(found, "recorded") else lab.run(request_, again=True)
    assert states_of(report) == COPIED
    assert [len(lab.manifests(name)) for name in NAMES] == [1, 1]
    assert request_ is TO or lab.content("out") == lab.content("in")


def test_an_abort_stops_a_driver_that_is_at_work() -> None:
    """It begins no other stream; what it records at that moment stays."""
    lab = small_lab()
    plan = lab.plan(TO)
    first = []

    def gate(what: str) -> Fate:
        if what.startswith("put_new") and "/heads/" in what and not first:
            first.append(what)
            lab.abandon(TO)
        return Fate.DONE

    store, shelf = SharedStore(lab.world), shelf_in(GatedObjects(lab.objects, gate))
    report = run_plan(TO, plan, store, shelf, limits=ONE)
    assert sorted(states_of(report).values()) == ["Copied", "CopyAborted"]
    assert len([*lab.shelf.paths()]) == 1
    assert states_of(lab.run(TO)) == COPIED
    assert [len(lab.manifests(name)) for name in NAMES] == [1, 1]
