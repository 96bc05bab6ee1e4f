"""The looks and actions of a ScopeCopy, at an API server in memory and a model store."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.status.common import ConditionType
from sluice.core.copy.steps import Verify
from sluice.core.reconcile.copies.actions import (
    Abandon,
    DropControls,
    DropPlan,
    Orphan,
    StartJob,
    WriteResults,
)
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.copies.statuses.results import results_hash
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.scope.scope import Counts
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.log import ScopeLog
from sluice.errors import StoreNotReady
from sluice.kube.api.kinds import CONFIG_MAP, JOB, POD, STREAM_STORE
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, controls_name, run_name
from sluice.kube.jobs.manifests import plan_of
from support.cases.resources import STORE, changed
from support.engine.scope_drivers import copy_scope
from support.engine.sources import copy_all, go
from support.kube.scope_bench import ScopeBench
from support.reconcile.copies import UID, message, reason

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> ScopeBench:
    """Return a new copy of three streams."""
    return ScopeBench(threads)


def test_the_first_look_is_a_plan(bench: ScopeBench) -> None:
    """The plan covers all streams and is written for users, for the driver, and per stream."""
    decision = bench.step()
    assert StartJob in [type(action) for action in decision.actions]
    for name in (plan_name("shop", UID), run_name(job_name(UID, 1))):
        plan = plan_of(bench.config_map(name) or {})
        assert plan is not None
        assert len(plan.streams) == 3
    assert [(one["stream"], one["state"]) for one in bench.results()] == [
        ("s001", "Planned"),
        ("s000", "Planned"),
        ("s002", "Planned"),
    ]
    job = bench.server.objects[JOB.name, "default", job_name(UID, 1)]
    assert job["metadata"]["ownerReferences"][0]["kind"] == "ScopeCopy"
    bench.begin()
    bench.server.objects.pop((JOB.name, "default", job_name(UID, 1)))
    world = bench.look().world
    assert isinstance(world.answer, Planned)
    assert world.plan is not None
    assert world.plan.plan.scope is not None
    assert world.results is not None


def test_a_copy_is_followed_to_its_end(bench: ScopeBench) -> None:
    """Each stream's result is published before the status reports the end. Nothing is left."""
    bench.step()
    plan = plan_of(bench.config_map(run_name(job_name(UID, 1))) or {})
    assert plan is not None
    assert copy_scope(plan, bench.store).is_over
    bench.end_job()
    situation = bench.look()
    assert isinstance(situation.world.answer, ScopeEnded)
    decision = bench.step()
    assert [type(action) for action in decision.actions] == [WriteResults]
    assert {one["state"] for one in bench.results()} == {"Copied"}
    assert all(one["digest"] for one in bench.results())
    bench.begin()
    decision = bench.step()
    assert reason(decision) == "Succeeded"
    assert Abandon() in decision.actions
    assert bench.body["metadata"]["finalizers"] == []
    assert not [name for name in bench.world.segments if "#" in name]
    assert bench.step().actions[-1] == DropControls()  # the driver ended long ago
    assert bench.server.all(JOB) == []
    assert bench.step().actions == ()


def test_the_store_tells_the_end_before_the_pod_does(bench: ScopeBench) -> None:
    """The copy succeeds while its driver's pod still runs. The cleanup follows the pod's end."""
    bench.step()
    plan = plan_of(bench.config_map(run_name(job_name(UID, 1))) or {})
    assert isinstance(plan, ScopeCopyPlan)
    bench.put_pod()
    assert bench.look().world.answer is None
    assert copy_scope(plan, bench.store).is_over
    assert isinstance(bench.look().world.answer, ScopeEnded)
    assert [type(action) for action in bench.step().actions] == [WriteResults]
    decision = bench.step()
    assert reason(decision) == "Succeeded"
    assert decision.actions == ()
    assert bench.step().actions == ()
    assert bench.body["metadata"]["finalizers"]
    bench.end_job()
    assert Abandon() in bench.step().actions
    assert bench.body["metadata"]["finalizers"] == []


def test_results_belong_to_the_answer(bench: ScopeBench) -> None:
    """Results of a plan differ from results of a finished copy."""
    bench.step()
    situation = bench.look()
    before = situation.world.results
    bench.perform(situation, WriteResults(()))
    assert bench.results() == []
    bench.server.objects.pop((JOB.name, "default", job_name(UID, 1)))
    assert bench.look().world.results == results_hash(())
    assert before != results_hash(())


def test_a_plan_that_somebody_spoiled_is_made_anew(bench: ScopeBench) -> None:
    """The damaged ConfigMap counts as no plan, and prevents the writing of another."""
    name = plan_name("shop", UID)
    bench.server.put(CONFIG_MAP, {"metadata": {"name": name}, "binaryData": {"plan.json.gz": ""}})
    assert bench.look().world.damaged
    decision = bench.step()
    assert DropPlan() in decision.actions
    assert plan_of(bench.config_map(name) or {}) is not None


