"""Restore drills of a StreamArchive: the whole operator, on stores in memory."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.archive.names import Format
from sluice.core.reconcile.copies.actions import DeleteDrill, DropScratch, StartDrill, StartJob
from sluice.core.reconcile.copies.statuses.base import job_name
from sluice.core.values import identity
from sluice.core.values.archive_layout import DATA
from sluice.core.values.model import StreamConfig
from sluice.errors import StoreUnavailable
from sluice.kube.api.kinds import JOB, POD, STREAM_ARCHIVE, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import child_labels
from sluice.kube.api.slim import slim
from sluice.kube.stores.dependents import StorePlace, stores_of
from support.cases.resources import BUCKET, STORE, changed
from support.kube.archive_bench import SOURCE
from support.kube.drill_bench import NAME, SCRATCH, SPARE, WEEKLY, DrillBench
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> DrillBench:
    """An archive with a run, which is at rest."""
    return DrillBench(threads)


def started(bench: DrillBench) -> None:
    """Begin a drill, up to the Job of its driver."""
    bench.due()
    bench.step()
    bench.copy_step()
    assert len(bench.server.all(JOB)) > 0


def test_nothing_begins_before_its_time(bench: DrillBench) -> None:
    """A schedule that is added begins with its next time; the operator looks again by then."""
    decision = bench.step()
    assert (bench.copy, decision.actions) == (None, ())
    assert bench.drill.next_time is not None
    assert decision.again is not None
    assert bench.verdict == ("", "", "")


def test_a_drill_restores_the_last_run_and_leaves_nothing(bench: DrillBench) -> None:
    """The condition tells run, bytes and events; neither stream, StreamCopy nor finalizer stays."""
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


def test_what_the_runs_said_stays(bench: DrillBench) -> None:
    """A drill is no run: it changes neither Ready nor the time of the last good run."""

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
    """The run fails for good, the condition names the object, and the scratch stream goes."""
    name = damage(bench)
    report = bench.whole_drill()
    assert report.error is not None
    status, reason, message = bench.verdict
    assert (status, reason) == ("False", "ArchiveDamaged")
    assert name.rsplit("/", 1)[-1] in message
    assert (bench.drill.result, bench.scratch(), bench.copy) == ("Failed", False, None)


def test_a_failure_stays_until_a_drill_passes(bench: DrillBench) -> None:
    """A drill that cannot run takes nothing back."""
    damage(bench)
    bench.whole_drill()
    failed = bench.verdict
    bench.server.put(STREAM_STORE, changed(STORE, "spec.access", {"operations": ["Read"]}))
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"
    assert bench.verdict == failed


def test_a_drill_without_a_right_is_no_failed_backup(bench: DrillBench) -> None:
    """The archive stays ready; the drill waits, says why, and begins once it may."""
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
    """The run waits until the drill's driver has stopped; the drill goes on after the run."""
    started(bench)
    bench.ask("now")
    decision = bench.step()
    assert StartJob not in [type(one) for one in decision.actions]
    assert bench.copy is not None
    assert bench.copy["spec"]["suspend"] is True
    bench.copy_step()  # its Job is deleted
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
    """Its time comes while a run works: it begins when that run has ended."""
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
    """It still removes old runs and sweeps."""
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
    """The status says that a drill has begun before anything of it exists."""
    bench.due()
    situation = bench.look()
    bench.body["status"] = bench.workings.decide(situation).status.dump()
    bench.begin()
    assert any(isinstance(one, StartDrill) for one in bench.step().actions)
    assert bench.copy is not None


