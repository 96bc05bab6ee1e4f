"""A Secret whose consent is withdrawn while a driver has its login."""

from dataclasses import replace

import pytest

from sluice.core.reconcile.copies.actions import DeleteJob, StartJob
from sluice.core.reconcile.copies.decide import after_failure, reconcile
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.errors import AccessDenied
from support.reconcile.copies import (
    PLAN,
    PLANNED,
    STORE,
    WORKING,
    after,
    begun,
    job,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.RUNNING])
@pytest.mark.parametrize("probed", [True, False])
def test_a_driver_ends_where_its_secret_consents_no_more(phase: JobPhase, *, probed: bool) -> None:
    """Either a probe or a look at the progress may find it first."""
    error = AccessDenied("the Secret 'login' lacks the label", field="spec.x", remedy="Label it.")
    seen, denied = begun(), world(plan=plan_seen(), trouble=trouble(error))
    if probed:
        store = replace(STORE, ready=False, why=str(trouble(error)), denied=trouble(error))
        denied = world(plan=plan_seen(), target=store)
    decision = reconcile(seen, replace(denied, jobs=(job(phase=phase),)))
    assert decision.actions == (DeleteJob(job().name),)
    assert (said(decision), reason(decision)) == (WORKING, "AccessDenied")
    message = decision.status.conditions[0].message
    assert "the Secret 'login' lacks the label" in message
    assert "Label it." in message
    assert [one.outcome for one in decision.status.history] == ["Stopped"]
    seen = after(seen, decision)
    waiting = reconcile(seen, denied)
    assert (waiting.actions, reason(waiting)) == ((), "AccessDenied")
    again = reconcile(after(seen, waiting), world(plan=plan_seen(), answer=PLANNED))
    assert again.actions[-1] == StartJob(2, PLAN)


def test_what_is_staged_stays_if_an_action_may_not_use_its_store() -> None:
    """The streams are in order: once the action is allowed again, the copy goes on."""
    error = AccessDenied("the Secret 'login' lacks the label")
    decision = after_failure(begun(), world(plan=plan_seen()), trouble(error))
    assert (decision.actions, said(decision), reason(decision)) == ((), WORKING, "AccessDenied")
