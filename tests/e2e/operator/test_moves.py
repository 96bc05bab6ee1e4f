"""Moved streams, and sources that lose bytes during a copy, on real pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.exhaustive

EVENTS = 20_000
KEYS = 64
FRAME = 108
"""Bytes of an event of 100 bytes in its segment."""
LOST = 1_000


@pytest.fixture
def orders(java: ForeignClient, scope: str) -> str:
    """Return a stream of 40,000 events that was scaled once."""
    java.create(scope, "orders", segments=2)
    java.write(scope, "orders", events=EVENTS, keys=KEYS)
    assert java.scale(scope, "orders")
    java.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    return f"{scope}/orders"


def test_stream_is_moved_once_its_store_allows_to_delete(
    tenant: Tenant, scope: str, java: ForeignClient, orders: str
) -> None:
    """A stream is moved once its store allows Delete. Until then the source takes events.

    A resource that is applied again finds the target, and does nothing.
    """
    tenant.patch("sst", "store", {"spec": {"access": {"operations": ["Read", "Create", "Append"]}}})
    move = tenant.copy_resource("move", orders, f"{scope}/moved", sourceOnComplete="Delete")
    tenant.apply(move)
    said = tenant.until_reason("move", "AccessDenied")
    assert "Delete" in said["message"]
    java.write(scope, "orders", events=EVENTS, keys=KEYS, first=2 * EVENTS)
    before = java.info(scope, "orders").segments
    original = java.read(scope, "orders")

    tenant.patch("sst", "store", {"spec": {"access": None}})
    status = tenant.until_ready("move")
    assert java.streams(scope) == ["moved"]
    assert java.info(scope, "moved").segments == before
    read = java.read(scope, "moved")
    assert (read.events, read.digest, read.clean) == (3 * EVENTS, original.digest, True)
    assert status["verification"]["events"] == 3 * EVENTS
    tenant.until_tidied("move")
    assert tenant.left_over(f"{scope}/moved", status["copyID"]) == []

    tenant.run("delete", "scopy", "move")
    tenant.apply(move)
    assert tenant.until_ready("move")["attempts"] == 0
    assert java.streams(scope) == ["moved"]


@pytest.mark.parametrize("rule", ["Fail", "Record"])
def test_source_that_is_truncated_after_it_was_planned(
    tenant: Tenant, scope: str, java: ForeignClient, rule: str
) -> None:
    """A gap is named by segment and offsets. The target lacks only the gap, or is not made."""
    java.create(scope, "clicks", segments=1)
    java.write(scope, "clicks", events=EVENTS, keys=KEYS)
    copy = tenant.copy_resource(
        "left", f"{scope}/clicks", f"{scope}/left", onTruncation=rule, suspend=True
    )
    tenant.apply(copy)
    tenant.until_reason("left", "Suspended")
    java.truncate(scope, "clicks", offsets={0: LOST * FRAME})
    tenant.patch("scopy", "left", {"spec": {"suspend": False}})
    if rule == "Fail":
        said = tenant.until_reason("left", "SourceTruncated")
        assert str(LOST * FRAME) in said["message"].replace(",", "")
        assert "left" not in (java.streams(scope) or [])
        return
    status = tenant.until_ready("left")
    assert tenant.condition("left")["reason"] == "CopiedWithGaps"
    assert status["gaps"] == [{"source": 0, "segmentID": 0, "from": 0, "to": LOST * FRAME}]
    original, copied = java.read(scope, "clicks"), java.read(scope, "left")
    assert (copied.events, copied.digest) == (EVENTS - LOST, original.digest)
    tenant.until_tidied("left")
    assert tenant.left_over(f"{scope}/left", status["copyID"]) == []
