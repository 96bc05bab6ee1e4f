"""Copies of scaled streams, and of parts of streams, on real pods."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from localstore.accounts import ADMIN
from segment_hash import segment_report

if TYPE_CHECKING:
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

EVENTS = 20_000
KEYS = 64


@pytest.fixture
def scaled(java: ForeignClient, scope: str) -> tuple[str, str]:
    """Return a stream of 60,000 events with two scale events, and a StreamCut after the first."""
    java.create(scope, "scaled", segments=2)
    java.write(scope, "scaled", events=EVENTS, keys=KEYS)
    cut = java.info(scope, "scaled").tail
    for number in (1, 2):
        assert java.scale(scope, "scaled")
        java.write(scope, "scaled", events=EVENTS, keys=KEYS, first=number * EVENTS)
    return f"{scope}/scaled", cut


def _part(tenant: Tenant, source: str, target: str, bound: Object) -> Object:
    """Return a copy of the events after a position."""
    copy = tenant.copy_resource("part", source, target)
    copy["spec"]["source"]["ranges"] = [{"from": bound}]
    return copy


def _positions(tenant: Tenant, status: Object) -> tuple[bool, dict[int, Object]]:
    """Return the map of a copy: whether all positions are the same, and positions by segment."""
    found = tenant.get("configmap", status["positionMapRef"]["name"])
    assert found is not None
    positions = json.loads(found["data"]["positions.json"])
    (source,) = positions["sources"]
    mapped = {one["segment"]: one for one in source["segments"]}
    copied = sum(one["to"] - one["from"] for one in mapped.values())
    assert copied == status["verification"]["bytes"]
    return positions["samePositions"], mapped


@pytest.mark.exhaustive
def test_scaled_stream_is_copied_with_its_epochs(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """A scaled stream keeps ids, key ranges and the order of keys, also for later writers."""
    tenant.apply(tenant.copy_resource("whole", scaled[0], f"{scope}/whole"))
    status = tenant.until_ready("whole")
    assert status["verification"]["events"] == 3 * EVENTS
    assert java.info(scope, "whole").segments == java.info(scope, "scaled").segments
    same, mapped = _positions(tenant, status)
    assert same
    assert all(one["from"] == one["shift"] == 0 for one in mapped.values())
    there = {segment.id: segment.end for segment in java.info(scope, "whole").segments}
    assert there == {one["targetSegment"]: one["to"] for one in mapped.values()}
    java.write(scope, "whole", events=EVENTS, keys=KEYS, first=3 * EVENTS)
    read = java.read(scope, "whole")
    assert (read.events, read.clean) == (4 * EVENTS, True)
    tenant.until_tidied("whole")
    assert tenant.left_over(f"{scope}/whole", status["copyID"]) == []


@pytest.mark.exhaustive
def test_part_of_a_stream_is_copied(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """A part from a StreamCut of the Java client to the tail is copied, over scale events."""
    source, cut = scaled
    tenant.apply(
        _part(tenant, source, f"{scope}/part", {"at": "StreamCut", "streamCut": cut}),
    )
    status = tenant.until_ready("part")
    assert status["verification"]["events"] == 2 * EVENTS
    same, mapped = _positions(tenant, status)
    assert not same
    begins = dict(pair.split("=") for pair in status["startCut"].split(","))
    for segment, offset in begins.items():
        assert mapped[int(segment)]["from"] == int(offset) == -mapped[int(segment)]["shift"]
    read = java.read(scope, "part")
    assert (read.events, read.out_of_order, read.duplicates) == (2 * EVENTS, 0, 0)


@pytest.mark.exhaustive
def test_cut_inside_an_event_is_told_and_leaves_nothing(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """A cut inside an event leaves no target. The condition names range and offset."""
    offsets = [{"segmentID": 0, "offset": 100}, {"segmentID": 1, "offset": 0}]
    tenant.apply(
        _part(tenant, scaled[0], f"{scope}/part", {"at": "Offsets", "offsets": offsets}),
    )
    said = tenant.until_reason("part", "CutInsideEvent")
    assert "spec.source.ranges[0]" in said["message"]
    assert "offsets 100 and" in said["message"]
    assert java.streams(scope) == ["scaled"]


def _write(client: ForeignClient, stream: str, number: int, *, segments: int) -> None:
    """Write a scaled stream that continues the keys of its predecessor."""
    scope, _, name = stream.partition("/")
    client.create_scope(scope)
    client.create(scope, name, segments=segments)
    half = EVENTS // 2
    client.write(scope, name, events=half, keys=KEYS, first=number * EVENTS)
    assert client.scale(scope, name)
    client.write(scope, name, events=half, keys=KEYS, first=number * EVENTS + half)


def _bytes(store: ClusterStore, client: ForeignClient, stream: str, mapped: Object) -> str:
    """Return the hash of a source segment's copied bytes, by the stand-alone script."""
    scope, _, name = stream.partition("/")
    report = segment_report(
        *store.segment_store,
        scope,
        name,
        mapped["segment"],
        start=mapped["from"],
        end=mapped["to"],
        token=client.token(scope, name) if store.users else "",
    )
    return str(report["sha256"])


