"""EphemeralStreams on a real cluster, with the store's own listing as witness."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from support.tenants.owned import ephemeral, until_reason, workload

if TYPE_CHECKING:
    from e2e.operator.conftest import Operator
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant


@pytest.fixture
def app(tenant: Tenant) -> Object:
    """Return a workload without pods, as spec.owners names it."""
    return workload(tenant, "app")


def test_stream_lives_as_long_as_its_owner(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """A stream is made with its owner, and goes with it by Kubernetes' garbage collector."""
    tenant.apply(ephemeral(tenant, "helper", scope, app, config={"scaling": {"minSegments": 3}}))
    until_reason(tenant, "helper", "Claimed")
    assert java.streams(scope) == ["helper"]
    assert len(java.info(scope, "helper").segments) == 3
    found = tenant.get("eps", "helper") or {}
    (reference,) = found["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["blockOwnerDeletion"]) == ("Deployment", False)
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "helper")
    assert java.streams(scope) == []


def test_stream_waits_for_its_owner(tenant: Tenant, scope: str, java: ForeignClient) -> None:
    """A stream without an owner is made once the owner exists."""
    later = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "later"}
    tenant.apply(ephemeral(tenant, "patient", scope, later))
    until_reason(tenant, "patient", "WaitingForOwner")
    assert java.streams(scope) == []
    began = time.monotonic()
    workload(tenant, "later")
    until_reason(tenant, "patient", "Claimed")
    tenant.say(f"  owner made -> stream there: {time.monotonic() - began:.1f} s")
    assert java.streams(scope) == ["patient"]


@pytest.mark.exhaustive
def test_shared_stream_goes_with_the_last_owner(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """A stream with several owners stays while any of them exists."""
    other = workload(tenant, "other")
    tenant.apply(ephemeral(tenant, "shared", scope, app, other))
    until_reason(tenant, "shared", "Claimed")
    tenant.until(
        "both own it",
        lambda: len((tenant.get("eps", "shared") or {})["metadata"]["ownerReferences"]) == 2,
    )
    tenant.run("delete", "deployment", "app")
    tenant.until(
        "one owner is gone",
        lambda: (tenant.get("eps", "shared") or {})["status"]["ownersSummary"] == "1/2",
    )
    assert java.streams(scope) == ["shared"]
    tenant.run("delete", "deployment", "other")
    tenant.until_gone("eps", "shared")
    assert java.streams(scope) == []


@pytest.mark.exhaustive
def test_orphaned_stream_is_retained(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """With --cascade=orphan the stream stays, and a new owner takes it over."""
    tenant.apply(ephemeral(tenant, "kept", scope, app))
    until_reason(tenant, "kept", "Claimed")
    tenant.run("delete", "deployment", "app", "--cascade=orphan")
    until_reason(tenant, "kept", "OwnerOrphaned")
    assert java.streams(scope) == ["kept"]
    workload(tenant, "app")
    until_reason(tenant, "kept", "Claimed")
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "kept")
    assert java.streams(scope) == []


def test_finished_job_releases_and_the_resource_stays(
    tenant: Tenant, scope: str, java: ForeignClient, sluice: Operator
) -> None:
    """With OwnersFinished, a completed Job releases its stream, which is not made again."""
    job = _job(sluice.image)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "short"}
    tenant.apply(ephemeral(tenant, "brief", scope, owner, releaseWhen="OwnersFinished"))
    tenant.apply(job)
    until_reason(tenant, "brief", "Released")
    assert java.streams(scope) == []
    found = tenant.get("eps", "brief") or {}
    assert found["status"]["release"]["reason"] == "OwnersFinished"
    assert "finalizers" not in found["metadata"]


@pytest.mark.exhaustive
def test_observed_owner_releases_and_the_resource_stays(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """With Observe, the owner's end releases the stream and causes no drift for GitOps."""
    tenant.apply(ephemeral(tenant, "seen", scope, app, tracking="Observe"))
    until_reason(tenant, "seen", "Claimed")
    assert "ownerReferences" not in (tenant.get("eps", "seen") or {})["metadata"]
    tenant.run("delete", "deployment", "app")
    until_reason(tenant, "seen", "Released")
    assert java.streams(scope) == []
    workload(tenant, "app")
    tenant.run("annotate", "eps", "seen", "touched=yes")
    tenant.apply(ephemeral(tenant, "next", scope))
    until_reason(tenant, "next", "Claimed")
    assert java.streams(scope) == ["next"]


def test_prefix_owns_what_the_application_makes(
    tenant: Tenant, java: ForeignClient, app: Object
) -> None:
    """Streams made later under the prefix go with the owner. Older ones and others stay."""
    scope = f"s{uuid4().hex[:8]}"
    java.create(scope, "flow-old")
    java.create(scope, "unrelated")
    soon = {"deletionTimeoutSeconds": 10}  # the owner has no pods to wait for
    tenant.apply(ephemeral(tenant, "flow", scope, app, streamPrefix="flow-", **soon))
    until_reason(tenant, "flow", "Claimed")
    time.sleep(2)  # the age of streams made within a second of the resource is in doubt
    java.create(scope, "flow-state")
    java.create(scope, "flow-marks", segments=2)
    tenant.until(
        "both are counted",
        lambda: (tenant.get("eps", "flow") or {})["status"].get("streamCount") == 2,
    )
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "flow")
    assert java.streams(scope) == ["flow-old", "unrelated"]
    java.delete_scope(scope)


