from dataclasses import replace

import pytest

from sluice.api.status.copy_status import StreamCopyStatus
from sluice.core.reconcile.copies.actions import (
    AddFinalizer,
    DeleteJob,
    DropPlan,
    HoldStores,
    StartJob,
    WriteControls,
    WritePlan,
)
from sluice.core.reconcile.copies.decide import questions, reconcile
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.world import Question, World
from sluice.core.reconcile.shared.jobs import JobPhase, job_name
from sluice.core.values.model import ArchivedRun, StoreAddress
from sluice.core.values.text import short_hash
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import MOST_PLAN_BYTES, Plan
from sluice.errors import (
    InvalidSpec,
    PermissionDenied,
    ProfileNotFound,
    SluiceError,
    SourceNotFound,
    StoreUnavailable,
    TargetExists,
)
from support.engine.plans import segment_plan, stream_plan, whole_plan
from support.reconcile.copies import (
    LONGER,
    NOW,
    PLAN,
    PLANNED,
    RECORDED,
    STALLED,
    STORE,
    SUSPENDED,
    UID,
    WORKING,
    after,
    attempts,
    begun,
    copy,
    job,
    later,
    message,
    plan_seen,
    reason,
    said,
    spec,
    trouble,
    world,
)


def test_a_new_copy_begins() -> None:
    """The finalizer comes before all other objects, and the Job comes last."""
    decision = reconcile(copy(), world(answer=PLANNED))
    assert decision.actions == (
        AddFinalizer(),
        HoldStores(),
        WritePlan(PLAN),
        WriteControls(),
        StartJob(1, PLAN),
    )
    assert said(decision) == WORKING
    assert reason(decision) == "Starting"
    assert message(decision) == "The driver starts; 1.0 kB to copy."


def test_the_status_tells_of_the_plan_and_the_attempt() -> None:
    """The status that precedes the Job names all objects of the copy."""
    status = reconcile(copy(), world(answer=PLANNED)).status
    assert status.observed_generation == 1
    assert status.copy_id == copy().copy_id
    assert status.plan_hash == PLAN.hash
    assert status.plan_ref is not None
    assert status.plan_ref.name == plan_name("orders", UID)
    assert status.job_ref is not None
    assert status.job_ref.name == job_name(UID, 1)
    assert (status.start_cut, status.end_cut) == ("0=0", "0=1000")
    assert status.start_time == NOW
    assert status.attempts == 1
    assert [(entry.attempt, entry.outcome) for entry in status.history] == [(1, None)]
    assert status.progress is not None
    assert (status.progress.bytes, status.progress.total_bytes) == (0, 1000)


def test_a_start_that_was_cut_off_is_begun_again_as_the_same_attempt() -> None:
    """If an operator died before the Job was made, the next one makes the same Job."""
    again = reconcile(begun(), world(answer=PLANNED, plan=plan_seen()))
    assert StartJob(1, PLAN) in again.actions
    assert again.status.attempts == 1
    assert len(again.status.history) == 1


@pytest.mark.parametrize(
    ("around", "why"),
    [
        (world(source=None), "StoreNotFound"),
        (world(target=None), "StoreNotFound"),
        (world(source=replace(STORE, ready=False, why="no answer")), "StoreNotReady"),
        (world(target=replace(STORE, ready=False, why="no answer")), "StoreNotReady"),
        (world(target=replace(STORE, deleting=True)), "StoreNotReady"),
    ],
)
def test_a_copy_waits_for_its_stores(around: World, why: str) -> None:
    """Without both stores no object is made, and the status names the missing store."""
    decision = reconcile(copy(), around)
    assert questions(copy(), around) == (
        {Question.STATE} if around.target and around.target.deleting else set()
    )
    assert decision.actions == ()
    assert said(decision) == WORKING
    assert reason(decision) == why
    assert "storeRef.name" in message(decision)
    assert decision.again is not None


def test_a_store_that_is_being_deleted_serves_the_copies_that_need_it() -> None:
    """A copy that has begun goes on with a store that waits for it."""
    leaving = replace(STORE, deleting=True)
    seen = begun()
    decision = reconcile(seen, world(source=leaving, target=leaving, answer=RECORDED))
    assert StartJob(1, PLAN) in decision.actions


