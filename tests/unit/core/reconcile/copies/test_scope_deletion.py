"""The deletion of a ScopeCopy: unfinished streams go, in any state of the others."""

from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import Abandon, DeleteJob, Orphan, RemoveFinalizer
from sluice.core.reconcile.copies.decide import after_failure, questions, reconcile
from sluice.core.reconcile.copies.seen import CopySeen
from sluice.errors import StoreNotFound, StoreUnavailable
from support.reconcile.copies import WORKING, job, message, plan_seen, reason, said, trouble, world
from support.reconcile.scope_copies import FAILED, PARTLY, PLAN, SUCCEEDED, WHOLE, begun, over

AROUND = world(plan=plan_seen(PLAN))


@pytest.mark.parametrize("seen", [begun(), over(PARTLY), over(FAILED)])
def test_what_is_unfinished_goes_with_the_copy(seen: CopySeen) -> None:
    """This includes failed streams. Copied streams stay."""
    deleted = replace(seen, deleted=0.0)
    assert questions(deleted, AROUND) == set()
    decision = reconcile(deleted, AROUND)
    assert (said(decision), reason(decision)) == (WORKING, "Deleting")
    assert decision.actions == (Abandon(), RemoveFinalizer())


def test_a_driver_is_stopped_before_anything_is_dropped() -> None:
    """The driver may write as long as its pod exists."""
    deleted = replace(begun(), deleted=0.0)
    decision = reconcile(deleted, world(jobs=(job(),), pods=1))
    assert decision.actions == (DeleteJob(job().name),)
    decision = reconcile(deleted, world(pods=1))
    assert decision.actions == ()
    assert message(decision) == "The driver is being stopped."


def test_a_scope_that_is_done_goes_at_once() -> None:
    """The store has nothing of it."""
    seen = over(WHOLE)
    assert not seen.finalizer
    decision = reconcile(replace(seen, deleted=0.0), world(jobs=(SUCCEEDED,)))
    assert decision.actions == ()


def test_a_store_that_is_away_holds_the_copy_and_one_that_is_gone_does_not() -> None:
    """Staged bytes must not leak, but in a deleted StreamStore they cannot be dropped."""
    deleted = replace(over(PARTLY), deleted=400.0)
    decision = after_failure(deleted, AROUND, trouble(StoreUnavailable("no connection")))
    assert decision.actions == ()
    assert decision.again is not None
    assert "sluice.dev/force-orphan=true" in message(decision)
    gone = trouble(StoreNotFound("there is no StreamStore 'local'"))
    decision = after_failure(deleted, AROUND, gone)
    assert [type(action) for action in decision.actions] == [Orphan, RemoveFinalizer]
