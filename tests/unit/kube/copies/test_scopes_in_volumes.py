"""A ScopeCopy from archives in a volume, which only pods can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.reconcile.copies.actions import Abandon, DropControls, WriteResults
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.workloads.answers import ScopeEnded, ScopePlanned
from sluice.core.workloads.unplanned import Unplanned
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.log import ScopeLog
from sluice.kube.api.kinds import JOB
from sluice.kube.jobs.manifests import plan_of
from support.cases.resources import SCOPE
from support.kube.scope_bench import ScopeBench
from support.reconcile.copies import DONE, UID, message, reason, said
from support.reconcile.scope_archives import ARCHIVED

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from sluice.core.workloads.plan import Plan

NAMES = ["s000", "s001", "s002"]
RESTORED = {"source": {"archive": {"storeRef": {"name": "shelf"}, "path": "backup/in"}}}


@pytest.fixture
def bench(threads: ThreadPoolExecutor, tmp_path: Path) -> ScopeBench:
    """Return a new copy of three archives, without a plan."""
    made = ScopeBench(threads, folder=tmp_path, **ARCHIVED)
    made.step()
    made.drive()
    return applied(made)


def applied(bench: ScopeBench, **spec: Any) -> ScopeBench:
    """Apply the copy anew."""
    bench.body["spec"] = {**SCOPE["spec"], **RESTORED, **spec}
    bench.body["metadata"] |= {"generation": 1, "finalizers": []}
    bench.body["metadata"].pop("annotations", None)
    bench.body.pop("status", None)
    kept = {key: one for key, one in bench.server.objects.items() if key[0] not in MADE}
    bench.server.objects = kept
    bench.begin()
    return bench


MADE = {"Job", "ConfigMap", "Pod"}


def ask_again(bench: ScopeBench, token: str) -> None:
    """Ask for another run."""
    bench.body["metadata"]["annotations"] = {"sluice.dev/requestedAt": token}


def written(bench: ScopeBench) -> Plan | None:
    """Return the plan that users can read."""
    return plan_of(bench.config_map(plan_name("shop", UID)) or {})


def damaged(bench: ScopeBench, name: str) -> Callable[[], None]:
    """Damage an archive. Return a function that repairs it."""
    objects = bench.root.archive(f"backup/in/{name}").objects
    (data,) = [one.name for one in objects.list("data/")]
    whole = objects.get(data)
    assert whole is not None
    objects.put(data, b"something else")
    return lambda: objects.put(data, whole)


def states(bench: ScopeBench) -> dict[str, str]:
    """Return the published state of each stream."""
    return {one["stream"]: one["state"] for one in bench.results()}


def test_what_is_in_a_volume_its_driver_plans(bench: ScopeBench) -> None:
    """The driver gets the request, and the claim where it looks for it."""
    decision = bench.step()
    assert message(decision) == "The driver starts; what the archives hold to copy."
    plan = bench.plan()
    assert isinstance(plan, Unplanned)
    assert plan.scoping is not None
    assert (plan.run, plan.scoping.source, plan.scoping.target) == (1, "backup/in", "out")
    assert WriteResults not in [type(action) for action in decision.actions]
    job = bench.server.objects[JOB.name, "default", job_name(UID, 1)]
    pod = job["spec"]["template"]["spec"]
    claim = {"name": "archives-0", "persistentVolumeClaim": {"claimName": "archives"}}
    assert claim in pod["volumes"]
    assert "--plan=/etc/sluice/run/plan.json" in pod["containers"][0]["args"]


def test_what_its_driver_has_planned_is_published_while_it_runs(bench: ScopeBench) -> None:
    """The operator publishes the plan, each stream, their number, and their progress."""
    bench.step()
    bench.put_pod()
    assert message(bench.step()) == "The driver looks what there is to copy."
    assert isinstance(written(bench), Unplanned)
    plan = bench.planned()
    ScopeLog(bench.store, bench.look().seen.copy_id, "out").begin(plan)
    decision = bench.step()
    assert message(decision) == "None of 3 streams are copied; 0 B of 521 B."
    assert written(bench) == plan
    assert states(bench) == dict.fromkeys(NAMES, "Planned")
    status = bench.body["status"]
    assert (status["planHash"], status["streams"]["total"]) == (plan.hash, 3)
    assert status["bounds"]["beginTime"]
    world = bench.look().world
    assert world.answer is None
    assert world.reading is not None
    assert world.reading.progress.total == plan.bytes
    assert bench.step().actions == ()


def test_a_scope_is_restored_from_a_volume(bench: ScopeBench) -> None:
    """The operator itself finds each stream in the target. Nothing else is left."""
    bench.step()
    assert bench.drive().is_over
    assert isinstance(bench.look().world.answer, ScopeEnded)
    bench.step()
    assert states(bench) == dict.fromkeys(NAMES, "Copied")
    assert all(one["digest"] for one in bench.results())
    decision = bench.step()
    assert (said(decision), reason(decision)) == (DONE, "Succeeded")
    assert message(decision).startswith("3 streams are copied to scope out: 521 B")
    assert bench.store.list_streams("out") == NAMES
    assert bench.body["metadata"]["finalizers"] == []
    assert not [name for name in bench.world.segments if "#" in name]
    assert bench.step().actions[-1] == DropControls()  # the driver ended long ago
    assert bench.server.all(JOB) == []
    assert bench.step().actions == ()


def test_what_has_failed_is_tried_again_in_another_run(bench: ScopeBench) -> None:
    """The driver of that run plans the failed streams and no others."""
    mend = damaged(bench, "s001")
    bench.step()
    bench.drive()
    bench.step()
    decision = bench.step()
    assert reason(decision) == "PartiallySucceeded"
    assert "2 of 3 streams are copied, 1 failed: s001 (ArchiveDamaged)" in message(decision)
    ask_again(bench, "first")
    bench.step()
    plan = bench.plan(2)
    assert isinstance(plan, Unplanned)
    assert plan.run == 2
    counts = bench.body["status"]["streams"]
    assert (counts["total"], counts["copied"], counts["failed"]) == (3, 2, 0)
    bench.drive(2)
    bench.step()
    assert reason(bench.step()) == "PartiallySucceeded"
    mend()
    ask_again(bench, "second")
    bench.step()
    assert [one.name for one in bench.planned(3).items] == ["s001"]
    bench.drive(3)
    bench.step()
    assert reason(bench.step()) == "Succeeded"
    assert bench.body["status"]["run"] == 3
    assert bench.store.list_streams("out") == NAMES


def test_a_run_that_its_driver_has_not_begun_is_the_next_ones(bench: ScopeBench) -> None:
    """An attempt may fail before it has planned. Results of the earlier run are not repeated."""
    damaged(bench, "s001")
    bench.step()
    bench.drive()
    bench.step()
    bench.step()
    ask_again(bench, "first")
    bench.step()
    job = bench.server.objects[JOB.name, "default", job_name(UID, 2)]
    failed = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-02T03:05:05Z"}
    job["status"] = {"conditions": [failed]}
    assert reason(bench.step()) == "DriverLost"
    bench.body["status"]["retryTime"] = "2026-01-02T03:05:06Z"
    bench.step()
    plan = bench.plan(3)
    assert isinstance(plan, Unplanned)
    assert plan.run == 2


def test_an_attempt_after_a_lost_one_goes_by_the_plan_of_that(bench: ScopeBench) -> None:
    """The plan is in the log, so no driver has to read the volume for it."""
    bench.step()
    plan = bench.planned()
    ScopeLog(bench.store, bench.look().seen.copy_id, "out").begin(plan)
    bench.server.objects.pop((JOB.name, "default", job_name(UID, 1)))
    answer = bench.look().world.answer
    assert answer == ScopePlanned(plan=plan, recorded=True)
    bench.step()
    assert written(bench) == plan


@pytest.mark.parametrize("how", ["asked again", "applied anew"])
def test_what_is_whole_is_found_by_another_driver(bench: ScopeBench, how: str) -> None:
    """The driver has nothing to do, and reports it where the operator looks."""
    bench.step()
    bench.drive()
    bench.step()
    bench.step()
    number = 2
    if how == "asked again":
        ask_again(bench, "now")
    else:
        number = 1
        applied(bench)
    bench.step()
    before = dict(bench.world.streams)
    assert bench.drive(number).is_over
    bench.step()
    decision = bench.step()
    assert reason(decision) == "Succeeded"
    assert message(decision).startswith("3 streams are copied to scope out")
    assert bench.world.streams == before
    assert not [name for name in bench.world.segments if "#" in name]


def test_a_scope_of_which_nothing_is_selected_is_not_made(bench: ScopeBench) -> None:
    """As for any copy, the log still records the end."""
    none = {"include": [{"type": "Exact", "value": "other"}]}
    target = {"storeRef": {"name": "local"}, "scope": "new", "scopePolicy": "CreateIfAbsent"}
    applied(bench, streams=none, target=target)
    bench.step()
    bench.drive()
    bench.step()
    decision = bench.step()
    assert reason(decision) == "Succeeded"
    assert "nothing is selected" in message(decision)
    assert "new" not in bench.world.scopes


def test_a_target_that_is_not_there_is_told_before_a_driver_starts(bench: ScopeBench) -> None:
    """The operator can check this without a driver."""
    applied(bench, target={"storeRef": {"name": "local"}, "scope": "new"})
    assert reason(bench.step()) == "TargetScopeNotFound"
    assert (JOB.name, "default", job_name(UID, 1)) not in bench.server.objects


def test_a_restore_from_a_volume_that_is_deleted_leaves_whole_streams_only(
    bench: ScopeBench,
) -> None:
    """Staged bytes are deleted though the source cannot be read, and also before any are staged."""
    bench.step()
    bench.perform(bench.look(), Abandon())
    plan = bench.planned()
    situation = bench.look()
    ScopeLog(bench.store, situation.seen.copy_id, "out").begin(plan)
    driver = StreamCopyWork(plan.streams[0], 0, [bench.root], bench.store)
    driver.plan = driver.journal.begin(driver.plan)
    assert [name for name in bench.world.segments if "#" in name]
    bench.perform(situation, Abandon())
    assert not [name for name in bench.world.segments if "#" in name]
    assert bench.store.list_streams("out") == []


def test_a_restore_from_a_volume_that_is_suspended_plans_nothing(bench: ScopeBench) -> None:
    """No driver runs that could read the volume."""
    bench.body["spec"]["suspend"] = True
    decision = bench.step()
    assert reason(decision) == "Suspended"
    assert isinstance(written(bench), Unplanned)
    bench.body["spec"]["suspend"] = False
    bench.step()
    assert bench.drive().is_over
