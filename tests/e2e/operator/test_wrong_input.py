"""Failures. Each has a condition and an event with a remedy, and leaves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.gitops.kstatus import kstatus

if TYPE_CHECKING:
    from e2e.operator.conftest import Source
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

_MISSING_STORE = "tcp://127.0.0.1:9"


def _refused(
    tenant: Tenant, name: str, *reasons: str, says: str, failed: bool = True
) -> dict[str, Any]:
    """Wait for a condition, and check that the event and kstatus agree with it."""
    condition = tenant.until_reason(name, *reasons)
    assert says in condition["message"]
    tenant.until("the event", lambda: any(reason in reasons for reason, _ in tenant.events(name)))
    copy = tenant.get("scopy", name)
    assert copy is not None
    assert kstatus([copy]) == {f"StreamCopy/{name}": "Failed" if failed else "InProgress"}
    return condition


def test_unknown_stream(tenant: Tenant, scope: str) -> None:
    """A missing source is named, and no finalizer holds the copy."""
    tenant.apply(tenant.copy_resource("lost", "source/nothing", f"{scope}/lost"))
    _refused(tenant, "lost", "SourceNotFound", says="spec.source.stream")
    assert "finalizers" not in (tenant.get("scopy", "lost") or {})["metadata"]
    assert tenant.get_all("jobs") == []


@pytest.mark.exhaustive
def test_source_that_comes_later(tenant: Tenant, scope: str, java: ForeignClient) -> None:
    """A failed copy succeeds if it is requested again after its source was made."""
    tenant.apply(tenant.copy_resource("early", f"{scope}/source", f"{scope}/early"))
    tenant.until_reason("early", "SourceNotFound")
    java.create(scope, "source")
    java.write(scope, "source", events=100)
    tenant.annotate("early", "sluice.dev/requestedAt=1")
    assert tenant.until_ready("early")["verification"]["events"] == 100


@pytest.mark.exhaustive
def test_target_that_exists(tenant: Tenant, small: Source, scope: str, java: ForeignClient) -> None:
    """A stream that the copy did not make is not touched."""
    java.create(scope, "taken")
    java.write(scope, "taken", events=10)
    tenant.apply(tenant.copy_resource("taken", small.name, f"{scope}/taken"))
    _refused(tenant, "taken", "TargetExists", says="Name another target")
    assert java.read(scope, "taken").events == 10
    assert tenant.get_all("jobs") == []


@pytest.mark.exhaustive
def test_target_scope_missing(tenant: Tenant, small: Source) -> None:
    """A missing target scope fails the copy, which makes no scopes by default."""
    tenant.apply(tenant.copy_resource("scopeless", small.name, "no-such-scope/stream"))
    _refused(tenant, "scopeless", "TargetScopeNotFound", says="spec.target.scope")


@pytest.mark.exhaustive
def test_store_that_is_not_there_yet(tenant: Tenant, small: Source, scope: str) -> None:
    """A copy waits for its StreamStore, and goes on once that is applied."""
    tenant.run("delete", "sst", "store")
    tenant.apply(tenant.copy_resource("waits", small.name, f"{scope}/waits"))
    _refused(tenant, "waits", "StoreNotFound", says="spec.source.storeRef.name", failed=False)
    tenant.apply(tenant.store_resource())
    tenant.until_ready("waits")


@pytest.mark.exhaustive
def test_store_down(tenant: Tenant, small: Source, scope: str) -> None:
    """A copy waits for a store that does not answer, and names its address."""
    tenant.apply(tenant.store_resource(uri=_MISSING_STORE))
    tenant.apply(tenant.copy_resource("down", small.name, f"{scope}/down"))
    _refused(tenant, "down", "StoreNotReady", says="127.0.0.1:9", failed=False)
    condition = tenant.condition("store", resource="sst")
    assert (condition["status"], condition["reason"]) == ("Unknown", "StoreUnavailable")
    tenant.apply(tenant.store_resource())
    tenant.until_ready("down")


@pytest.mark.exhaustive
def test_no_such_profile(tenant: Tenant, small: Source, scope: str) -> None:
    """An unknown profile is refused with the names of the offered ones."""
    tenant.apply(
        tenant.copy_resource("fancy", small.name, f"{scope}/fancy", runtime={"profile": "fancy"})
    )
    _refused(tenant, "fancy", "ProfileNotFound", says="default, no-image")
    tenant.patch("scopy", "fancy", {"spec": {"runtime": {"profile": "default"}}})
    tenant.until_ready("fancy")


@pytest.mark.exhaustive
def test_more_than_the_profile_allows(tenant: Tenant, small: Source, scope: str) -> None:
    """Sizes beyond the administrator's bounds are refused with the field and the bound."""
    runtime = {"driver": {"resources": {"memory": "64Gi"}}}
    tenant.apply(tenant.copy_resource("huge", small.name, f"{scope}/huge", runtime=runtime))
    _refused(tenant, "huge", "InvalidSpec", says="spec.runtime.driver.resources.memory")


@pytest.mark.exhaustive
def test_executors_where_they_may_not_be(tenant: Tenant, small: Source, scope: str) -> None:
    """A namespace without a driver's ServiceAccount says so before anything starts."""
    tenant.apply(
        tenant.copy_resource("many", small.name, f"{scope}/many", runtime={"executors": 2})
    )
    _refused(tenant, "many", "InvalidSpec", says="spec.runtime.executors")
    assert tenant.get_all("jobs") == []


def test_image_missing(tenant: Tenant, small: Source, scope: str) -> None:
    """An unavailable image is named, and another profile solves it."""
    tenant.apply(
        tenant.copy_resource(
            "imageless", small.name, f"{scope}/imageless", runtime={"profile": "no-image"}
        )
    )
    _refused(tenant, "imageless", "ImagePullFailed", says="there-is-no-such-image", failed=False)
    tenant.patch("scopy", "imageless", {"spec": {"runtime": {"profile": "default"}}})
    tenant.until_ready("imageless")


@pytest.mark.exhaustive
def test_quota_exceeded(tenant: Tenant, small: Source, scope: str) -> None:
    """A quota without room is named. Once it is raised, the copy goes on."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}},
    }
    tenant.apply(quota)
    tenant.until("the quota counts", lambda: (tenant.get("quota", "none") or {}).get("status"))
    tenant.apply(tenant.copy_resource("crowded", small.name, f"{scope}/crowded"))
    _refused(tenant, "crowded", "QuotaExceeded", says="exceeded quota", failed=False)
    tenant.run("delete", "quota", "none")
    tenant.until_ready("crowded")
