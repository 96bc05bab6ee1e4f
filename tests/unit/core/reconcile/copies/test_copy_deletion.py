from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import Abandon, DeleteJob, Orphan, RemoveFinalizer
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.deletion import GONE_PATIENCE
from sluice.core.reconcile.copies.world import World
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import (
    IntegrityError,
    SecretNotFound,
    SluiceError,
    StoreNotFound,
    StoreUnavailable,
)
from support.reconcile.copies import (
    STORE,
    WHOLE,
    WORKING,
    after,
    begun,
    copy,
    job,
    message,
    plan_seen,
    reason,
    said,
    spec,
    trouble,
    world,
)

AWAY = replace(STORE, ready=False, why="no answer")
DELETED = replace(begun(), deleted=0.0)
DROP = (Abandon(), RemoveFinalizer())


def test_a_copy_without_a_finalizer_just_goes() -> None:
    """The copy has nothing in a store."""
    decision = reconcile(copy(deleted=0.0), world(jobs=(job(),), pods=1))
    assert (decision.actions, decision.again) == ((), None)


@pytest.mark.parametrize("phase", list(JobPhase))
def test_the_driver_goes_first(phase: JobPhase) -> None:
    """While the driver's Job exists, its staged bytes are not dropped."""
    decision = reconcile(DELETED, world(jobs=(job(phase=phase),)))
    assert decision.actions == (DeleteJob(job().name),)
    assert (said(decision), reason(decision)) == (WORKING, "Deleting")
    assert decision.again is not None


def test_all_jobs_go_each_told_once() -> None:
    """A Job that is being deleted is only waited for."""
    jobs = (job(1), job(2, deleting=True), job(3))
    decision = reconcile(DELETED, world(jobs=jobs))
    assert decision.actions == (DeleteJob(jobs[0].name), DeleteJob(jobs[2].name))
    waiting = reconcile(DELETED, world(jobs=jobs[1:2]))
    assert waiting.actions == ()
    assert waiting.again is not None


def test_pods_are_waited_for_when_their_jobs_are_gone() -> None:
    """A stopping driver or executor may still write."""
    decision = reconcile(DELETED, world(pods=1))
    assert (decision.actions, message(decision)) == ((), "The driver is being stopped.")
    assert decision.again is not None


@pytest.mark.parametrize(
    "around",
    [
        world(),
        world(plan=plan_seen()),
        world(source=AWAY, target=AWAY),
        world(source=None, target=None),
        world(profile=trouble(StoreNotFound("x"))),
    ],
)
def test_what_was_staged_is_dropped_before_the_copy_goes(around: World) -> None:
    """The store is tried in any state, and the finalizer is removed after that."""
    assert questions(DELETED, around) == set()
    decision = reconcile(DELETED, around)
    assert decision.actions == DROP
    assert (said(decision), reason(decision)) == (WORKING, "Deleting")


@pytest.mark.parametrize("change", [{"suspend": True}, {"activeDeadlineSeconds": 60}])
def test_nothing_that_is_wanted_of_a_copy_holds_its_deletion_up(change: dict[str, object]) -> None:
    """A suspended, late or rerun copy is deleted as any other."""
    seen = replace(begun(), spec=spec(**change), deleted=9999.0, requested_at="now")
    assert reconcile(seen, world()).actions == DROP


def test_a_copy_that_is_done_goes_without_its_target() -> None:
    """For a finished copy, the abort only deletes leftovers beside the target."""
    seen = begun()
    seen = after(seen, reconcile(seen, world(answer=WHOLE)))
    assert reconcile(replace(seen, deleted=0.0), world()).actions == ()
    assert reconcile(replace(seen, deleted=0.0, finalizer=True), world()).actions == DROP


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("no connection"),
        StoreNotFound("there is no StreamStore"),
        SecretNotFound("there is no Secret"),
        IntegrityError("the journal is damaged"),
    ],
)
def test_what_cannot_be_dropped_holds_the_copy(error: SluiceError) -> None:
    """The condition names the cause and the remedy, and a retry follows soon."""
    decision = after_failure(DELETED, world(), trouble(error))
    assert (decision.actions, reason(decision)) == ((), error.reason)
    assert "sluice.dev/force-orphan=true" in message(decision)
    assert decision.again == 2


def test_a_store_that_is_away_is_waited_for_for_ever() -> None:
    """Staged bytes must not leak. The waits between tries grow up to a minute."""
    waits = []
    for seconds in (0, 10, 40, 200, 1e3, 1e7):
        why = trouble(StoreUnavailable("no connection"))
        decision = after_failure(replace(DELETED, deleted=seconds), world(), why)
        assert decision.actions == ()
        waits.append(decision.again)
    assert waits == [2, 2.5, 10, 50, 60, 60]


@pytest.mark.parametrize("error", [StoreNotFound("none"), SecretNotFound("none")])
def test_a_store_that_is_gone_for_good_is_not(error: SluiceError) -> None:
    """The bytes there are unreachable. After a while the copy is released, with an event."""
    late = replace(DELETED, deleted=GONE_PATIENCE + 1)
    decision = after_failure(late, world(), trouble(error))
    assert decision.actions == (Orphan(str(trouble(error))), RemoveFinalizer())
    early = after_failure(replace(late, deleted=GONE_PATIENCE), world(), trouble(error))
    assert early.actions == ()


@pytest.mark.parametrize("around", [world(), world(jobs=(job(),), pods=2), world(source=None)])
def test_somebody_may_insist(around: World) -> None:
    """With force-orphan the copy is released at once, and an event names its remains."""
    decision = reconcile(replace(DELETED, force_orphan=True), around)
    assert [type(action) for action in decision.actions] == [Orphan, RemoveFinalizer]


def test_to_insist_on_a_copy_that_is_not_deleted_changes_nothing() -> None:
    """The annotation only matters for a deletion."""
    seen = begun(force_orphan=True)
    assert reconcile(seen, world(jobs=(job(),))).actions == ()
