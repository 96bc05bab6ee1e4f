"""The looks and actions of a StreamArchive: an API server in memory, a model store, a bucket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sluice.archive.runs.archive import Archive
from sluice.core.archive.recorded import Recorded
from sluice.core.reconcile.copies.actions import DropControls, StartJob
from sluice.core.reconcile.copies.archive_seen import ArchiveSeen
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.answers import Planned
from sluice.kube.api.kinds import CONFIG_MAP, JOB, STREAM_ARCHIVE, STREAM_STORE
from sluice.kube.api.names import controls_name
from sluice.kube.jobs.manifests import plan_of
from support.cases.resources import BUCKET, changed
from support.engine.sources import events_of
from support.kube.archive_bench import SOURCE, ArchiveBench
from support.model import segment_name
from support.reconcile.copies import STALLED, UID, message, reason, said

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def test_the_first_look_is_a_plan(bench: ArchiveBench) -> None:
    """The plan lists the bytes to archive. The bucket's Secret is mounted for the driver."""
    decision = bench.step()
    assert StartJob in [type(action) for action in decision.actions]
    found = bench.plan().archive
    assert found is not None
    assert (found.source, found.path, found.run) == (SOURCE, "in/orders", 1)
    assert bench.plan().target == StoreAddress(
        backend="s3",
        uri="s3://archives",
        secret="keys",  # noqa: S106 - the name of a Secret
    )
    job = bench.server.objects[JOB.name, "default", job_name(UID, 1)]
    assert job["metadata"]["ownerReferences"][0]["kind"] == "StreamArchive"
    pod = job["spec"]["template"]["spec"]
    (secret,) = [one["secret"] for one in pod["volumes"] if "secret" in one]
    assert [one["key"] for one in secret["items"]] == ["accessKeyId", "secretAccessKey"]


def test_a_run_is_followed_to_its_end(bench: ArchiveBench) -> None:
    """The run is recorded before the status says so, and then the resource holds nothing."""
    decision = bench.run()
    assert reason(decision) == "Archived"
    assert "1 run can be restored" in message(decision)
    assert bench.body["metadata"]["finalizers"] == []
    head = Archive(bench.objects).head()
    assert head is not None
    assert [one.verified for one in head.runs] == [True]
    assert bench.step().actions[-1] == DropControls()  # the driver ended long ago
    assert bench.server.all(JOB) == []
    assert bench.step().actions == ()


def test_progress_is_read_in_the_archive(bench: ArchiveBench) -> None:
    """A running driver need not report its progress."""
    bench.step()
    bench.put_pod(1, "Running")
    assert bench.look().world.reading is not None
    decision = bench.step()
    assert reason(decision) == "Archiving"
    assert message(decision).startswith("0 B of ")


def test_another_run_adds_what_is_new(bench: ArchiveBench) -> None:
    """A run has a key of its own, so each request makes another run, however soon it follows."""
    bench.run()
    bench.ask("again")
    decision = bench.run(2)
    assert message(decision) == "Run 2 is recorded: 0 B are new. 2 runs can be restored."
    assert bench.step().actions[-1] == DropControls()  # the driver ended long ago
    assert bench.server.all(JOB) == []
    assert bench.step().actions == ()


def lose_status(bench: ArchiveBench) -> None:
    """Delete the resource's status, its Jobs and its ConfigMaps."""
    bench.body.pop("status")
    bench.server.objects = {
        key: one for key, one in bench.server.objects.items() if key[0] not in {"Job", "ConfigMap"}
    }


def test_an_operator_that_lost_everything_makes_no_run_twice(bench: ArchiveBench) -> None:
    """The archive shows the operator that the run is recorded."""
    bench.run()
    bench.begin()
    lose_status(bench)
    assert isinstance(bench.look().world.answer, Recorded)
    assert reason(bench.step()) == "Archived"
    head = Archive(bench.objects).head()
    assert head is not None
    assert len(head.runs) == 1


@pytest.mark.parametrize("token", [None, "2026-05-04"])
def test_an_archive_that_is_applied_anew_adds_what_is_new(
    bench: ArchiveBench, token: str | None
) -> None:
    """A new resource of the name asks for a run of its own, even by the same annotation."""
    if token is not None:
        bench.ask(token)
    bench.run()
    bench.world.segments[segment_name(SOURCE, 0)].data += events_of([40])
    lose_status(bench)
    bench.body["metadata"]["uid"] = "another"
    answer = bench.look().world.answer
    assert isinstance(answer, Planned)
    assert answer.plan.archive is not None
    assert (answer.plan.archive.run, answer.plan.archive.bytes) == (2, 48)


def test_what_was_planned_and_not_begun_is_planned_on_what_is_there(bench: ArchiveBench) -> None:
    """A plan that a user reviewed holds only until another client records a run."""
    bench.body["spec"]["suspend"] = True
    assert reason(bench.step()) == "Suspended"
    body = bench.server.objects[CONFIG_MAP.name, "default", plan_name("orders", UID)]
    first = plan_of(body)
    assert first is not None
    bench.body["spec"]["suspend"] = False
    situation = bench.look()
    assert isinstance(situation.world.answer, Planned)
    assert bench.step().status.run == 1  # type: ignore[attr-defined]


def test_retention_and_limits_reach_the_driver(threads: ThreadPoolExecutor) -> None:
    """The driver removes old runs once it has recorded another run."""
    limits = {"bytesPerSecond": "1Mi"}
    bench = ArchiveBench(threads, retention={"keepLast": 3, "keepWithin": "30d"}, limits=limits)
    bench.step()
    name = controls_name("orders", UID)
    written = bench.server.objects[CONFIG_MAP.name, "default", name]["data"]["controls.json"]
    assert json.loads(written) == {
        "bytesPerSecond": 1 << 20,
        "keepLast": 3,
        "keepSeconds": 30 * 24 * 3600,
    }
    (job,) = (one for (kind, *_), one in bench.server.objects.items() if kind == JOB.name)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert {"--keep-last=3", f"--keep-seconds={30 * 24 * 3600}"} <= set(container["args"])


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec.source.storeRef.name", "archives", "spec.source.storeRef.name"),
        ("spec.destination.storeRef.name", "local", "spec.destination.storeRef.name"),
    ],
)
def test_stores_of_the_wrong_kind_are_named(
    bench: ArchiveBench, path: str, value: str, field: str
) -> None:
    """Archives are not live streams, nor the reverse. The wrong kind stalls the resource."""
    bench.server.put(STREAM_ARCHIVE, changed(bench.body, path, value))
    decision = bench.step()
    assert (said(decision), reason(decision)) == (STALLED, "InvalidSpec")
    assert message(decision).startswith(f"{field}: ")


def test_an_archive_needs_the_right_to_delete_where_it_is_to_be_deleted(
    threads: ThreadPoolExecutor,
) -> None:
    """The store's access decides it."""
    for spec, denied in (({}, False), ({"onDelete": "Delete"}, True)):
        bench = ArchiveBench(threads, **spec)
        access = {"operations": ["Create", "Append"]}
        bench.server.put(STREAM_STORE, changed(BUCKET, "spec.access", access))
        assert (reason(bench.step()) == "AccessDenied") is denied


def test_a_schedule_without_times_stalls(threads: ThreadPoolExecutor) -> None:
    """The schedule is refused as any wrong spec, and does not hold up the deletion."""
    bench = ArchiveBench(threads, schedule={"cron": "0 0 31 2 *"})
    with pytest.raises(Exception, match="never due"):
        bench.look()
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert isinstance(bench.look().seen, ArchiveSeen)