def test_a_written_plan_is_followed() -> None:
    """The bounds in the ConfigMap hold, though the source has grown since."""
    seen = begun()
    decision = reconcile(seen, world(plan=plan_seen(), answer=Planned(plan=LONGER)))
    assert StartJob(1, PLAN) in decision.actions
    assert decision.status.plan_hash == PLAN.hash


def test_the_plan_of_a_driver_is_followed_before_the_written_one() -> None:
    """The plan in the store counts, and the ConfigMap is replaced by it."""
    recorded = Planned(plan=LONGER, recorded=True)
    decision = reconcile(begun(), world(plan=plan_seen(), answer=recorded))
    assert [action for action in decision.actions if isinstance(action, DropPlan | WritePlan)] == [
        DropPlan(),
        WritePlan(LONGER),
    ]
    assert StartJob(1, LONGER) in decision.actions
    assert decision.status.end_cut == "0=2000"


def test_a_written_plan_goes_by_the_stores_as_they_are_now() -> None:
    """A store that moved or has another login is found. The bounds stay."""
    moved = STORE.address.model_copy(update={"uri": "tcp://there:9090"})
    answer = Planned(plan=LONGER.model_copy(update={"target": moved}))
    decision = reconcile(begun(), world(plan=plan_seen(), answer=answer))
    expected = PLAN.model_copy(update={"target": moved})
    assert expected != PLAN
    assert decision.actions[2:4] == (DropPlan(), WritePlan(expected))
    assert decision.actions[-1] == StartJob(1, expected)
    assert decision.status.plan_hash == PLAN.hash


def test_a_written_plan_keeps_the_run_of_the_archive_that_it_is_of() -> None:
    """The bounds belong to that run, though another run was recorded since."""

    def planned(number: int, end: int) -> Plan:
        run = ArchivedRun(path="orders", run=number, sha256=f"{number}" * 64)
        stream = stream_plan(segment_plan(end))
        source = stream.sources[0].model_copy(update={"archive": run})
        address = StoreAddress(backend="s3", uri=f"s3://place-{number}", archive=run)
        return PLAN.model_copy(
            update={
                "sources": (address,),
                "streams": (stream.model_copy(update={"sources": (source,)}),),
            }
        )

    first, second = planned(1, 1000), planned(2, 2000)
    seen = after(copy(), reconcile(copy(), world(answer=Planned(plan=first))))
    around = world(plan=plan_seen(first), answer=Planned(plan=second))
    (found,) = [one.plan for one in reconcile(seen, around).actions if isinstance(one, WritePlan)]
    assert found.streams == first.streams
    assert found.sources[0].uri == "s3://place-2"
    assert found.sources[0].archive == first.sources[0].archive


def test_a_plan_that_the_status_does_not_know_is_made_anew() -> None:
    """A plan that no status names is that of an earlier run."""
    decision = reconcile(copy(), world(plan=plan_seen(), answer=Planned(plan=LONGER)))
    assert DropPlan() in decision.actions
    assert StartJob(1, LONGER) in decision.actions


@pytest.mark.parametrize("suspend", [False, True])
def test_a_plan_that_cannot_be_read_is_replaced(*, suspend: bool) -> None:
    """The damaged ConfigMap would prevent the writing of any other plan."""
    decision = reconcile(copy(suspend=suspend), world(damaged=True, answer=PLANNED))
    plans = [action for action in decision.actions if isinstance(action, DropPlan | WritePlan)]
    assert plans == [DropPlan(), WritePlan(PLAN)]


def test_a_plan_that_cannot_be_read_is_left_alone_while_a_driver_runs() -> None:
    """The driver has its own copy, and the plan in the store counts."""
    decision = reconcile(begun(), world(damaged=True, jobs=(job(),)))
    assert decision.actions == ()


@pytest.mark.parametrize("suspend", [False, True])
def test_a_plan_that_no_config_map_can_hold_stalls_the_copy(*, suspend: bool) -> None:
    """The API server would refuse it for ever. The status has the remedy, and nothing is made."""
    segments = [segment_plan(1 << 40, cuts=tuple(range(64)), number=n) for n in range(6000)]
    seen = copy(suspend=suspend)
    decision = reconcile(seen, world(answer=Planned(plan=whole_plan(stream_plan(*segments)))))
    assert (said(decision), reason(decision)) == (STALLED, "PlanTooLarge")
    assert message(decision) == (
        "spec.source.stream: the plan for 6000 segments takes 2.1 MB, and a ConfigMap holds "
        "983 kB of it. Copy it with `sluice run`, which needs no ConfigMap; nothing was made."
    )
    assert decision.actions == ()
    assert decision.status.plan_ref is None
    assert decision.again == 30


