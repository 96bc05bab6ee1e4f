"""A StreamArchive looked at and acted on: an API server in memory, a model store, a bucket."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.archive import Archive
from sluice.archive.leases import Lease
from sluice.core.archive.lease import Work
from sluice.core.archive.names import HEADS, LEASES
from sluice.core.archive.recorded import Recorded, RunFacts
from sluice.core.model import StoreAddress, StreamName
from sluice.core.reconcile.archive_seen import ArchiveSeen
from sluice.core.reconcile.copy_status import job_name, plan_name
from sluice.core.reconcile.world import Erase, Orphan, Planned, RemoveFinalizer, StartJob
from sluice.core.unplanned import Unplanned
from sluice.engine.archiving.settle import erase_archive
from sluice.errors import StoreBusy
from sluice.kube.kinds import CONFIG_MAP, JOB, STREAM_ARCHIVE, STREAM_STORE
from sluice.kube.manifests import plan_of
from sluice.kube.mounts import VOLUMES_DIR
from sluice.kube.names import controls_name
from support.archive_bench import SOURCE, ArchiveBench
from support.copies import UID, message, reason
from support.model import segment_name
from support.resources import BUCKET, changed
from support.sources import events_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    """Gives threads for the calls to stores."""
    with ThreadPoolExecutor(4) as found:
        yield found


@pytest.fixture
def bench(threads: ThreadPoolExecutor) -> ArchiveBench:
    """Gives an archive of a stream of two segments that somebody has just made."""
    return ArchiveBench(threads)


def test_the_first_look_is_a_plan(bench: ArchiveBench) -> None:
    """Of what there is to archive; the bucket's Secret is mounted where a driver looks for it."""
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
    """It is recorded first, then that is said, and nothing is held any more."""
    decision = bench.run()
    assert reason(decision) == "Archived"
    assert "1 run can be restored" in message(decision)
    assert bench.body["metadata"]["finalizers"] == []
    head = Archive(bench.objects).head()
    assert head is not None
    assert [one.verified for one in head.runs] == [True]
    assert bench.step().actions == ()


def test_progress_is_read_in_the_archive(bench: ArchiveBench) -> None:
    """A driver that runs need not report it."""
    bench.step()
    bench.put_pod(1, "Running")
    assert bench.look().world.reading is not None
    decision = bench.step()
    assert reason(decision) == "Archiving"
    assert message(decision).startswith("0 B of ")


def test_another_run_adds_what_is_new(bench: ArchiveBench) -> None:
    """Under a key of its own, so it is another one however soon it is asked for."""
    bench.run()
    bench.ask("again")
    decision = bench.run(2)
    assert message(decision) == "Run 2 is recorded: 0 B are new. 2 runs can be restored."
    assert bench.step().actions == ()


def lose_status(bench: ArchiveBench) -> None:
    """Nothing is left of the resource but itself."""
    bench.body.pop("status")
    bench.server.objects = {
        key: one for key, one in bench.server.objects.items() if key[0] not in {"Job", "ConfigMap"}
    }


def test_an_operator_that_lost_everything_makes_no_run_twice(bench: ArchiveBench) -> None:
    """The archive tells it that the run is recorded."""
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
    """Another resource of the name asks for a run of its own, also by the same annotation."""
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
    """A plan that somebody looked at holds only as long as nobody else records a run."""
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
    """Which lets runs go once it has recorded another one."""
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
    """Archives are no live streams, and the other way round."""
    bench.server.put(STREAM_ARCHIVE, changed(bench.body, path, value))
    decision = bench.step()
    assert reason(decision) == "InvalidSpec"
    assert message(decision).startswith(f"{field}: ")


def test_an_archive_needs_the_right_to_delete_where_it_is_to_be_deleted(
    threads: ThreadPoolExecutor,
) -> None:
    """As the store's access says."""
    for spec, denied in (({}, False), ({"onDelete": "Delete"}, True)):
        bench = ArchiveBench(threads, **spec)
        access = {"operations": ["Create", "Append"]}
        bench.server.put(STREAM_STORE, changed(BUCKET, "spec.access", access))
        assert (reason(bench.step()) == "AccessDenied") is denied


def test_a_schedule_without_times_stalls(threads: ThreadPoolExecutor) -> None:
    """It is refused as a wrong spec is; deleting it is not held up."""
    bench = ArchiveBench(threads, schedule={"cron": "0 0 31 2 *"})
    with pytest.raises(Exception, match="never due"):
        bench.look()
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert isinstance(bench.look().seen, ArchiveSeen)


# -- the end


def test_an_archive_goes_with_its_resource_where_that_is_wanted(
    threads: ThreadPoolExecutor,
) -> None:
    """The resource waits for it; nothing is left in the bucket."""
    bench = ArchiveBench(threads, onDelete="Delete")
    bench.run()
    assert bench.body["metadata"]["finalizers"] == ["sluice.dev/staging"]
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    bench.server.objects.pop((JOB.name, "default", job_name(UID, 1)))
    decision = bench.step()
    assert Erase() in decision.actions
    assert list(bench.objects.list()) == []


def test_an_archive_stays_where_nobody_said_otherwise(bench: ArchiveBench) -> None:
    """It needs no resource to be restored."""
    bench.run()
    before = [one.name for one in bench.objects.list()]
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    bench.step()
    assert [one.name for one in bench.objects.list()] == before


def test_a_run_that_is_abandoned_leaves_no_notes(bench: ArchiveBench) -> None:
    """What it has put is swept when its time is over."""
    bench.step()
    plan = bench.plan().archive
    assert plan is not None
    errand = bench.look().errand
    lease = Lease(bench.objects, plan.copy_id, Work.WRITE)
    lease.__enter__()
    errand.abandon(None, bench.shelf, known=None)
    assert [one.name for one in bench.objects.list(LEASES)] == []


