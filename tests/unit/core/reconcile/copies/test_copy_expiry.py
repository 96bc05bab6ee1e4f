"""The cleanup some time after a success: the Jobs, and the resource if its spec asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.kinds.streamarchive import StreamArchiveSpec
from sluice.core.reconcile.copies.actions import DeleteJob, DropControls, Expire
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.decide_archive import reconcile_archive
from sluice.core.reconcile.copies.finished import LOOK_SECONDS
from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.errors import DigestMismatch, DriverLost
from support.reconcile import archives_seen, scope_copies
from support.reconcile.copies import (
    DROP,
    STALLED,
    UID,
    WHOLE,
    after,
    attempts,
    begun,
    copy,
    job,
    later,
    plan_seen,
    said,
    trouble,
    world,
)

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.seen import CopySeen

HOUR = 3600
NAME = job_name(UID, 1)
SUCCEEDED = job(phase=JobPhase.SUCCEEDED)


def done(**changes: Any) -> CopySeen:
    """Return a copy that succeeded at NOW and was tidied."""
    seen = begun(**changes)
    around = world(jobs=(SUCCEEDED,), plan=plan_seen(), answer=WHOLE)
    decision = reconcile(seen, around)
    assert decision.actions == DROP
    return after(seen, decision)


def test_a_copy_that_succeeded_is_deleted_once_its_time_is_over() -> None:
    """A look comes at that time, and asks no store."""
    seen = done(ttlSecondsAfterFinished=HOUR)
    waiting = reconcile(seen, world(now=later(600)))
    assert (waiting.actions, waiting.again) == ((), HOUR - 600)
    assert waiting.status == seen.status
    over = world(now=later(HOUR))
    assert questions(seen, over) == frozenset()
    expired = reconcile(seen, over)
    assert expired.actions == (Expire(),)
    assert expired.again == LOOK_SECONDS


def test_a_copy_without_that_field_stays() -> None:
    """This holds however long it is done."""
    decision = reconcile(done(), world(now=later(10**7)))
    assert (decision.actions, decision.again) == ((), None)


def test_a_copy_is_tidied_before_it_expires() -> None:
    """A copy with a finalizer is not deleted: its leftovers in the stores go first."""
    seen = replace(done(ttlSecondsAfterFinished=0), finalizer=True)
    assert reconcile(seen, world(now=later(HOUR))).actions == DROP
    running = reconcile(seen, world(now=later(HOUR), jobs=(job(),)))
    assert (running.actions, running.again) == ((), LOOK_SECONDS)


def test_success_is_told_before_the_resource_goes() -> None:
    """Even with a time of zero, one look writes the status and a later one deletes."""
    seen = copy(ttlSecondsAfterFinished=0)
    decision = reconcile(seen, world(answer=WHOLE))
    assert decision.actions == ()
    assert decision.again == LOOK_SECONDS
    assert reconcile(after(seen, decision), world(now=later(2))).actions == (Expire(),)


def test_only_a_copy_that_succeeded_expires() -> None:
    """Failed, retried, running and suspended copies stay."""
    seen = begun(ttlSecondsAfterFinished=0)
    late = later(10**6)
    for error, final in ((DigestMismatch("no"), True), (DriverLost("gone"), False)):
        ended = job(phase=JobPhase.FAILED, trouble=trouble(error))
        failed = reconcile(seen, world(jobs=(ended,), plan=plan_seen()))
        assert (said(failed) == STALLED) == final
        again = reconcile(after(seen, failed), world(now=late, plan=plan_seen()))
        assert Expire() not in (*failed.actions, *again.actions)
    running = reconcile(seen, world(now=late, jobs=(job(),), plan=plan_seen()))
    assert Expire() not in running.actions
    suspended = begun(ttlSecondsAfterFinished=0, suspend=True)
    assert Expire() not in reconcile(suspended, world(now=late, plan=plan_seen())).actions


def test_a_copy_that_was_asked_to_run_again_does_not_expire() -> None:
    """Its target may be gone: the copy is done only after a new look."""
    seen = replace(done(ttlSecondsAfterFinished=0), requested_at="now")
    assert Expire() not in reconcile(seen, world(now=later(HOUR), answer=WHOLE)).actions


@pytest.mark.parametrize(
    ("answer", "expires"), [(scope_copies.WHOLE, True), (scope_copies.PARTLY, False)]
)
def test_a_scope_expires_only_with_all_its_streams_copied(answer: Any, *, expires: bool) -> None:
    """A failed stream needs a user, who reads its result."""
    seen = scope_copies.begun(ttlSecondsAfterFinished=0)
    decision = reconcile(seen, scope_copies.ended(answer))
    seen = replace(after(seen, decision), finalizer=False)
    later_on = reconcile(seen, world(now=later(HOUR), plan=None))
    assert (Expire() in later_on.actions) == expires


def test_the_jobs_of_a_copy_that_succeeded_go_after_their_time() -> None:
    """The status names the Job until then. No further action follows."""
    seen = replace(done(), status=done().status.model_copy(update={"job_ref": {"name": NAME}}))
    soon = reconcile(seen, world(now=later(599), job_seconds=600))
    assert (soon.actions, soon.again, soon.status) == ((), 1, seen.status)
    decision = reconcile(seen, world(now=later(600), job_seconds=600))
    assert decision.actions == (DeleteJob(NAME), DropControls())
    assert (decision.status.job_ref, decision.again) == (None, None)
    seen = after(seen, decision)
    rest = reconcile(seen, world(now=later(HOUR), job_seconds=600))
    assert (rest.actions, rest.again, rest.status) == ((), None, seen.status)


def test_jobs_of_attempts_that_failed_before_go_as_well() -> None:
    """They were kept while the copy was not done."""
    history = attempts("Failed", "Failed", "Failed", "Succeeded")
    status = done().status.model_copy(
        update={"history": history, "job_ref": {"name": job_name(UID, 4)}}
    )
    seen = replace(done(), status=status)
    decision = reconcile(seen, world(now=later(HOUR), job_seconds=600, job_history=2))
    deleted = [DeleteJob(job_name(UID, number)) for number in (2, 3, 4)]
    assert decision.actions == (*deleted, DropControls())


def test_the_job_of_an_archives_last_run_goes_between_two_runs() -> None:
    """The next run has a Job of its own."""
    seen = archives_seen.done()
    status = seen.status.model_copy(update={"job_ref": {"name": NAME}})
    seen = replace(seen, status=status)
    decision = reconcile_archive(seen, world(now=later(HOUR), job_seconds=600))
    assert DeleteJob(NAME) in decision.actions
    assert decision.status.job_ref is None


def test_a_driver_that_still_sweeps_an_archive_is_not_stopped() -> None:
    """Retention after a recorded run may take long. The Job is deleted afterwards."""
    seen = archives_seen.done(onDelete="Delete")
    status = seen.status.model_copy(update={"job_ref": {"name": NAME}})
    seen = replace(seen, status=status, finalizer=True)
    sweeping = world(now=later(HOUR), job_seconds=600, jobs=(job(),))
    decision = reconcile_archive(seen, sweeping)
    assert DeleteJob(NAME) not in decision.actions
    assert decision.again is not None
    ended = replace(sweeping, jobs=(SUCCEEDED,))
    assert DeleteJob(NAME) in reconcile_archive(seen, ended).actions


def test_a_job_stays_while_its_copy_is_not_done() -> None:
    """A final failure keeps the last Job, whose log has the details."""
    ended = job(phase=JobPhase.FAILED, trouble=trouble(DigestMismatch("no")))
    failed = reconcile(begun(), world(jobs=(ended,), plan=plan_seen(), job_seconds=600))
    seen = after(begun(), failed)
    around = world(now=later(10**6), jobs=(ended,), plan=plan_seen(), job_seconds=600)
    assert not any(isinstance(one, DeleteJob) for one in reconcile(seen, around).actions)


def test_an_archive_does_not_expire() -> None:
    """It has no such field: its runs are deleted with it if the spec says so."""
    assert "ttl_seconds_after_finished" not in StreamArchiveSpec.model_fields
    assert archives_seen.archive().time_to_live is None
