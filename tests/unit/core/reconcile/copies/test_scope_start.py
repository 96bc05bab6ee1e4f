"""The start of a ScopeCopy: its plan, its published streams, its first driver."""

from dataclasses import replace
from functools import cache
from random import Random

import pytest

from sluice.api.status.scope_status import LeftOutCount
from sluice.core.reconcile.copies.actions import (
    AddFinalizer,
    DropPlan,
    HoldStores,
    StartJob,
    WriteControls,
    WritePlan,
    WriteResults,
)
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.statuses.results import results_hash, results_name
from sluice.core.reconcile.copies.world import PlanSeen, Question, World
from sluice.core.scope.scope import StreamState
from sluice.core.workloads import plan as plan_module
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import MOST_PLAN_BYTES, Plan, compressed, expanded
from sluice.core.workloads.scope_log import planned_results
from sluice.errors import SluiceError, SourceNotFound, StoreUnavailable, TargetExists
from support.reconcile.copies import (
    STALLED,
    SUSPENDED,
    UID,
    WORKING,
    after,
    message,
    plan_seen,
    reason,
    said,
    trouble,
    world,
)
from support.reconcile.scope_copies import (
    LEFT_OUT,
    PLAN,
    PLANNED,
    RECORDED,
    TAKEN,
    begun,
    copied,
    failed,
    published,
    scope,
    scope_plan,
    status,
    stream,
)

RESULTS = planned_results(PLAN)


def test_a_scope_is_planned_and_its_driver_starts() -> None:
    """The plan and each of its streams are published before the driver is made."""
    assert questions(scope(), world()) == {Question.STATE}
    decision = reconcile(scope(), world(answer=PLANNED))
    assert decision.actions == (
        AddFinalizer(),
        HoldStores(),
        WriteResults(RESULTS),
        WritePlan(PLAN),
        WriteControls(),
        StartJob(1, PLAN),
    )
    assert (said(decision), reason(decision)) == (WORKING, "Starting")
    assert message(decision) == "The driver starts; 3 streams with 5.0 kB to copy."


def test_the_status_tells_of_the_streams_before_any_is_copied() -> None:
    """It has counts, bounds, and the streams and tables that are not copied."""
    plan = scope_plan(
        stream("a"),
        stream("b"),
        left_out=LEFT_OUT,
        tables=("users",),
        settled=(failed("bad"), copied("old")),
    )
    found = status(reconcile(scope(), world(answer=Planned(plan=plan))))
    assert (found.source, found.run, found.plan_hash) == ("local/in", 1, plan.hash)
    assert found.bounds is not None
    assert found.bounds.spread_milliseconds == 1250
    assert round(found.bounds.begin_time.timestamp() * 1000) == TAKEN
    assert found.streams is not None
    counts = found.streams
    assert (counts.total, counts.copied, counts.failed, counts.stopped) == (4, 1, 1, 0)
    assert (counts.left_out, counts.summary) == (3, "1/4")
    assert [(one.stream, one.reason) for one in found.failed_streams] == [("bad", "SourceNotFound")]
    assert found.left_out == (
        LeftOutCount(reason="Internal", count=2),
        LeftOutCount(reason="Exists", count=1),
    )
    assert found.key_value_tables == ("users",)
    assert [one.name for one in found.result_refs] == [results_name("shop", UID, 0)]
    assert found.progress is not None
    assert (found.progress.bytes, found.progress.total_bytes, found.progress.events) == (0, 2000, 2)


def test_a_suspended_scope_can_be_looked_at_stream_by_stream() -> None:
    """With `suspend: true` the plan and its streams are published, and no driver is made."""
    seen = scope(suspend=True)
    decision = reconcile(seen, world(answer=PLANNED))
    assert said(decision) == SUSPENDED
    assert decision.actions == (WriteResults(RESULTS), WritePlan(PLAN))
    assert {result.state for result in published(decision) or ()} == {StreamState.PLANNED}
    counts = status(decision).streams
    assert counts is not None
    assert counts.summary == "0/3"
    seen = after(seen, decision)
    assert questions(seen, world(plan=plan_seen(PLAN))) == set()


def test_results_that_are_published_are_not_published_again() -> None:
    """Another attempt of the same plan does not publish its streams again."""
    around = world(answer=RECORDED, plan=plan_seen(PLAN), results=results_hash(RESULTS))
    decision = reconcile(begun(), around)
    assert published(decision) is None
    assert WritePlan(PLAN) in decision.actions


def test_an_approved_plan_holds_with_all_that_it_says_of_the_scope() -> None:
    """The copy has the streams that a user has reviewed, and leaves out the same ones."""
    seen = scope(suspend=True)
    looked_at = scope_plan(stream("a"), left_out=LEFT_OUT)
    seen = after(seen, reconcile(seen, world(answer=Planned(plan=looked_at))))
    seen = scope(status=seen.status, generation=2)
    answer = Planned(plan=scope_plan(stream("a"), stream("new")))
    decision = reconcile(seen, world(plan=plan_seen(looked_at), answer=answer))
    assert decision.actions[-1] == StartJob(1, looked_at)
    assert DropPlan() not in decision.actions