@pytest.mark.exhaustive
def test_several_sources_of_several_stores_become_one(
    tenant: Tenant,
    scope: str,
    java: ForeignClient,
    guarded: ClusterStore,
    guarded_java: ForeignClient,
) -> None:
    """Several sources follow one another by key. The target is sealed, without staging."""
    places = {  # the StreamStore and its store
        f"{scope}/monday": ("attic", guarded, guarded_java),
        f"{scope}-old/tuesday": ("store", tenant.store, java),
        f"{scope}/wednesday": ("cellar", guarded, guarded_java),
    }
    for number, (stream, (_, _, client)) in enumerate(places.items()):
        _write(client, stream, number, segments=1 + number)
    for name in ("attic", "cellar"):
        tenant.apply(
            tenant.login_resource(ADMIN, f"{name}-login"),
            tenant.store_resource(name, uri=guarded.uri, secret=f"{name}-login"),
        )
    copy = tenant.copy_resource("week", f"{scope}/monday", f"{scope}/week")
    del copy["spec"]["source"]
    copy["spec"]["sources"] = [
        dict(zip(("scope", "stream"), stream.split("/"), strict=True), storeRef={"name": name})
        for stream, (name, _, _) in places.items()
    ]
    copy["spec"]["target"]["sealWhenDone"] = True
    tenant.apply(copy)
    status = tenant.until_ready("week")
    assert status["verification"]["events"] == 3 * EVENTS
    read = java.read(scope, "week")
    assert (read.events, read.clean) == (3 * EVENTS, True)
    assert java.info(scope, "week").sealed

    positions = tenant.get("configmap", status["positionMapRef"]["name"])
    assert positions is not None
    sources = json.loads(positions["data"]["positions.json"])["sources"]
    assert [source["stream"] for source in sources] == list(places)
    targets = []
    for source in sources:
        _, store, client = places[source["stream"]]
        for mapped in source["segments"]:
            report = segment_report(
                *tenant.store.segment_store, scope, "week", mapped["targetSegment"]
            )
            assert report["sha256"] == _bytes(store, client, source["stream"], mapped)
            targets.append(mapped["targetSegment"])
    tenant.until_tidied("week")
    assert tenant.left_over(f"{scope}/week", status["copyID"], targets) == []

    assert "monday and 2 more" in tenant.run("get", "scopy", "week", "--output=wide")
    (job,) = tenant.get_all("jobs")
    volumes = job["spec"]["template"]["spec"]["volumes"]
    assert {"attic-login", "cellar-login"} <= set(re.findall(r"[a-z]+-login", json.dumps(volumes)))
