"""A StreamCopy into a stream that is in use, on real pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from localcluster import LocalClusterError
from support.store.live import assert_nothing_failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

EVENTS = 10_000
KEYS = 64
LIVE = 50


@pytest.fixture
def streams(java: ForeignClient, scope: str) -> tuple[str, str]:
    """Return a scaled stream of 20,000 events, and a stream with other key ranges."""
    java.create(scope, "orders", segments=2)
    java.write(scope, "orders", events=EVENTS, keys=KEYS)
    assert java.scale(scope, "orders")
    java.write(scope, "orders", events=EVENTS, keys=KEYS, first=EVENTS)
    java.create(scope, "shop", segments=3)
    return f"{scope}/orders", f"{scope}/shop"


def _appending(tenant: Tenant, name: str, streams: tuple[str, str]) -> Object:
    """Return a copy that appends."""
    copy = tenant.copy_resource(name, *streams)
    copy["spec"]["target"]["onExists"] = "Append"
    return copy


@pytest.mark.exhaustive
def test_stream_in_use_is_appended_to_once_by_each_resource(
    tenant: Tenant,
    scope: str,
    java: ForeignClient,
    streams: tuple[str, str],
    say: Callable[[str], None],
) -> None:
    """Each resource appends once, beside a writer that notices nothing.

    The columns say so, and the target has its key ranges again.
    """
    before = _ranges(java, scope)
    stop = java.start_writer(scope, "shop", rate=1200, keys=LIVE, seed=1)
    copy = _appending(tenant, "once", streams)
    tenant.apply(copy)
    status = tenant.until_ready("once")
    live = stop()
    assert_nothing_failed(live, say)
    assert status["verification"]["events"] == 2 * EVENTS
    row = tenant.run("get", "scopy", "once").splitlines()[-1]
    assert re.match(r"once +True +Copied +100%", row), row
    read = java.read(scope, "shop")
    assert read.clean, read
    assert (read.events, read.keys) == (2 * EVENTS + live.events, KEYS + LIVE)
    assert _ranges(java, scope) == before

    tenant.run("delete", "scopy", "once")
    tenant.apply(copy)
    again = tenant.until_ready("once")
    assert again["attempts"] == 0
    assert again["verification"]["digest"] == status["verification"]["digest"]
    assert java.visible(scope, "shop").events == read.events

    tenant.apply(_appending(tenant, "twice", streams))
    tenant.until_ready("twice")
    read = java.read(scope, "shop")
    assert (read.events, read.duplicates) == (4 * EVENTS + live.events, 2 * EVENTS)
    assert _ranges(java, scope) == before


@pytest.mark.exhaustive
def test_append_that_is_deleted_leaves_no_trace(
    tenant: Tenant, scope: str, java: ForeignClient, streams: tuple[str, str]
) -> None:
    """An append that is deleted during staging never puts an event into the target."""
    java.write(scope, "orders", events=300_000, keys=KEYS, first=2 * EVENTS)
    before = _ranges(java, scope)
    copy = _appending(tenant, "gone", streams)
    copy["spec"]["limits"] = {"bytesPerSecond": "1Mi"}
    tenant.apply(copy)
    tenant.until_staged("gone", least=5)
    assert java.visible(scope, "shop").events == 0
    tenant.run("delete", "scopy", "gone")
    assert java.visible(scope, "shop").events == 0
    assert _ranges(java, scope) == before


@pytest.mark.exhaustive
def test_what_is_done_with_a_stream_that_exists_cannot_be_changed(
    tenant: Tenant, streams: tuple[str, str]
) -> None:
    """The API server refuses changes of `onExists`, and names the field."""
    copy = _appending(tenant, "fixed", streams)
    copy["spec"]["suspend"] = True
    tenant.apply(copy)
    with pytest.raises(LocalClusterError, match=r"spec\.target"):
        tenant.patch("scopy", "fixed", {"spec": {"target": {"onExists": "Fail"}}})


def _ranges(java: ForeignClient, scope: str) -> list[tuple[float | None, float | None]]:
    """Return the key ranges of the target's active segments."""
    segments = java.info(scope, "shop").segments
    return sorted((one.low, one.high) for one in segments if one.low is not None)
