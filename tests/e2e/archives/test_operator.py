"""Archives in a bucket or a volume, and their restores, by an operator from resources.

The operator is a process at a real API server. The test runs the driver pods
(`support.cluster.kubelet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.archive.runs.archive import Archive
from sluice.archive.runs.verify import verify_archive
from support.store.scopes import BY_SIZE, SPLIT, Sketch, assert_equal, fill, names_in, seen
from support.until import PATIENT

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from sluice.archive.objects.objects import Objects
    from support.tenants.desk import Desk

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

EVENTS, KEYS = 2000, 32


def source(scope: str) -> dict[str, Any]:
    """Return the archived stream."""
    return {"storeRef": {"name": "store"}, "scope": scope, "stream": "orders"}


def restore(desk: Desk, store: str, scope: str, run: int) -> None:
    """Restore a run to a stream named after it."""
    archive = {"storeRef": {"name": store}, "path": "demo/orders", "run": run}
    target = {"storeRef": {"name": "store"}, "scope": scope, "stream": f"restored-{run}"}
    name = f"{scope}-{run}"
    desk.resource("StreamCopy", name, {"source": {"archive": archive}, "target": target})
    desk.drive()
    desk.until_reason("scopy", name, "Copied")


def assert_whole(objects: Objects, runs: int) -> None:
    """Check that the archive is intact and has this number of runs."""
    archive = Archive(objects)
    head = archive.head()
    assert head is not None
    assert len(head.runs) == runs
    assert verify_archive(archive).problems == []


def test_a_stream_goes_to_a_bucket_and_back(
    desk: Desk, gateway: Gateway, foreign: ForeignClient, scope: str
) -> None:
    """Each run in a bucket can be restored. The archive goes with its resource on request."""
    bucket = desk.bucket(gateway, "bucket")
    status = desk.until_reason("sst", "bucket", "Reachable")
    assert "latencyMilliseconds" in status
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    destination = {"storeRef": {"name": "bucket"}, "path": "demo/orders"}
    spec = {"source": source(scope), "destination": destination, "onDelete": "Delete"}
    desk.resource("StreamArchive", "orders", spec)
    desk.drive()
    status = desk.until_reason("sarc", "orders", "Archived")
    assert status["archive"]["runs"] == 1
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    desk.tenant.run("annotate", "sarc", "orders", "sluice.dev/requestedAt=again", "--overwrite")
    desk.drive()
    desk.tenant.until(
        "the second run is told of",
        lambda: (desk.tenant.get("sarc", "orders") or {})["status"]["archive"]["runs"] == 2,
    )
    place = Bucket(name=bucket, prefix="demo/orders", endpoint=gateway.endpoint)
    credentials = S3Keys(access=gateway.access, secret=gateway.secret)
    objects = S3Objects(place, keys=credentials, timeouts=PATIENT)
    assert_whole(objects, 2)
    for run in (1, 2):
        restore(desk, "bucket", scope, run)
        assert foreign.read(scope, f"restored-{run}").events == run * EVENTS
    desk.tenant.run("delete", "sarc", "orders")
    assert list(objects.list()) == []


@pytest.mark.exhaustive
def test_a_stream_goes_to_a_volume_and_back(
    desk: Desk, foreign: ForeignClient, scope: str, tmp_path: Path
) -> None:
    """Only pods mount the volume. The operator reports what their drivers tell."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shelf"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    desk.resource("StreamStore", "volume", {"volume": {"claimName": "shelf"}})
    desk.until_reason("sst", "volume", "ClaimNotFound")
    desk.tenant.apply(claim)
    desk.until_reason("sst", "volume", "Mountable")
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    destination = {"storeRef": {"name": "volume"}, "path": "demo/orders"}
    spec = {"source": source(scope), "destination": destination, "format": "Parquet"}
    desk.resource("StreamArchive", "table", spec)
    desk.drive()
    status = desk.until_reason("sarc", "table", "Archived")
    assert (status["archive"]["runs"], status["run"]) == (1, 1)
    assert_whole(DirectoryObjects(tmp_path / "shelf" / "demo" / "orders"), 1)
    restore(desk, "volume", scope, 1)
    assert foreign.read(scope, "restored-1").events == EVENTS


MARKET = (
    Sketch(name="orders", segments=2, events=200, scales=(SPLIT,), policy={"tags": "team=shop"}),
    Sketch(name="events", events=200, policy=BY_SIZE),
    Sketch(name="empty", segments=3),
)
"""Streams to archive. One has the name of a folder of archives."""


@pytest.mark.exhaustive
def test_a_scope_goes_to_a_bucket_and_back(
    desk: Desk, gateway: Gateway, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A move to a bucket deletes each stream once its archive is whole. All streams come back."""
    scope = f"market-{uuid4().hex[:8]}"
    fill(foreign, scope, MARKET)
    before = seen(standalone.segment_store, foreign, scope)
    bucket = desk.bucket(gateway, "market")
    archive = {"storeRef": {"name": "market"}, "path": "demo/market"}
    live = {"storeRef": {"name": "store"}, "scope": scope}
    moved = {"source": live, "target": {"archive": archive}, "sourceOnComplete": "Delete"}
    desk.resource("ScopeCopy", "away", moved)
    desk.drive()
    status = desk.until_reason("sccp", "away", "Succeeded", "PartiallySucceeded", "Failed")
    assert status["streams"]["summary"] == "3/3", status
    assert (status["source"], status["target"]) == (f"store/{scope}", "market/demo/market")
    assert names_in(foreign, scope) is None
    credentials = S3Keys(access=gateway.access, secret=gateway.secret)
    for folder in ("orders", "events=", "empty"):
        place = Bucket(name=bucket, prefix=f"demo/market/{folder}", endpoint=gateway.endpoint)
        objects = S3Objects(place, keys=credentials, timeouts=PATIENT)
        assert verify_archive(Archive(objects)).problems == []
    target = live | {"scopePolicy": "CreateIfAbsent"}
    desk.resource("ScopeCopy", "back", {"source": {"archive": archive}, "target": target})
    desk.drive()
    status = desk.until_reason("sccp", "back", "Succeeded", "PartiallySucceeded", "Failed")
    assert status["streams"]["summary"] == "3/3", status
    after = seen(standalone.segment_store, foreign, scope)
    # The store continues the segment ids of the earlier stream of the name.
    assert_equal(before, after, same_ids=False)
    for name in ("away", "back"):
        desk.tenant.of_scopes.until_tidied(name)
