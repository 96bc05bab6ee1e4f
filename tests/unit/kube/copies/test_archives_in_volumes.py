"""A StreamArchive whose archive is in a volume, which only pods can read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sluice.core.archive.recorded import Recorded, RunFacts
from sluice.core.reconcile.copies.actions import Erase, RemoveFinalizer
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.unplanned import Unplanned
from sluice.kube.api.kinds import JOB, STREAM_ARCHIVE
from sluice.kube.jobs.mounts import VOLUMES_DIR
from support.kube.archive_bench import ArchiveBench
from support.reconcile.copies import STALLED, UID, message, reason, said

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def in_volume(threads: ThreadPoolExecutor, **spec: Any) -> ArchiveBench:
    """Make an archive in a volume, which only pods can read."""
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
    """The driver gets the request, and the claim where it looks for it."""
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
    """If the driver reports nothing, another attempt finds the run and reports it."""
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
    """The operator refuses the setting before any byte is archived."""
    decision = in_volume(threads, onDelete="Delete").step()
    assert (said(decision), reason(decision)) == (STALLED, "InvalidSpec")
    assert message(decision).startswith("spec.onDelete: ")


def test_a_resource_whose_archive_in_a_volume_was_to_go_with_it_is_let_go(
    threads: ThreadPoolExecutor,
) -> None:
    """The setting may be added during a run, before the operator could refuse it."""
    bench = in_volume(threads)
    bench.step()
    bench.body["spec"]["onDelete"] = "Delete"
    assert Erase() in bench.delete().actions
    assert bench.said[-1][0] == "ArchiveKept"
    assert "only pods can look into a volume" in bench.said[-1][1]
    assert (STREAM_ARCHIVE.name, "default", "orders") not in bench.server.objects


def test_a_run_in_a_volume_can_be_given_up(threads: ThreadPoolExecutor) -> None:
    """A later run sweeps its notes."""
    bench = in_volume(threads)
    bench.step()
    assert RemoveFinalizer() in bench.delete().actions
