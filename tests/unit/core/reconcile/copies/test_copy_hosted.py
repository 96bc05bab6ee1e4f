"""Copies whose drivers must run in the namespace of their StreamStores, beside the login."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from sluice.core.reconcile.copies.actions import DeleteJob, StartJob, WriteControls
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.shared.jobs import JobPhase
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
    """Without a login it runs in the copy's namespace. The status names it before the Job."""
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
    """Otherwise a user could have any address opened from there. The operator asks no store."""
    seen, around = copy(), world(source=source, target=target)
    assert questions(seen, around) == frozenset()
    decision = reconcile(seen, around)
    assert reason(decision) == "LoginNotShared"
    assert message(decision).startswith(field)
    assert "'platform'" in message(decision)
    assert decision.actions == ()


@pytest.mark.parametrize("error", [StoreNotShared("no grant"), LoginNotShared("not here")])
def test_a_driver_is_stopped_when_its_grant_is_withdrawn(error: Exception) -> None:
    """The driver is stopped where it runs."""
    seen = begun()
    running = job(away="platform")
    around = world(source=HOSTED, target=trouble(error), jobs=(running,), plan=plan_seen())  # type: ignore[arg-type]
    decision = reconcile(seen, around)
    assert DeleteJob(running.name) in decision.actions
    assert reason(decision) == type(error).__name__


def test_the_status_remembers_where_drivers_ran_while_something_is_left() -> None:
    """This holds if the next driver runs elsewhere. Without a finalizer nothing is left."""
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
    """Otherwise its objects in the first namespace would be forgotten."""
    hosted = world(source=HOSTED, target=HOSTED, answer=PLANNED)
    seen = copy()
    seen = after(seen, reconcile(seen, hosted))
    moved = world(source=TWO, target=TWO, plan=plan_seen())
    decision = reconcile(seen, moved)
    assert reason(decision) == "LoginNotShared"
    assert "'platform'" in message(decision)
    assert reason(reconcile(replace(seen, finalizer=False), moved)) != "LoginNotShared"


def test_a_job_beside_the_login_is_there_before_all_that_it_mounts() -> None:
    """The Job owns its limits, so they follow it."""
    decision = reconcile(copy(), world(source=HOSTED, target=HOSTED, answer=PLANNED))
    assert WriteControls() not in decision.actions
    home = reconcile(copy(), world(source=OPEN, target=OPEN, answer=PLANNED))
    assert WriteControls() in home.actions


@pytest.mark.parametrize(
    ("away", "controls", "again"),
    [("platform", False, True), ("platform", True, False), (None, False, False)],
    ids=["not written", "written", "at home"],
)
def test_what_a_job_beside_the_login_mounts_is_made_later_if_need_be(
    away: str | None, *, controls: bool, again: bool
) -> None:
    """An operator may have died after it made the Job."""
    stores = {"source": HOSTED, "target": HOSTED} if away else {}
    starting = job(phase=JobPhase.PENDING, away=away)
    around = world(**stores, jobs=(starting,), plan=plan_seen(), controls=controls)
    decision = reconcile(begun(), around)
    assert (StartJob(1, PLANNED.plan) in decision.actions) == again


def test_a_job_beside_the_copy_is_no_attempt_if_drivers_have_to_run_elsewhere() -> None:
    """The copy's users can make such a Job. It is deleted, and the driver goes on."""
    running = job(away="platform")
    forged = replace(job(attempt=7, phase=JobPhase.PENDING, outdated=True), stray=True)
    around = world(source=HOSTED, target=HOSTED, jobs=(running, forged), plan=plan_seen())
    assert around.job == running
    decision = reconcile(begun(), around)
    assert DeleteJob(forged.name) in decision.actions
    assert DeleteJob(running.name) not in decision.actions
    assert decision.status.attempts == 1


def test_a_driver_is_stopped_where_no_login_is_any_more() -> None:
    """The StreamStore has lost its login, and its grant does not mention drivers."""
    running = job(away="platform")
    around = world(source=OPEN, target=OPEN, jobs=(running,), plan=plan_seen())
    decision = reconcile(begun(), around)
    assert DeleteJob(running.name) in decision.actions
    assert decision.status.history[-1].reason == "LoginNotShared"
    there = world(source=HOSTED, target=OPEN, jobs=(running,), plan=plan_seen())
    assert DeleteJob(running.name) not in reconcile(begun(), there).actions
