"""Copies whose drivers have to run in the namespace of their StreamStores, beside the login."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from sluice.core.reconcile.copies.actions import DeleteJob, StartJob
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.world import JobPhase
from sluice.errors import LoginNotShared, StoreNotShared
from support.reconcile.copies import (
    PLANNED,
    STORE,
    after,
    begun,
    copy,
    job,
    message,
    plan_seen,
    reason,
    trouble,
    world,
)

HOSTED: Final = replace(STORE, namespace="platform", hosts=True)
OPEN: Final = replace(STORE, namespace="platform")
OWN: Final = STORE
OTHER: Final = replace(STORE, namespace="other")
TWO: Final = replace(HOSTED, namespace="other")


@pytest.mark.parametrize(
    ("source", "target", "host"),
    [
        (HOSTED, HOSTED, "platform"),
        (HOSTED, OPEN, "platform"),
        (OPEN, HOSTED, "platform"),
        (OPEN, OPEN, None),
        (OWN, OPEN, None),
    ],
    ids=["both", "the source", "the target", "neither", "none, and another"],
)
def test_a_driver_runs_where_the_login_is(source: object, target: object, host: str | None) -> None:
    """And in the copy's namespace if it needs none. The status says so before the Job is made."""
    decision = reconcile(copy(), world(source=source, target=target, answer=PLANNED))
    assert StartJob(1, PLANNED.plan) in decision.actions
    assert decision.status.driver_namespace == host


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [
        (OWN, HOSTED, "spec.source.storeRef.name"),
        (HOSTED, OWN, "spec.target.storeRef.name"),
        (OTHER, HOSTED, "spec.source.storeRef.name"),
        (HOSTED, TWO, "spec.target.storeRef.name"),
    ],
    ids=["a source of one's own", "a target of one's own", "a third namespace", "two logins"],
)
def test_a_driver_beside_a_login_opens_stores_of_that_namespace_only(
    source: object, target: object, field: str
) -> None:
    """Whoever writes another address would have it opened from there. No store is asked."""
    seen, around = copy(), world(source=source, target=target)
    assert questions(seen, around) == frozenset()
    decision = reconcile(seen, around)
    assert reason(decision) == "LoginNotShared"
    assert message(decision).startswith(field)
    assert "'platform'" in message(decision)
    assert decision.actions == ()


@pytest.mark.parametrize("error", [StoreNotShared("no grant"), LoginNotShared("not here")])
def test_a_driver_is_stopped_when_its_grant_is_withdrawn(error: Exception) -> None:
    """Where it runs."""
    seen = begun()
    running = job(away="platform")
    around = world(source=HOSTED, target=trouble(error), jobs=(running,), plan=plan_seen())  # type: ignore[arg-type]
    decision = reconcile(seen, around)
    assert DeleteJob(running.name) in decision.actions
    assert reason(decision) == type(error).__name__


def test_the_status_remembers_where_drivers_ran_while_something_is_left() -> None:
    """Also if the next one runs elsewhere. Nothing is left once the finalizer is gone."""
    hosted = world(source=HOSTED, target=HOSTED, answer=PLANNED)
    seen = copy()
    seen = after(seen, reconcile(seen, hosted))
    failed = job(phase=JobPhase.FAILED, away="platform")
    seen = after(seen, reconcile(seen, replace(hosted, jobs=(failed,), plan=plan_seen())))
    seen = replace(seen, requested_at="now")
    home = world(source=OPEN, target=OPEN, answer=PLANNED, jobs=(failed,), plan=plan_seen())
    for finalizer, remembered in ((True, "platform"), (False, None)):
        decision = reconcile(replace(seen, finalizer=finalizer), home)
        assert decision.status.driver_namespace == remembered


def test_a_copy_moves_to_no_other_namespace() -> None:
    """What works for it in the first one would be forgotten."""
    hosted = world(source=HOSTED, target=HOSTED, answer=PLANNED)
    seen = copy()
    seen = after(seen, reconcile(seen, hosted))
    moved = world(source=TWO, target=TWO, plan=plan_seen())
    decision = reconcile(seen, moved)
    assert reason(decision) == "LoginNotShared"
    assert "'platform'" in message(decision)
    assert reason(reconcile(replace(seen, finalizer=False), moved)) != "LoginNotShared"