@pytest.mark.exhaustive
def test_scope_goes_when_it_was_ours_and_is_empty(
    tenant: Tenant, java: ForeignClient, app: Object
) -> None:
    """CreateIfAbsent makes the scope, and the scope goes with its last stream."""
    scope = f"s{uuid4().hex[:8]}"
    other = workload(tenant, "other")
    policy = {"scopePolicy": "CreateIfAbsent"}
    tenant.apply(ephemeral(tenant, "one", scope, app, **policy))
    tenant.apply(ephemeral(tenant, "two", scope, other, **policy))
    until_reason(tenant, "one", "Claimed")
    until_reason(tenant, "two", "Claimed")
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "one")
    assert "two" in (java.streams(scope) or [])
    tenant.run("delete", "deployment", "other")
    tenant.until_gone("eps", "two")
    assert java.streams(scope) is None


def test_foreign_stream_is_not_touched(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """A foreign stream is refused, and survives the resource."""
    java.create(scope, "theirs")
    tenant.apply(ephemeral(tenant, "theirs", scope, app))
    said = until_reason(tenant, "theirs", "StreamExists")
    assert "adopt" in said["message"]
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "theirs")
    assert java.streams(scope) == ["theirs"]


@pytest.mark.alone
def test_owner_deleted_while_the_operator_is_away(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object, sluice: Operator
) -> None:
    """An owner's deletion during the operator's absence is noticed later."""
    tenant.apply(ephemeral(tenant, "late", scope, app))
    until_reason(tenant, "late", "Claimed")
    sluice.scale(0)
    try:
        tenant.run("delete", "deployment", "app")
        tenant.until(
            "it is being deleted",
            lambda: "deletionTimestamp" in (tenant.get("eps", "late") or {})["metadata"],
        )
        assert java.streams(scope) == ["late"]
    finally:
        sluice.scale(1)
    tenant.until_gone("eps", "late")
    assert java.streams(scope) == []


@pytest.mark.exhaustive
def test_older_resource_wins(tenant: Tenant, scope: str, java: ForeignClient, app: Object) -> None:
    """Of two claims to a stream, the younger one reports the conflict.

    Its deletion does no harm.
    """
    tenant.apply(ephemeral(tenant, "elder", scope, app, stream="same"))
    until_reason(tenant, "elder", "Claimed")
    tenant.apply(ephemeral(tenant, "younger", scope, app, stream="same"))
    said = until_reason(tenant, "younger", "Conflict")
    assert f"{tenant.namespace}/elder" in said["message"]
    tenant.run("delete", "eps", "younger")
    assert java.streams(scope) == ["same"]
    assert tenant.condition("elder", resource="eps")["reason"] == "Claimed"


@pytest.mark.exhaustive
def test_stream_that_was_left_behind_is_taken_over(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """A new resource takes over the stream and events of a resource deleted by force."""
    tenant.apply(ephemeral(tenant, "first", scope, app, stream="same"))
    until_reason(tenant, "first", "Claimed")
    java.write(scope, "same", events=10, keys=1)
    tenant.run("annotate", "eps", "first", "sluice.dev/force-orphan=true")
    tenant.run("delete", "eps", "first")
    tenant.apply(ephemeral(tenant, "second", scope, app, stream="same"))
    said = until_reason(tenant, "second", "StreamExists", "Conflict")
    assert f"{tenant.namespace}/first, which is gone" in said["message"]
    tenant.apply(ephemeral(tenant, "second", scope, app, stream="same", adopt="IfUnowned"))
    until_reason(tenant, "second", "Claimed")
    assert java.read(scope, "same").events == 10
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "second")
    assert java.streams(scope) == []


def _job(image: str) -> Object:
    """Return a Job that ends at once, in a pod that `restricted` admits."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "short"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [
                        {
                            "name": "short",
                            "image": image,
                            "command": ["sleep", "5"],
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "capabilities": {"drop": ["ALL"]},
                            },
                        }
                    ],
                }
            }
        },
    }