def test_the_longest_plan_leaves_room_in_its_config_map() -> None:
    """The API server counts all that a ConfigMap holds, up to 1 MiB."""
    assert MOST_PLAN_BYTES + (64 << 10) == 1 << 20


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (SourceNotFound("no stream in/orders", field="spec.source.stream"), True),
        (TargetExists("out/orders exists", field="spec.target.stream"), True),
        (PermissionDenied("the store refuses"), True),
        (StoreUnavailable("no connection"), False),
    ],
)
def test_what_stands_in_the_way_of_a_plan_is_said_and_looked_at_again(
    error: SluiceError, *, final: bool
) -> None:
    """A failure for a user stalls the copy, a passing failure does not. Both are retried."""
    why = trouble(error)
    decision = reconcile(copy(), world(trouble=why))
    assert said(decision) == (STALLED if final else WORKING)
    assert reason(decision) == why.reason
    assert decision.actions == ()
    assert decision.again is not None
    assert decision.status.retry_time == later(int(decision.again))
    assert decision.status.last_failure is not None
    assert decision.status.last_failure.attempt is None
    assert decision.status.attempts == 0


def test_a_copy_of_which_nothing_is_known_is_left_as_it_is() -> None:
    """A status of this generation without a condition would look healthy."""
    decision = reconcile(copy(), world())
    assert decision.status == copy().status
    assert decision.status.observed_generation == -1
    assert decision.actions == ()
    assert decision.again is not None


def test_nothing_is_asked_while_the_copy_waits_for_its_next_attempt() -> None:
    """Events in between do not shorten the wait and cost the store no call."""
    seen = copy()
    seen = after(seen, reconcile(seen, world(trouble=trouble(SourceNotFound("none")))))
    soon = world(now=later(10))
    assert questions(seen, soon) == set()
    decision = reconcile(seen, soon)
    assert decision.status == seen.status
    assert decision.again == 20
    assert questions(seen, world(now=later(30))) == {Question.STATE}
    assert StartJob(1, PLAN) in reconcile(seen, world(now=later(30), answer=PLANNED)).actions


@pytest.mark.parametrize(
    "error",
    [
        ProfileNotFound("there is no runtime profile 'big'", field="spec.runtime.profile"),
        InvalidSpec("8 is more than the profile allows", field="spec.runtime.executors"),
    ],
)
def test_a_runtime_that_is_not_to_be_had_costs_nothing_that_is_staged(error: SluiceError) -> None:
    """A missing profile stalls the copy, and the staged bytes stay."""
    seen = begun()
    why = trouble(error)
    decision = reconcile(seen, world(plan=plan_seen(), answer=RECORDED, profile=why))
    assert said(decision) == STALLED
    assert decision.actions == ()
    assert after(seen, decision).finalizer


@pytest.mark.parametrize("suspend", [False, True])
def test_a_store_that_is_no_good_for_a_copy_stalls_it(*, suspend: bool) -> None:
    """Only a user can mend it, so clients that wait for the copy stop. Nothing is dropped."""
    why = trouble(InvalidSpec("'s' is no store of live streams", field="spec.source.storeRef.name"))
    seen = copy(suspend=suspend)
    decision = reconcile(seen, world(source=why))
    assert (said(decision), reason(decision)) == (STALLED, "InvalidSpec")
    assert decision.actions == ()
    again = reconcile(after(seen, decision), world(now=later(100), source=why))
    assert again.status == decision.status
    mended = reconcile(after(seen, decision), world(now=later(100), answer=PLANNED))
    assert said(mended) == (SUSPENDED if suspend else WORKING)


def test_a_store_that_is_no_good_any_more_stalls_no_copy_that_runs() -> None:
    """The driver goes on with the addresses that it has."""
    why = trouble(InvalidSpec("'s' is no store of live streams", field="spec.source.storeRef.name"))
    decision = reconcile(begun(), world(source=why, jobs=(job(),), plan=plan_seen()))
    assert said(decision) == WORKING