def test_a_lost_status_loses_no_drill(bench: DrillBench) -> None:
    """The StreamCopy tells which run it restores; what it left is deleted."""
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
    """The status tells where it works."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.body["spec"]["verify"] = WEEKLY | {
        "target": {"storeRef": {"name": "local"}, "scope": "elsewhere"}
    }
    bench.finish()
    assert (bench.scratch(), bench.copy) == (False, None)


def test_a_drill_runs_as_the_archive_does(threads: ThreadPoolExecutor) -> None:
    """With its limits and the size of its pods, in the form in which a user wrote them."""
    driver = {"resources": {"cpu": "500m", "memory": "1Gi"}}
    running = {"limits": {"bytesPerSecond": "1Mi"}, "runtime": {"driver": driver}}
    bench = DrillBench(threads, **running, backoffLimit=2)
    bench.due()
    bench.step()
    assert bench.copy is not None
    spec = bench.copy["spec"]
    assert {part: spec[part] for part in running} == running
    assert (spec["backoffLimit"], "suspend" in spec) == (2, False)


def test_an_archive_that_is_orphaned_names_the_scratch_stream(bench: DrillBench) -> None:
    """It stays in the store then, as a user insists."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.body["metadata"]["annotations"] = {"sluice.dev/force-orphan": "true"}
    bench.delete()
    ((reason, message),) = bench.said
    assert reason == "Orphaned"
    assert str(SCRATCH) in message


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
    """It could not run, and nothing of it is left when the next one begins."""
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


def test_deleting_the_archive_deletes_the_scratch_stream_first(bench: DrillBench) -> None:
    """At the moment when it is whole and visible, and its StreamCopy is finished."""
    started(bench)
    bench.restore()
    bench.copy_step()
    bench.copy_step()
    assert bench.scratch()
    bench.delete()
    assert bench.body["metadata"]["finalizers"] != []
    bench.copy_step()
    bench.copy_step()
    decision = bench.step()
    assert DropScratch() in decision.actions
    assert not bench.scratch()
    assert (
        bench.server.body(STREAM_ARCHIVE, "orders") is None
        or bench.body["metadata"]["finalizers"] == []
    )


def test_a_store_that_is_away_keeps_the_archive_and_its_scratch_stream(bench: DrillBench) -> None:
    """The finalizer stays until the scratch stream is really gone."""
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    describe = type(bench.store).describe
    away = StoreUnavailable("away")

    def fail(*_: object) -> None:
        raise away

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(bench.store), "describe", fail)
        bench.step()
        assert bench.drill.scratch
        assert "not deleted yet" in (bench.drill.message or "")
        assert bench.body["metadata"]["finalizers"] != []
    assert type(bench.store).describe is describe
    bench.finish()
    assert (bench.scratch(), bench.drill.scratch) == (False, False)
    assert "not deleted yet" not in (bench.drill.message or "")


def test_a_stream_of_that_name_that_no_copy_made_is_left_alone(bench: DrillBench) -> None:
    """The drill cannot run then; the stream keeps its bytes."""
    bench.store.create_stream(SCRATCH, StreamConfig())
    bench.due()
    bench.step()
    bench.copy_step()
    bench.copy_step()
    bench.finish()
    assert bench.verdict[1] == "DrillNotRun"
    assert bench.scratch()
    assert bench.world.streams[SCRATCH].config.tags == ()


def test_what_a_killed_drill_left_is_deleted_even_without_its_copy(bench: DrillBench) -> None:
    """By its name and its tags: the next drill finds it, and the one after that passes."""
    left = StreamConfig(tags=identity.owner_tags("0" * 32))
    bench.store.create_stream(SCRATCH, left)
    bench.due()
    bench.step()
    bench.copy_step()
    bench.copy_step()
    bench.finish()
    assert not bench.scratch()
    bench.whole_drill()
    assert bench.verdict[0] == "True"


def test_a_copy_of_the_name_that_is_no_drill_is_not_touched(bench: DrillBench) -> None:
    """Even if its owner reference claims that it is one."""
    meta = {"name": NAME, "uid": "other", "generation": 1}
    meta["ownerReferences"] = [{"controller": True, "uid": bench.body["metadata"]["uid"]}]
    spec = {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "in", "stream": "precious"},
    }
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamCopy", "metadata": meta}
    bench.server.put(STREAM_COPY, body | {"spec": spec})
    bench.due()
    bench.settle()
    assert "delete it" in bench.verdict[2]
    assert bench.copy is not None
    assert bench.copy["metadata"]["uid"] == "other"


