"""Restore drills of a StreamArchive: the whole operator, on stores in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.names import Format
from sluice.core.reconcile.copies.actions import StartDrill, StartJob
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.archive_layout import DATA
from sluice.kube.api.kinds import JOB, POD, STREAM_STORE
from sluice.kube.api.names import child_labels
from support.cases.resources import STORE, changed
from support.kube.archive_bench import SOURCE
from support.kube.drill_bench import SCRATCH, WEEKLY, DrillBench, started

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> DrillBench:
    """Return an archive with a run, at rest."""
    return DrillBench(threads)


def test_nothing_begins_before_its_time(bench: DrillBench) -> None:
    """An added schedule begins with its next time, and the operator looks again by then."""
    decision = bench.step()
    assert (bench.copy, decision.actions) == (None, ())
    assert bench.drill.next_time is not None
    assert decision.again is not None
    assert bench.verdict == ("", "", "")


def test_a_drill_restores_the_last_run_and_leaves_nothing(bench: DrillBench) -> None:
    """The condition tells run, bytes and events. No stream, StreamCopy or finalizer stays."""
    before = bench.world.bytes_of(SOURCE)
    bench.due()
    bench.step()
    bench.copy_step()
    bench.restore()
    assert bench.world.bytes_of(SCRATCH) == before
    bench.copy_step()
    bench.finish()
    status, reason, message = bench.verdict
    assert (status, reason) == ("True", "DrillPassed")
    assert message.startswith("Run 1 was restored: ")
    drill = bench.drill
    assert (drill.result, drill.run, drill.last_success_run, drill.scratch) == (
        "Passed",
        1,
        1,
        False,
    )
    assert drill.bytes == sum(map(len, before))
    assert (bench.copy, bench.scratch()) == (None, False)
    assert bench.body["metadata"]["finalizers"] == []
    assert bench.said == [(reason, message)]


def test_what_the_runs_said_stays(bench: DrillBench) -> None:
    """A drill is no run: it changes neither Ready nor the time of the last successful run."""

    def of_runs() -> list[object]:
        status = bench.body["status"]
        return [
            [one for one in status["conditions"] if one["type"] != "RestoreVerified"],
            status["lastSuccessTime"],
            status["runKey"],
            status["archive"],
        ]

    before = of_runs()
    bench.whole_drill()
    assert of_runs() == before


def damage(bench: DrillBench) -> str:
    """Change a byte of an object with events. Return its name."""
    name = next(one.name for one in bench.objects.list() if one.name.startswith(DATA))
    data = bytearray(bench.objects.get(name) or b"")
    data[-1] ^= 1
    bench.objects.put(name, bytes(data))
    return name


def test_a_damaged_object_is_named(bench: DrillBench) -> None:
    """The drill fails for good, the condition names the object, and the scratch stream goes."""
    name = damage(bench)
    report = bench.whole_drill()
    assert report.error is not None
    status, reason, message = bench.verdict
    assert (status, reason) == ("False", "ArchiveDamaged")
    assert name.rsplit("/", 1)[-1] in message
    assert (bench.drill.result, bench.scratch(), bench.copy) == ("Failed", False, None)
    assert bench.said == [(reason, message)]


def test_a_failure_stays_until_a_drill_passes(bench: DrillBench) -> None:
    """A drill that cannot run does not withdraw the failure."""
    damage(bench)
    bench.whole_drill()
    failed = bench.verdict
    bench.server.put(STREAM_STORE, changed(STORE, "spec.access", {"operations": ["Read"]}))
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"
    assert bench.verdict == failed
    assert [one for one, _ in bench.said] == ["ArchiveDamaged", "DrillNotRun"]


def test_a_drill_without_a_right_is_no_failed_backup(bench: DrillBench) -> None:
    """The archive stays ready. The drill waits, names the cause, and begins when it may."""
    bench.server.put(STREAM_STORE, changed(STORE, "spec.access", {"operations": ["Read"]}))
    bench.due()
    bench.step()
    status, reason, message = bench.verdict
    assert (status, reason) == ("Unknown", "DrillNotRun")
    assert "does not allow to Append and Create and Delete" in message
    before = bench.body["status"]
    assert bench.step().actions == ()
    assert bench.body["status"]["drill"] == before["drill"]
    bench.server.put(STREAM_STORE, changed(STORE, "metadata.uid", "store"))
    bench.step()
    assert bench.copy is not None


def test_a_drill_pauses_for_a_run(bench: DrillBench) -> None:
    """The run waits until the drill's driver has stopped. The drill goes on after the run."""
    started(bench)
    bench.ask("now")
    decision = bench.step()
    assert StartJob not in [type(one) for one in decision.actions]
    assert bench.copy is not None
    assert bench.copy["spec"]["suspend"] is True
    bench.copy_step()  # the operator deletes the drill's Job
    uid = bench.copy["metadata"]["uid"]
    owner = {"kind": "Job", "name": job_name(uid, 1), "uid": "job", "controller": True}
    meta = {"name": "late", "labels": child_labels(uid, "driver"), "ownerReferences": [owner]}
    bench.server.put(POD, {"metadata": meta, "status": {"phase": "Running"}})
    assert StartJob not in [type(one) for one in bench.step().actions]
    bench.server.objects.pop((POD.name, "default", "late"))
    assert StartJob in [type(one) for one in bench.step().actions]
    bench.drive(2)
    bench.step()
    bench.settle()
    assert bench.copy["spec"]["suspend"] is False
    bench.copy_step()
    bench.restore(2)
    bench.copy_step()
    bench.finish()
    assert bench.verdict[0] == "True"
    assert bench.drill.run == 1