def test_old_jobs_are_deleted_when_another_attempt_begins() -> None:
    """The last attempt's Job stays for inspection. Earlier Jobs are deleted."""
    history = attempts("Failed", "Failed", "Failed")
    seen = copy(
        status=StreamCopyStatus(observed_generation=1, attempts=3, history=history), finalizer=True
    )
    jobs = tuple(job(number, JobPhase.FAILED) for number in (1, 2, 3))
    decision = reconcile(seen, world(answer=RECORDED, jobs=jobs))
    deleted = [action for action in decision.actions if isinstance(action, DeleteJob)]
    assert deleted == [DeleteJob(job_name(UID, 1)), DeleteJob(job_name(UID, 2))]
    assert decision.actions[-1] == StartJob(4, PLAN)


def test_objects_of_an_older_version_are_deleted_by_the_names_that_they_have() -> None:
    """The older version's Jobs had numbers without zeros. The history has their names."""
    older = f"sluice-{short_hash(UID)}-"
    history = tuple(
        entry.model_copy(update={"job": f"{older}{entry.attempt}"})
        for entry in attempts("Failed", "Failed", "Failed")
    )
    seen = copy(
        status=StreamCopyStatus(observed_generation=1, attempts=3, history=history), finalizer=True
    )
    jobs = (job(3, JobPhase.FAILED, name=f"{older}3"),)
    decision = reconcile(seen, world(answer=RECORDED, jobs=jobs))
    deleted = [action for action in decision.actions if isinstance(action, DeleteJob)]
    assert deleted == [DeleteJob(f"{older}2")]
    assert decision.status.job_ref is not None
    assert decision.status.job_ref.name == job_name(UID, 4)


def test_a_driver_that_an_older_version_started_goes_on() -> None:
    """Its label and its owner identify it, and no other attempt begins."""
    older = job(name=f"sluice-{short_hash(UID)}-1")
    decision = reconcile(begun(), world(jobs=(older,), plan=plan_seen()))
    assert said(decision) == WORKING
    assert not any(isinstance(one, StartJob | DeleteJob) for one in decision.actions)


@pytest.mark.parametrize(("kept", "gone"), [(1, [1, 2]), (2, [1]), (3, [])])
def test_as_many_ended_attempts_keep_their_jobs_as_the_profile_says(
    kept: int, gone: list[int]
) -> None:
    """The latest Jobs stay. The others are deleted before the next attempt begins."""
    history = attempts("Failed", "Failed", "Failed")
    seen = copy(
        status=StreamCopyStatus(observed_generation=1, attempts=3, history=history), finalizer=True
    )
    jobs = tuple(job(number, JobPhase.FAILED) for number in (1, 2, 3))
    decision = reconcile(seen, world(answer=RECORDED, jobs=jobs, job_history=kept))
    deleted = [action for action in decision.actions if isinstance(action, DeleteJob)]
    assert deleted == [DeleteJob(job_name(UID, number)) for number in gone]


def test_what_an_old_job_leaves_that_went_by_its_age_is_deleted() -> None:
    """Kubernetes deletes Jobs a day after their end, but not the ConfigMaps beside them."""
    history = attempts("Failed", "Failed", "Failed")
    seen = copy(
        status=StreamCopyStatus(observed_generation=1, attempts=3, history=history), finalizer=True
    )
    decision = reconcile(seen, world(answer=RECORDED))
    deleted = [action for action in decision.actions if isinstance(action, DeleteJob)]
    assert deleted == [DeleteJob(job_name(UID, 2))]


@pytest.mark.parametrize("answer", [PLANNED, RECORDED, Planned(plan=LONGER)])
def test_a_plan_goes_along_when_its_store_moves(answer: Planned) -> None:
    """The bounds stay. Drivers get the address and the Secret that the StreamStore names now."""
    there = StoreAddress(uri="tcp://127.0.0.2:9090", secret="another")  # noqa: S106 - a name
    moved = answer.plan.model_copy(update={"source": there, "target": there})
    seen = after(copy(suspend=True), reconcile(copy(suspend=True), world(answer=PLANNED)))
    seen = replace(seen, generation=2, spec=spec())
    decision = reconcile(seen, world(plan=plan_seen(), answer=replace(answer, plan=moved)))
    written = PLAN.model_copy(update={"source": there, "target": there})
    found = [type(action) for action in decision.actions]
    assert found.index(DropPlan) < found.index(WritePlan)
    assert WritePlan(written) in decision.actions
    assert StartJob(1, written) in decision.actions