@pytest.mark.parametrize("change", [{"parallelism": 2}, {"failurePolicy": "Stop"}])
def test_what_may_be_changed_reaches_the_driver(bench: ScopeBench, change: dict[str, Any]) -> None:
    """The operator remembers the settings that it sent. A new operator sends them again."""
    bench.step()
    assert bench.look().world.controls
    bench.body["spec"] |= change
    assert not bench.look().world.controls
    labels = child_labels(UID, "driver") | {ATTEMPT_LABEL: "1"}
    owner = {"uid": bench.server.objects[JOB.name, "default", job_name(UID, 1)]["metadata"]["uid"]}
    pod = {"name": "driver", "labels": labels, "ownerReferences": [owner]}
    bench.server.put(POD, {"metadata": pod, "status": {"phase": "Running"}})
    decision = bench.step()
    assert reason(decision) == "Copying"
    written = bench.config_map(controls_name("shop", UID)) or {}
    told = json.loads(written["data"]["controls.json"])
    assert (told["parallelism"], told["stopAtFailure"]) == (
        change.get("parallelism"),
        "failurePolicy" in change,
    )
    found = bench.look().world
    assert found.controls
    assert found.reading is not None
    assert found.reading.progress.streams == Counts(total=3)
    bench.begin()
    assert not bench.look().world.controls


def test_a_copy_that_is_deleted_leaves_nothing(bench: ScopeBench) -> None:
    """Whole streams stay. The log is deleted, and so are unfinished streams."""
    bench.step()
    plan = plan_of(bench.config_map(run_name(job_name(UID, 1))) or {})
    assert plan is not None
    situation = bench.look()
    log = ScopeLog(bench.store, situation.seen.copy_id, "out")
    log.begin(plan)
    copy_all(bench.store, plan.streams[0])
    driver = StreamCopyWork(plan.streams[1], 0, [bench.store], bench.store)
    driver.plan = driver.journal.begin(driver.plan)
    go(driver, bench.world, Verify)
    assert [name for name in bench.world.segments if "#" in name]
    bench.perform(situation, Abandon())
    assert not [name for name in bench.world.segments if "#" in name]
    assert bench.store.list_streams("out") == [plan.streams[0].target.stream]


@pytest.mark.parametrize(
    ("access", "spec", "field", "words"),
    [
        ({"scopes": ["out*"]}, {}, "spec.source.scope", "out*"),
        ({"scopes": ["in"]}, {}, "spec.target.scope", "in"),
        ({"operations": ["Create", "Append"]}, {}, "spec.source.storeRef.name", "Read"),
        ({"operations": ["Read", "Append"]}, {}, "spec.target.storeRef.name", "Create"),
        (
            {"operations": ["Read", "Create", "Append"]},
            {"sourceOnComplete": "Delete"},
            "spec.source.storeRef.name",
            "Delete",
        ),
    ],
)
def test_a_scope_is_used_as_its_store_allows(
    threads: ThreadPoolExecutor,
    access: dict[str, Any],
    spec: dict[str, Any],
    field: str,
    words: str,
) -> None:
    """Otherwise nothing begins, and the message names the field to change."""
    bench = ScopeBench(threads, **spec)
    bench.server.put(STREAM_STORE, changed(STORE, "spec.access", access))
    decision = bench.step()
    assert reason(decision) == "AccessDenied"
    assert message(decision).startswith(f"{field}: ")
    assert words in message(decision)
    assert StartJob not in [type(action) for action in decision.actions]


def test_what_is_left_behind_is_said(bench: ScopeBench) -> None:
    """An event names the remains, and a metric counts it by kind."""
    situation = bench.look()
    bench.perform(situation, Orphan("no way"))
    ((word, said),) = bench.said
    assert word == "Orphaned"
    assert said == (
        "the scope out in StreamStore 'local' may hold staging segments or unpublished streams of "
        f"the copy {situation.seen.copy_id}: no way"
    )
    assert 'sluice_orphaned_total{kind="ScopeCopy"} 1.0' in bench.metrics.text().decode()


def test_a_store_that_is_spoiled_is_waited_for(bench: ScopeBench) -> None:
    """As for any copy, the store exists and the message names its fault."""
    bench.server.put(STREAM_STORE, changed(STORE, "spec.pravega.controllerURI", "somewhere"))
    found = bench.look()
    assert isinstance(found.world.target, Trouble)
    assert found.seen.status.condition(ConditionType.READY) is None
    with pytest.raises(StoreNotReady, match="is invalid"):
        asyncio.run(bench.observer.stores(found))
