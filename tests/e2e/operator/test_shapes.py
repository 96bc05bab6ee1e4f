"""Copies of streams that were scaled, and of parts of them, on real pods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from localstore import ForeignClient
    from support.tenant import Object, Tenant

EVENTS = 20_000
KEYS = 64


@pytest.fixture
def scaled(java: ForeignClient, scope: str) -> tuple[str, str]:
    """Gives a stream of 60,000 events that was scaled twice, and a StreamCut after the first."""
    java.create(scope, "scaled", segments=2)
    java.write(scope, "scaled", events=EVENTS, keys=KEYS)
    cut = java.info(scope, "scaled").tail
    for number in (1, 2):
        assert java.scale(scope, "scaled")
        java.write(scope, "scaled", events=EVENTS, keys=KEYS, first=number * EVENTS)
    return f"{scope}/scaled", cut


def _part(tenant: Tenant, source: str, target: str, bound: Object) -> Object:
    """A copy of what follows a position."""
    copy = tenant.copy_resource("part", source, target)
    copy["spec"]["source"]["ranges"] = [{"from": bound}]
    return copy


def _positions(tenant: Tenant, status: Object) -> tuple[bool, dict[int, Object]]:
    """The published map of a copy of one stream: whether all is the same, and by segment."""
    found = tenant.get("configmap", status["positionMapRef"]["name"])
    assert found is not None
    positions = json.loads(found["data"]["positions.json"])
    (source,) = positions["sources"]
    mapped = {one["segment"]: one for one in source["segments"]}
    copied = sum(one["to"] - one["from"] for one in mapped.values())
    assert copied == status["verification"]["bytes"]
    return positions["samePositions"], mapped


def test_scaled_stream_is_copied_with_its_epochs(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """Ids and key ranges are the source's; keys stay in order for readers and for later writers."""
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
    assert tenant.left_over(f"{scope}/whole", status["copyID"]) == []


def test_part_of_a_stream_is_copied(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """From a StreamCut of the Java client to the tail, over scale events."""
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


def test_cut_inside_an_event_is_told_and_leaves_nothing(
    tenant: Tenant, scope: str, java: ForeignClient, scaled: tuple[str, str]
) -> None:
    """The condition names the range and the offsets; there is no target."""
    offsets = [{"segmentID": 0, "offset": 100}, {"segmentID": 1, "offset": 0}]
    tenant.apply(
        _part(tenant, scaled[0], f"{scope}/part", {"at": "Offsets", "offsets": offsets}),
    )
    said = tenant.until_reason("part", "CutInsideEvent", seconds=90)
    assert "spec.source.ranges[0]" in said["message"]
    assert "offsets 100 and" in said["message"]
    assert java.streams(scope) == ["scaled"]
