"""Restoring a scope from a volume: the operator sees the target, and drivers plan."""

from contextlib import suppress

import pytest

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.scope.request import ScopeRequest
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.plan import Plan, ScopeCopyPlan
from sluice.core.workloads.unplanned import Unplanned, UnplannedScopeCopy
from sluice.engine.scope.progress import UnplannedScopeWatch
from sluice.engine.scope.query import abandon_scope, ask_scope, plan_run
from sluice.engine.tasks.limits import Limits
from sluice.errors import TargetScopeNotFound
from sluice.kube.stores.connections import unseen
from support.archiving.scope_roots import BACK, TO, Env, root_in, run_plan
from support.engine.plans import ADDRESS
from support.engine.scope_drivers import SharedStore, put_scope
from support.engine.scope_requests import states_of
from support.model import Fate, World
from support.model.gated_objects import GatedObjects

NAMES = ["s000", "s001"]
COPIED = dict.fromkeys(NAMES, "Copied")
VOLUME = StoreAddress(backend="volume", uri="volume://archives")
HIDDEN = (VOLUME, ArchiveRoot(VOLUME.uri, unseen))

EVERYWHERE = pytest.mark.parametrize(
    "step", [11, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["some calls", "every call"]
)


class Killed(BaseException):
    """The driver's end."""


def small_env() -> Env:
    """Return a scope of two archived streams."""
    world = World()
    put_scope(world, [[9, 30, 1], [1]], [[5]])
    world.scopes.add("out")
    env = Env(world)
    env.run(TO)
    env.abandon(TO)
    return env


@pytest.fixture
def volume() -> Env:
    """Return the scope of two archived streams."""
    return small_env()


def asked(
    env: Env, known: Plan | None, *, again: bool = False, request: ScopeRequest = BACK
) -> Planned | ScopeEnded:
    """Ask as an operator that sees no archive."""
    target = (ADDRESS, env.store)
    return ask_scope(request, source=HIDDEN, target=target, known=known, again=again, unseen=True)


def wanted(env: Env, known: Plan | None, *, again: bool = False) -> Unplanned:
    """Return the operator's request to a driver."""
    found = asked(env, known, again=again)
    assert isinstance(found.plan, Unplanned)
    return found.plan


def planned(env: Env, plan: Plan, store: SharedStore, root: ArchiveRoot) -> Plan:
    """Return the plan of a driver, which can read the volume."""
    if not isinstance(plan, Unplanned):
        return plan
    assert plan.scoping is not None
    site = (ADDRESS, store)
    return plan_run(plan.scoping, plan.run, source=(VOLUME, root), target=site)


def drive(
    env: Env, plan: Plan, store: SharedStore | None = None, root: ArchiveRoot | None = None
) -> dict[str, str]:
    """Run a driver, and return the state of each stream."""
    store, root = store or env.store, root or env.root
    found = planned(env, plan, store, root)
    return states_of(run_plan(BACK, found, store, root, limits=Limits(parallelism=1)))


def killed(env: Env, plan: Plan, at: int) -> bool:
    """Run a driver that is killed at a call. Return False if the driver makes fewer calls."""
    left = [at]

    def gate(_: str) -> Fate:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return Fate.DONE

    store, root = SharedStore(env.world, gate), root_in(GatedObjects(env.objects, gate))
    with suppress(Killed):
        drive(env, plan, store, root)
    return left[0] < 0


@EVERYWHERE
def test_a_driver_that_is_killed_anywhere_is_gone_on_with(step: int) -> None:
    """This holds at any call, also during planning: no stream is restored twice."""
    begun = set()
    for at in range(0, 1000, step):
        env = small_env()
        known = wanted(env, None, again=True)
        more = killed(env, known, at)
        found = asked(env, known)
        begun.add(type(found.plan))
        if isinstance(found, Planned):
            assert found.recorded != (found.plan == known)
            drive(env, found.plan)
            found = asked(env, found.plan)
        assert isinstance(found, ScopeEnded)
        assert states_of(found) == COPIED
        assert env.content("out") == env.content("in")
        abandon_scope(BACK, source=None, target=env.store, known=known)
        assert env.world.staging() == []
        if not more:
            break
    assert begun == {UnplannedScopeCopy, ScopeCopyPlan}
    assert at > 50


def test_what_is_abandoned_anywhere_leaves_whole_streams_only() -> None:
    """This holds for an operator that cannot read the volume. A repetition completes the copy."""
    for at in range(0, 1000, 17):
        env = small_env()
        known = wanted(env, None)
        more = killed(env, known, at)
        abandon_scope(BACK, source=None, target=env.store, known=known)
        assert env.world.staging() == []
        again = wanted(env, known)
        assert again == known
        assert drive(env, again) == COPIED
        assert states_of(asked(env, again)) == COPIED
        assert env.content("out") == env.content("in")
        if not more:
            break
    assert at > 50


def test_what_is_over_is_left_to_a_driver_only_if_somebody_asks(volume: Env) -> None:
    """A late driver plans no other run after the end."""
    whole = dict(volume.objects.held)
    for name in [one for one in whole if one.startswith("shop/s001/data/")]:
        volume.objects.put(name, b"something else")
    first = wanted(volume, None)
    assert drive(volume, first) == COPIED | {"s001": "ArchiveDamaged"}
    assert states_of(asked(volume, first)) == COPIED | {"s001": "ArchiveDamaged"}
    assert drive(volume, first) == COPIED | {"s001": "ArchiveDamaged"}
    volume.objects.held.update(whole)
    second = wanted(volume, first, again=True)
    assert second.run == 2
    assert asked(volume, second) == Planned(plan=second)
    plan = planned(volume, second, volume.store, volume.root)
    assert [one.name for one in plan.items] == ["s001"]
    assert drive(volume, second) == COPIED
    assert states_of(asked(volume, second)) == COPIED
    assert asked(volume, second, again=True) == asked(volume, second)


def test_what_was_copied_and_is_gone_is_planned_again(volume: Env) -> None:
    """A driver checks the results of other drivers, too."""
    first = wanted(volume, None)
    drive(volume, first)
    for name in [one for one in volume.world.streams if str(one) == "out/s000"]:
        del volume.world.streams[name]
    assert states_of(asked(volume, first)) == COPIED | {"s000": "TargetReplaced"}
    second = wanted(volume, first, again=True)
    drive(volume, second)
    assert states_of(asked(volume, second)) == COPIED


def test_a_run_whose_log_is_gone_is_the_first_one_again(volume: Env) -> None:
    """This holds for any number in the written plan."""
    second = wanted(volume, None).model_copy(update={"run": 2})
    assert wanted(volume, second).run == 1


def test_progress_is_read_once_a_driver_has_planned(volume: Env) -> None:
    """The plan of the run is known from then on."""
    first = wanted(volume, None)
    watch = UnplannedScopeWatch(BACK, first, volume.store)
    assert (watch.measure().total, watch.plan) == (0, None)
    drive(volume, first)
    progress = watch.measure()
    plan = planned(volume, first, volume.store, volume.root)
    assert watch.plan == plan
    assert (progress.bytes, progress.total, progress.published) == (plan.bytes, plan.bytes, True)
    second = first.model_copy(update={"run": 2})
    assert UnplannedScopeWatch(BACK, second, volume.store).measure().streams is None


def test_a_scope_that_is_not_there_is_told_before_a_driver_comes(volume: Env) -> None:
    """A scope that the copy may make is the exception."""
    request = BACK.model_copy(update={"target": "new"})
    with pytest.raises(TargetScopeNotFound):
        asked(volume, None, request=request)
    made = request.model_copy(update={"make_scope": True})
    assert isinstance(asked(volume, None, request=made), Planned)


def test_drivers_at_once_plan_one_run(volume: Env) -> None:
    """The first plan in the log holds, whatever runs the archives got since."""
    first = wanted(volume, None)
    plans = [planned(volume, first, volume.store, volume.root)]
    volume.run(TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Append"}))
    plans.append(planned(volume, first, volume.store, volume.root))
    assert plans[0].hash != plans[1].hash
    for plan in reversed(plans):
        run_plan(BACK, plan, volume.store, volume.root)
    found = asked(volume, first)
    assert found.plan == plans[1]
    assert states_of(found) == COPIED