def test_nothing_is_deleted_while_somebody_reads(bench: ArchiveBench) -> None:
    """Whoever restores a run is waited for."""
    bench.run()
    head = Archive(bench.objects).head()
    assert head is not None
    request = bench.look().errand.request  # type: ignore[attr-defined]
    with Lease(bench.objects, "ab" * 16, Work.READ, run=head.runs[-1]):
        with pytest.raises(StoreBusy, match="at work"):
            erase_archive(request, bench.shelf)
        assert list(bench.objects.list(HEADS))
    erase_archive(request, bench.shelf)
    assert list(bench.objects.list()) == []


@pytest.mark.parametrize("calls", range(6))
def test_a_deletion_that_was_killed_is_gone_on_with_at_once(
    bench: ArchiveBench, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The lease that the killed one has left behind is that of whoever goes on."""
    bench.run()
    request = bench.look().errand.request  # type: ignore[attr-defined]
    delete, left = bench.objects.delete, iter(range(calls))

    def until_killed(names: Iterable[str]) -> None:
        if next(left, None) is None:
            raise _KilledError
        delete(names)

    with monkeypatch.context() as patch:
        patch.setattr(bench.objects, "delete", until_killed)
        with pytest.raises(_KilledError):
            erase_archive(request, bench.shelf)
    assert len(list(bench.objects.list(LEASES))) == 1
    erase_archive(request, bench.shelf)
    assert list(bench.objects.list()) == []


class _KilledError(BaseException):
    """The process is gone; whatever it would do after this raises this as well."""


def test_an_archive_of_another_stream_is_not_ours_to_delete(bench: ArchiveBench) -> None:
    """Whatever its path is."""
    bench.run()
    request = bench.look().errand.request  # type: ignore[attr-defined]
    other = request.model_copy(update={"source": StreamName(scope="in", stream="payments")})
    before = [one.name for one in bench.objects.list()]
    erase_archive(other, bench.shelf)
    assert [one.name for one in bench.objects.list()] == before


def test_what_is_left_behind_is_said(bench: ArchiveBench) -> None:
    """Where nobody can overlook it."""
    situation = bench.look()
    asyncio.run(bench.workings.perform(situation, Orphan("no way")))
    ((word, said),) = bench.said
    assert word == "Orphaned"
    assert said.startswith("the archive in/orders in StreamStore 'archives' may hold runs")


# -- volumes


def in_volume(threads: ThreadPoolExecutor, **spec: Any) -> ArchiveBench:
    """An archive in a volume, into which only pods can look."""
    there = {"storeRef": {"name": "shelf"}, "path": "in/orders"}
    return ArchiveBench(threads, destination=there, **spec)


TOLD = Recorded(
    run=1,
    head=1,
    sha256="e" * 64,
    count=1,
    runs=(RunFacts(run=1, time=datetime(2026, 1, 2, tzinfo=UTC), bytes=90, verified=True),),
    added=90,
    verified=True,
)


def test_what_is_in_a_volume_its_driver_plans(threads: ThreadPoolExecutor) -> None:
    """The driver gets what is wanted, and the claim where it looks for it."""
    bench = in_volume(threads)
    decision = bench.step()
    assert message(decision) == "The driver starts; what is new to archive."
    found = bench.plan()
    assert isinstance(found, Unplanned)
    assert found.archiving is not None
    assert found.archiving.run_key == f"first:{UID}"
    job = bench.server.objects[JOB.name, "default", job_name(UID, 1)]
    pod = job["spec"]["template"]["spec"]
    assert {"name": "archives-0", "persistentVolumeClaim": {"claimName": "archives"}} in pod[
        "volumes"
    ]
    (driver,) = pod["containers"]
    assert {"name": "SLUICE_VOLUMES_DIR", "value": VOLUMES_DIR} in driver["env"]
    assert {"name": "archives-0", "mountPath": f"{VOLUMES_DIR}/archives"} in driver["volumeMounts"]
    bench.put_pod(1, "Running")
    assert message(bench.step()) == "The driver looks for what is new, and writes it."


def test_what_is_in_a_volume_its_driver_tells(threads: ThreadPoolExecutor) -> None:
    """Where it says nothing, another attempt finds the run, and says so."""
    bench = in_volume(threads)
    bench.step()
    bench.end()
    assert reason(bench.step()) == "DriverLost"
    bench.ask("now")
    bench.step()
    bench.end(2, said={"recorded": TOLD.model_dump(mode="json")})
    decision = bench.step()
    assert reason(decision) == "Archived"
    assert message(decision) == "Run 1 is recorded: 90 B are new. 1 run can be restored."
    assert bench.body["metadata"]["finalizers"] == []
    bench.ask("again")
    assert isinstance(bench.look().world.answer, Planned)


def test_an_archive_in_a_volume_is_not_deleted_with_its_resource(
    threads: ThreadPoolExecutor,
) -> None:
    """That is said before anything is archived."""
    decision = in_volume(threads, onDelete="Delete").step()
    assert reason(decision) == "InvalidSpec"
    assert message(decision).startswith("spec.onDelete: ")


def test_a_run_in_a_volume_can_be_given_up(threads: ThreadPoolExecutor) -> None:
    """Its notes are swept by a later run."""
    bench = in_volume(threads)
    bench.step()
    bench.server.objects.pop((JOB.name, "default", job_name(UID, 1)))
    bench.body["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert RemoveFinalizer() in bench.step().actions