def forged(bench: DrillBench, **target: Any) -> dict[str, Any]:
    """Return a StreamCopy that a user has made as if it were the drill's."""
    started(bench)
    made = bench.server.body(STREAM_COPY, NAME)
    assert made is not None
    bench.server.objects.pop((STREAM_COPY.name, "default", NAME))
    spec = made["spec"] | {"target": made["spec"]["target"] | target}
    body: dict[str, Any] = made | {"spec": spec}
    bench.server.put(STREAM_COPY, body)
    return body


@pytest.mark.parametrize(
    "target",
    [
        {"storeRef": {"name": "local", "namespace": "other"}},
        {"storeRef": {"name": "spare"}},
        {"scope": "elsewhere"},
    ],
)
@pytest.mark.parametrize("lost", [False, True])
def test_a_forged_copy_leads_the_operator_to_no_other_store(
    bench: DrillBench, target: dict[str, Any], *, lost: bool
) -> None:
    """Neither while a drill goes on nor with a lost status, nor when the archive is deleted."""
    forged(bench, **target)
    if lost:
        bench.body["status"].pop("drill")
    bench.step()
    noted = bench.drill
    assert (noted.store, noted.scope) in {("local", "in"), ("", "")}
    decision = bench.delete()
    assert DeleteDrill() not in decision.actions
    assert bench.copy is not None
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []


def test_a_place_in_another_namespace_is_never_used(bench: DrillBench) -> None:
    """Even if the status says that the scratch stream is there."""
    bench.server.put(STREAM_STORE, changed(STORE, "metadata", {"name": "s", "namespace": "other"}))
    noted = {"scratch": True, "store": "other/s", "scope": "in", "result": "Passed"}
    bench.body["status"]["drill"] = noted | {"completionTime": "2026-01-02T00:00:00Z"}
    asked: list[str] = []

    async def get(namespace: str, _: object) -> object:
        asked.append(namespace)
        return bench.store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "get", get)
        bench.step()
    assert asked == []
    assert not bench.drill.scratch


def test_the_place_that_is_noted_stays_when_the_archive_is_deleted(bench: DrillBench) -> None:
    """The scratch stream is there, and nowhere else."""
    started(bench)
    before = bench.drill
    bench.delete()
    assert (bench.drill.store, bench.drill.scope) == (before.store, before.scope)


def away_with_a_run_due(bench: DrillBench) -> list[type]:
    """Have a run asked for, and tell what the archive does within some looks."""
    bench.ask("now")
    done: list[type] = []
    for _ in range(4):
        done += [type(one) for one in bench.step().actions]
        bench.copy_step()
    return done


def test_runs_go_on_while_the_scratch_store_is_away(threads: ThreadPoolExecutor) -> None:
    """The StreamCopy has no plan then, and never says that it is suspended."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    bench.away = True
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)


def test_runs_go_on_when_a_right_is_withdrawn(threads: ThreadPoolExecutor) -> None:
    """The StreamCopy waits for it, and never says that it is suspended."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    store = bench.server.body(STREAM_STORE, "spare")
    assert store is not None
    bench.server.put(STREAM_STORE, changed(store, "spec.access", {"operations": ["Read"]}))
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)


