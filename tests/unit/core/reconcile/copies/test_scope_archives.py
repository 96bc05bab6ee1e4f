"""A ScopeCopy to or from archives: its status, and the plan that holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.archive.manifest import Parent
from sluice.core.reconcile.copies.actions import DropPlan, StartJob, WriteResults
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.copies.statuses.scope_archives import ScopeArchiveStatus
from sluice.core.reconcile.shared.jobs import JobPhase
from sluice.core.scope.scope import LeftOut, StreamState, Why
from sluice.core.workloads.answers import Planned, ScopeEnded
from support.reconcile.copies import DONE, after, job, message, plan_seen, reason, said, world
from support.reconcile.scope_archives import (
    ARCHIVED,
    ARCHIVING,
    BACK,
    BUCKET,
    RESTORED,
    RESTORING,
    UNPLANNED,
    WHOLE,
    archive_plan,
    restore_plan,
    restored,
    run_plan,
)
from support.reconcile.scope_copies import copied, ended, failed, published, reading, scope, status

if TYPE_CHECKING:
    from sluice.core.reconcile.copies.actions import Decision
    from sluice.core.reconcile.copies.seen import CopySeen
    from sluice.core.workloads.plan import Plan

UNTIL = {
    "storeRef": {"name": "archives"},
    "path": "backup/in",
    "until": "2026-05-04T14:00:00+02:00",
}


def begun(planned: Planned, **changes: Any) -> CopySeen:
    """Return a copy whose first attempt was begun with this plan."""
    seen = scope(**changes)
    return after(seen, reconcile(seen, world(answer=planned)))


def over(answer: ScopeEnded, planned: Planned, **changes: Any) -> Decision:
    """Return the decision when the driver has ended with this answer."""
    return reconcile(begun(planned, **changes), ended(answer))


def approved(looked_at: Plan, now: Plan, **changes: Any) -> Decision:
    """Resume a copy whose plan a user has reviewed, when a new plan would differ."""
    changes = changes or ARCHIVED
    seen = scope(suspend=True, **changes)
    first = status(reconcile(seen, world(answer=Planned(plan=looked_at))))
    seen = scope(status=first, generation=2, **changes)
    return reconcile(seen, world(plan=plan_seen(looked_at), answer=Planned(plan=now)))


def started(decision: Decision) -> Plan:
    """Return the plan with which a driver is started."""
    last = decision.actions[-1]
    assert isinstance(last, StartJob)
    return last.plan


# -- to archives


def test_a_scope_is_planned_to_archives_stream_by_stream() -> None:
    """As with a scope, each stream is published as planned, and the message has the sizes."""
    seen = scope(**ARCHIVED)
    decision = reconcile(seen, world(answer=ARCHIVING))
    assert message(decision) == "The driver starts; 3 streams with 5.0 kB to archive."
    assert decision.actions[-1] == StartJob(1, ARCHIVING.plan)
    results = published(decision) or ()
    assert [(one.stream, one.target, one.state) for one in results] == [
        (name, name, StreamState.PLANNED) for name in "abc"
    ]
    found = status(decision)
    assert (found.source, found.target) == ("local/in", "archives/backup/in")
    assert found.streams is not None
    assert found.streams.summary == "0/3"


@pytest.mark.parametrize(
    ("staged", "whole", "why", "text"),
    [
        (100, False, "Archiving", "1 of 3 streams are archived; 100 B of 5.0 kB."),
        (
            5000,
            False,
            "Verifying",
            f"{ScopeArchiveStatus.comparing} 1 of 3 streams are archived.",
        ),
        (5000, True, "Publishing", "All runs are recorded; the driver tidies."),
    ],
)
def test_the_status_says_what_is_done_to_archives(
    staged: int, why: str, text: str, *, whole: bool
) -> None:
    """The words do not mention staging or publishing, which archives do not have."""
    around = world(
        jobs=(job(phase=JobPhase.RUNNING),),
        plan=plan_seen(ARCHIVING.plan),
        reading=reading(staged, published=whole, copied=1),
    )
    decision = reconcile(begun(ARCHIVING, **ARCHIVED), around)
    assert (reason(decision), message(decision)) == (why, text)


def test_a_scope_that_is_archived_says_where() -> None:
    """The message also tells the check before its runs were recorded."""
    decision = over(WHOLE, ARCHIVING, **ARCHIVED)
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert message(decision) == (
        "3 streams are archived in backup/in: 5.0 kB, 3 events. How far each goes was read within "
        "1.2 s."
    )
    verified = decision.status.condition("Verified")
    assert verified is not None
    assert verified.reason == "ReadBack"


def test_streams_that_are_not_archived_are_named() -> None:
    """The remedy mentions archives as well."""
    answer = replace(WHOLE, results=(copied("a", 3000), failed("b"), failed("c")))
    decision = over(answer, ARCHIVING, **ARCHIVED)
    assert reason(decision) == "PartiallySucceeded"
    assert message(decision).startswith(
        "1 of 3 streams are archived, 2 failed: b (SourceNotFound), c (SourceNotFound). To try "
        "the streams that are not archived again, annotate"
    )


def test_a_scope_that_was_moved_to_archives_is_gone() -> None:
    """The message says so, as for any move."""
    plan = archive_plan(run_plan("a"), move=True)
    answer = ScopeEnded(plan=plan, results=(copied("a"),))
    decision = over(answer, Planned(plan=plan), sourceOnComplete="Delete", **ARCHIVED)
    assert message(decision).endswith(" Scope in is deleted.")


def test_an_approved_plan_of_runs_holds_while_it_can_be_followed() -> None:
    """New streams do not change the plan that a user has reviewed."""
    decision = approved(
        archive_plan(run_plan("a"), run_plan("gone")),
        archive_plan(run_plan("a"), run_plan("new")),
    )
    assert DropPlan() not in decision.actions
    assert started(decision).runs == (run_plan("a"), run_plan("gone"))


def test_a_plan_of_runs_is_made_anew_when_an_archive_has_another_run() -> None:
    """A run adds only to the last existing run."""
    now = archive_plan(run_plan("a", parent=Parent(run=1, sha256="e" * 64)), run_plan("b"))
    decision = approved(archive_plan(run_plan("a"), run_plan("b")), now)
    assert DropPlan() in decision.actions
    assert started(decision) == now


# -- from archives


def test_streams_are_restored_from_the_runs_that_were_planned() -> None:
    """The plan that a user reviewed names them, and its store serves all runs."""
    later = restore_plan(restored("a", run=2), restored("b", run=2))
    decision = approved(RESTORING.plan, later, **RESTORED)
    plan = started(decision)
    assert plan.streams == RESTORING.plan.streams
    assert plan.sources == (BUCKET,)
    assert DropPlan() not in decision.actions


@pytest.mark.parametrize("turned", [False, True])
def test_what_a_driver_is_to_plan_is_no_plan_that_was_approved(*, turned: bool) -> None:
    """The store changed from a bucket to a volume meanwhile, or the other way round."""
    before, now = (UNPLANNED, RESTORING.plan) if turned else (RESTORING.plan, UNPLANNED)
    decision = approved(before, now, **RESTORED)
    assert started(decision) == now
    assert DropPlan() in decision.actions


@pytest.mark.parametrize(
    ("source", "how_far"),
    [
        (RESTORED["source"], "Each is as the last run of its archive has it."),
        (
            {"archive": UNTIL},
            "Each is as the last run of its archive up to 2026-05-04T12:00:00Z has it.",
        ),
    ],
)
def test_a_restored_scope_says_up_to_when(source: dict[str, Any], how_far: str) -> None:
    """No bounds were read in a live store."""
    decision = over(BACK, RESTORING, source=source)
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert message(decision) == f"2 streams are copied to scope out: 2.0 kB, 2 events. {how_far}"
    assert (status(decision).source, status(decision).target) == ("archives/backup/in", "local/out")


def test_archives_without_a_run_in_time_are_counted() -> None:
    """They are left out, as streams that did not exist yet."""
    plan = restore_plan(left_out=(LeftOut(why=Why.LATER, count=3, streams=("a", "b", "c")),))
    answer = ScopeEnded(plan=plan, results=())
    seen = scope(source={"archive": UNTIL})
    decision = reconcile(seen, world(answer=answer))
    assert decision.actions == (WriteResults(()),)
    decision = reconcile(seen, world(answer=answer, results=results_hash(())))
    assert message(decision) == (
        "No stream of the archives in backup/in is to be copied: nothing is selected. 3 streams "
        "are left out."
    )
    assert [(one.reason, one.count) for one in status(decision).left_out] == [("Later", 3)]