def test_the_plan_of_a_driver_is_followed_before_the_written_one() -> None:
    """The plan in the store counts, and replaces the published one."""
    recorded = scope_plan(stream("a"), stream("new"))
    around = world(
        plan=PlanSeen(plan=PLAN, name="p"),
        answer=Planned(plan=recorded, recorded=True),
        results=results_hash(RESULTS),
    )
    decision = reconcile(begun(), around)
    assert decision.actions[2:5] == (
        WriteResults(planned_results(recorded)),
        DropPlan(),
        WritePlan(recorded),
    )
    assert decision.actions[-1] == StartJob(1, recorded)
    counts = status(decision).streams
    assert counts is not None
    assert counts.total == 2


@pytest.mark.parametrize(
    ("around", "why"),
    [
        (world(source=None), "StoreNotFound"),
        (world(target=None), "StoreNotFound"),
    ],
)
def test_a_scope_waits_for_its_stores(around: World, why: str) -> None:
    """Without both stores no question is asked and no object is made."""
    assert questions(scope(), around) == set()
    decision = reconcile(scope(), around)
    assert (said(decision), reason(decision), decision.actions) == (WORKING, why, ())


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (SourceNotFound("there is no scope in", field="spec.source.scope"), True),
        (TargetExists("3 streams exist: a, b, c", field="spec.onExists"), True),
        (StoreUnavailable("no connection"), False),
    ],
)
def test_what_keeps_all_of_it_from_beginning_is_said(error: SluiceError, *, final: bool) -> None:
    """The operator checks it again, and no stream begins before."""
    decision = reconcile(scope(), world(trouble=trouble(error)))
    assert (said(decision), reason(decision)) == (STALLED if final else WORKING, error.reason)
    assert decision.actions == ()
    assert decision.again is not None


@cache
def long_plan(streams: int) -> Plan:
    """Return a plan of many streams that compress badly, as identities do."""
    random = Random(1)  # noqa: S311 - data, no secret
    plans = [stream(f"{random.randbytes(120).hex()}") for _ in range(streams)]
    return scope_plan(*plans)


@pytest.mark.parametrize("suspend", [False, True])
def test_a_plan_that_no_config_map_can_hold_stalls_the_copy(*, suspend: bool) -> None:
    """Its compressed size counts, and the message has its number of streams."""
    plan = long_plan(8000)
    decision = reconcile(scope(suspend=suspend), world(answer=Planned(plan=plan)))
    assert (said(decision), reason(decision)) == (STALLED, "PlanTooLarge")
    assert message(decision).startswith("spec.streams: the plan for 8000 streams takes 1.")
    assert "Select fewer streams" in message(decision)
    assert decision.actions == ()


def test_a_suspended_scope_has_its_streams_published_though_an_operator_was_killed() -> None:
    """The next operator writes the missing parts, and stops at the plan."""
    seen = scope(suspend=True)
    decision = reconcile(seen, world(answer=PLANNED))
    seen = after(seen, decision)
    done: set[type] = set()
    for action in decision.actions:
        around = world(
            plan=plan_seen(PLAN) if WritePlan in done else None,
            results=results_hash(RESULTS) if WriteResults in done else None,
        )
        assert questions(seen, around) == {Question.STATE}
        found = reconcile(seen, replace(around, answer=PLANNED))
        assert {type(one) for one in found.actions} >= {WriteResults, WritePlan} - done
        done.add(type(action))
    assert done == {WriteResults, WritePlan}


def test_a_plan_that_no_operator_could_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds however small its compressed size is."""
    monkeypatch.setattr(plan_module, "MOST_PLAN_JSON", 1000)
    decision = reconcile(scope(), world(answer=PLANNED))
    assert (said(decision), reason(decision)) == (STALLED, "PlanTooLarge")
    assert "the operator reads 1.0 kB of it" in message(decision)
    assert decision.actions == ()


def test_a_plan_counts_by_its_compressed_size() -> None:
    """Thousands of ordinary streams fit into a ConfigMap."""
    plan = scope_plan(*(stream(f"orders-{number:05}") for number in range(4000)))
    assert len(plan.model_dump_json()) > MOST_PLAN_BYTES
    assert len(compressed(plan)) < MOST_PLAN_BYTES
    assert StartJob(1, plan) in reconcile(scope(), world(answer=Planned(plan=plan))).actions


def test_a_compressed_plan_reads_back() -> None:
    """It compresses to the same bytes each time, and damaged bytes are refused."""
    packed = compressed(PLAN)
    assert packed == compressed(expanded(packed))
    assert expanded(packed) == PLAN
    for damaged in (b"", b"plan", packed[:-9], packed[:20] + b"\0" + packed[21:]):
        with pytest.raises(ValueError):  # noqa: PT011 - any of them
            expanded(damaged)