def test_a_drill_waits_for_a_run_that_goes_on(threads: ThreadPoolExecutor) -> None:
    """A drill that is due during a run begins after the run."""
    bench = DrillBench(threads)
    bench.ask("now")
    bench.step()
    bench.put_pod(2, "Running")
    bench.due()
    bench.step()
    assert bench.copy is None
    bench.drive(2)
    bench.step()
    bench.step()
    assert bench.copy is not None
    assert bench.copy["spec"]["source"]["archive"]["run"] == 2


def test_a_drill_waits_for_the_driver_of_a_run_that_is_recorded(
    bench: DrillBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver still removes old runs and sweeps."""
    bench.ask("now")
    bench.step()
    bench.put_pod(2, "Running")
    with monkeypatch.context() as patch:
        patch.setattr(bench, "end", lambda _: None)
        bench.drive(2)
    assert bench.look().world.jobs[-1].active
    bench.step()
    bench.due()
    bench.step()
    assert bench.copy is None
    bench.end(2)
    bench.step()
    assert bench.copy is not None


def test_an_operator_killed_before_the_copy_is_made_makes_it(bench: DrillBench) -> None:
    """The status records that a drill has begun before any part of it exists."""
    bench.due()
    situation = bench.look()
    bench.body["status"] = bench.workings.decide(situation).status.dump()
    bench.begin()
    assert any(isinstance(one, StartDrill) for one in bench.step().actions)
    assert bench.copy is not None


def test_a_lost_status_loses_no_drill(bench: DrillBench) -> None:
    """The StreamCopy names the run that it restores. The drill's remains are deleted."""
    started(bench)
    bench.restore()
    bench.copy_step()
    assert bench.scratch()
    bench.body["status"].pop("drill")
    bench.begin()
    bench.finish()
    assert (bench.scratch(), bench.copy) == (False, None)
    assert bench.verdict[0] == "True"


def test_a_target_that_is_changed_while_a_drill_goes_on_leaves_nothing_at_the_old_one(
    bench: DrillBench,
) -> None:
    """The status names the place where the drill works."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.body["spec"]["verify"] = WEEKLY | {
        "target": {"storeRef": {"name": "local"}, "scope": "elsewhere"}
    }
    bench.finish()
    assert (bench.scratch(), bench.copy) == (False, None)


def test_a_drill_runs_as_the_archive_does(threads: ThreadPoolExecutor) -> None:
    """The drill has the archive's limits and pod sizes, in the form in which a user wrote them."""
    driver = {"resources": {"cpu": "500m", "memory": "1Gi"}}
    running = {"limits": {"bytesPerSecond": "1Mi"}, "runtime": {"driver": driver}}
    bench = DrillBench(threads, **running, backoffLimit=2)
    bench.due()
    bench.step()
    assert bench.copy is not None
    spec = bench.copy["spec"]
    assert {part: spec[part] for part in running} == running
    assert (spec["backoffLimit"], "suspend" in spec) == (2, False)


def test_a_driver_killed_midway_is_followed_by_one_that_passes(bench: DrillBench) -> None:
    """The drill goes on with another attempt, as every copy does."""
    started(bench)
    bench.server.objects = {
        key: one for key, one in bench.server.objects.items() if key[0] != JOB.name
    }
    bench.begin()
    bench.copy_step()
    bench.restore()
    bench.copy_step()
    bench.finish()
    assert (bench.verdict[0], bench.scratch()) == ("True", False)


def test_a_drill_that_is_not_done_when_the_next_is_due_gives_way(bench: DrillBench) -> None:
    """The old drill counts as not run, and nothing of it is left when the next one begins."""
    started(bench)
    bench.due()
    bench.step()
    assert bench.verdict[1] == "DrillNotRun"
    assert bench.drill.result == "NotRun"
    for _ in range(3):
        bench.copy_step()
        bench.server.objects = {
            key: one for key, one in bench.server.objects.items() if key[0] != JOB.name
        }
    assert (bench.copy, bench.scratch()) == (None, False)
    for _ in range(3):
        bench.step()
    assert bench.copy is not None


def test_drills_take_turns_with_the_runs(threads: ThreadPoolExecutor) -> None:
    """Drills take the last run first, then older runs in turn, then the last one again."""
    bench = DrillBench(threads, verify=WEEKLY | {"sample": "Rotate"})
    bench.ask("again")
    bench.run(2)
    bench.settle()
    drilled = []
    for _ in range(3):
        bench.whole_drill()
        drilled.append(bench.drill.last_success_run)
    assert drilled == [2, 1, 2]


@pytest.mark.parametrize("form", Format)
def test_each_format_is_drilled(threads: ThreadPoolExecutor, form: Format) -> None:
    """All formats can be restored, so all can be drilled."""
    bench = DrillBench(threads, format=form.value)
    bench.whole_drill()
    assert (bench.verdict[0], bench.scratch()) == ("True", False)