def test_a_drill_that_is_stalled_before_its_first_attempt_could_not_run(
    threads: ThreadPoolExecutor,
) -> None:
    """The condition tells why, runs go on, and the StreamCopy goes."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    bench.step()
    bucket = changed(BUCKET, "metadata", {"name": "spare", "uid": "spare"})
    bench.server.put(STREAM_STORE, bucket)
    bench.copy_step()
    assert StartJob in away_with_a_run_due(bench)
    assert bench.verdict[1] == "DrillNotRun"
    assert "'spare'" in bench.verdict[2]


def test_runs_go_on_while_a_drill_cannot_be_cleaned(threads: ThreadPoolExecutor) -> None:
    """Its StreamCopy is being deleted, and waits for the store."""
    bench = DrillBench(threads, verify=SPARE)
    started(bench)
    bench.away = True
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"
    bench.copy_step()
    assert bench.copy is not None
    assert StartJob in away_with_a_run_due(bench)
    assert bench.copy is not None


def test_a_drill_does_not_begin_while_its_store_is_away(threads: ThreadPoolExecutor) -> None:
    """The message tells why; it begins when the store answers."""
    bench = DrillBench(threads, verify=SPARE)
    bench.away = True
    bench.due()
    bench.step()
    assert (bench.copy, bench.drill.scratch) == (None, False)
    assert "away" in bench.verdict[2]
    bench.away = False
    bench.step()
    assert bench.copy is not None


def cleaning(threads: ThreadPoolExecutor) -> DrillBench:
    """A drill has ended in a StreamStore that is gone now, and another one is named."""
    bench = DrillBench(threads, verify=SPARE)
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    bench.body["spec"]["verify"] = WEEKLY
    return bench


def test_the_store_of_a_scratch_stream_is_in_use(threads: ThreadPoolExecutor) -> None:
    """Also after another one is named for drills, and in the mirror."""
    bench = cleaning(threads)
    place = StorePlace("default", "spare")
    assert place in stores_of(slim(STREAM_ARCHIVE, bench.body))
    bench.finish()
    assert place not in stores_of(slim(STREAM_ARCHIVE, bench.body))


def test_a_scratch_stream_whose_store_is_gone_is_reported(threads: ThreadPoolExecutor) -> None:
    """Not at once: the StreamStore may be made again."""
    bench = cleaning(threads)
    bench.server.objects.pop((STREAM_STORE.name, "default", "spare"))
    bench.step()
    assert bench.drill.scratch
    assert bench.said == []
    drill = bench.body["status"]["drill"]
    bench.body["status"]["drill"] = drill | {"completionTime": "2026-01-02T00:00:00Z"}
    bench.settle()
    assert not bench.drill.scratch
    ((reason, message),) = bench.said
    assert reason == "Orphaned"
    assert str(SCRATCH) in message
    assert "left behind" in (bench.drill.message or "")
    assert bench.body["metadata"]["finalizers"] == []


def test_a_drill_that_never_began_gives_way_to_the_next(threads: ThreadPoolExecutor) -> None:
    """Its StreamStore was deleted before the StreamCopy was made."""
    bench = DrillBench(threads, verify=SPARE)
    bench.due()
    situation = bench.look()
    bench.body["status"] = bench.workings.decide(situation).status.dump()
    bench.server.objects.pop((STREAM_STORE.name, "default", "spare"))
    bench.step()
    assert bench.drill.result is None
    bench.due()
    bench.step()
    assert bench.drill.result == "NotRun"


def test_a_foreign_copy_of_the_name_keeps_no_archive(bench: DrillBench) -> None:
    """It writes to another stream, so the scratch stream can be deleted."""
    started(bench)
    bench.restore()
    bench.copy_step()
    while bench.copy is not None:
        bench.step()
        bench.copy_step()
    assert bench.scratch()
    spec = {
        "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
        "target": {"storeRef": {"name": "local"}, "scope": "in", "stream": "precious"},
    }
    body = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamCopy", "spec": spec}
    bench.server.put(STREAM_COPY, body | {"metadata": {"name": NAME, "uid": "foreign"}})
    bench.delete()
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []
    assert not bench.scratch()


def test_drills_take_turns_with_the_runs(threads: ThreadPoolExecutor) -> None:
    """The last run first, then the next older one, and after the oldest the last one again."""
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
    """All formats are restored, so all can be drilled."""
    bench = DrillBench(threads, format=form.value)
    bench.whole_drill()
    assert (bench.verdict[0], bench.scratch()) == ("True", False)


def test_removing_the_field_ends_the_drill(bench: DrillBench) -> None:
    """What it has made goes, and nothing is said of drills any more."""
    started(bench)
    bench.body["spec"].pop("verify")
    for _ in range(3):
        bench.step()
        bench.copy_step()
        bench.server.objects = {
            key: one for key, one in bench.server.objects.items() if key[0] != JOB.name
        }
    bench.settle()
    assert (bench.copy, bench.scratch()) == (None, False)
    assert "drill" not in bench.body["status"]
    assert bench.verdict == ("", "", "")


class Walk:
    """Operators, drivers, users and crashes in any order.

    Args:
        bench: an archive at rest.
        chance: chooses what happens next.
    """

    def __init__(self, bench: DrillBench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance

    def go(self, steps: int) -> None:
        """Let so many things happen."""
        for number in range(steps):
            move = self.chance.choice(
                [
                    self.bench.step,
                    self.bench.step,
                    self.bench.copy_step,
                    self.bench.copy_step,
                    self.bench.due,
                    self.half_a_step,
                    self.kill_drivers,
                    self.restore,
                    self.archive,
                    self.bench.begin,
                    self.turn,
                    lambda: self.bench.ask(f"run {number}"),  # noqa: B023 - called at once
                ]
            )
            move()
            self.check()

    def half_a_step(self) -> None:
        """An operator writes the status, does some of its actions, and is killed."""
        situation = self.bench.look()
        decision = self.bench.workings.decide(situation)
        self.bench.body["status"] = decision.status.dump()
        for action in decision.actions[: self.chance.randrange(len(decision.actions) + 1)]:
            self.bench.act(situation, action)
        self.bench.begin()

    def turn(self) -> None:
        """The scratch stream's store goes away, or comes back."""
        self.bench.away = not self.bench.away

    def kill_drivers(self) -> None:
        """A node with all drivers is lost, and their Jobs with it."""
        objects = self.bench.server.objects
        self.bench.server.objects = {
            key: one for key, one in objects.items() if key[0] not in {"Job", "Pod"}
        }

    def archive(self) -> None:
        """The driver of a run does its work, if there is one."""
        attempt = (self.bench.body.get("status") or {}).get("attempts", 0)
        job = self.bench.server.body(JOB, job_name(UID, attempt))
        if job is not None and "status" not in job:
            self.bench.drive(attempt)

    def restore(self) -> None:
        """The driver of the drill does its work, if there is one."""
        copy = self.bench.copy
        if copy is None or self.bench.away:
            return
        attempt = (copy.get("status") or {}).get("attempts", 0)
        name = job_name(copy["metadata"]["uid"], attempt)
        job = self.bench.server.body(JOB, name)
        if job is not None and "status" not in job:
            self.bench.restore(attempt)

    def check(self) -> None:
        """No run's driver is at work beside that of a drill; what may exist is written down."""
        jobs = [one for one in self.bench.server.all(JOB) if "status" not in one]
        kinds = {one["metadata"]["ownerReferences"][0]["kind"] for one in jobs}
        assert len(kinds) < 2, kinds
        if self.bench.scratch() or self.bench.copy is not None:
            assert self.bench.body["status"]["drill"]["scratch"]
            assert self.bench.body["metadata"]["finalizers"] != []


@pytest.mark.search
@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_drills_runs_and_crashes_leaves_nothing(
    threads: ThreadPoolExecutor, seed: int
) -> None:
    """A run and a drill are never at work at once, and the scratch stream goes in the end."""
    bench = DrillBench(threads, verify=SPARE, onDelete="Delete" if seed % 2 else "Retain")
    walk = Walk(bench, random.Random(seed))  # noqa: S311 - to be repeated
    walk.go(40)
    walk.kill_drivers()
    bench.away = False
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    for _ in range(12):
        walk.kill_drivers()
        if bench.server.body(STREAM_ARCHIVE, "orders") is None:
            break
        bench.step()
        bench.copy_step()
    assert (bench.scratch(), bench.copy) == (False, None)
    archive = bench.server.body(STREAM_ARCHIVE, "orders")
    assert archive is None or archive["metadata"]["finalizers"] == []
    assert not [name for name in bench.world.segments if SCRATCH.stream in name]
