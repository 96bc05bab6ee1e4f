"""EphemeralStreams on a real cluster; the store's own listing tells what is there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localstore import ForeignClient
    from support.tenant import Object, Tenant


@pytest.fixture
def app(tenant: Tenant) -> Object:
    """Gives a workload without pods, as spec.owners names it."""
    return _workload(tenant, "app")


def _workload(tenant: Tenant, name: str) -> Object:
    tenant.run("create", "deployment", name, "--image=localhost/none:1", "--replicas=0")
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def _ephemeral(tenant: Tenant, name: str, scope: str, *owners: Object, **spec: Any) -> Object:
    """An EphemeralStream; of a stream of its own name, unless the spec has a prefix."""
    what = {} if "streamPrefix" in spec else {"stream": spec.pop("stream", name)}
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "EphemeralStream",
        "metadata": {"name": name, "namespace": tenant.namespace},
        "spec": {"storeRef": {"name": "store"}, "scope": scope, **what, "owners": [*owners]} | spec,
    }


def _until_reason(tenant: Tenant, name: str, *reasons: str, seconds: float = 60) -> Object:
    """Wait until an EphemeralStream's Ready condition has one of these reasons."""

    def said() -> Object:
        found = tenant.condition(name, resource="eps")
        return found if found.get("reason") in reasons else {}

    return tenant.until(f"{name} says {' or '.join(reasons)}", said, seconds=seconds)


def test_stream_lives_as_long_as_its_owner(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """Made with its owner, and deleted with it by Kubernetes' garbage collector."""
    tenant.apply(_ephemeral(tenant, "helper", scope, app, config={"scaling": {"minSegments": 3}}))
    _until_reason(tenant, "helper", "Claimed")
    assert java.streams(scope) == ["helper"]
    assert len(java.info(scope, "helper").segments) == 3
    found = tenant.get("eps", "helper") or {}
    (reference,) = found["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["blockOwnerDeletion"]) == ("Deployment", False)
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "helper")
    assert java.streams(scope) == []


def test_stream_waits_for_its_owner(tenant: Tenant, scope: str, java: ForeignClient) -> None:
    """No owner, no stream; it is made once the owner is."""
    later = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "later"}
    tenant.apply(_ephemeral(tenant, "patient", scope, later))
    _until_reason(tenant, "patient", "WaitingForOwner")
    assert java.streams(scope) == []
    began = time.monotonic()
    _workload(tenant, "later")
    _until_reason(tenant, "patient", "Claimed")
    tenant.say(f"  owner made -> stream there: {time.monotonic() - began:.1f} s")
    assert java.streams(scope) == ["patient"]


def test_shared_stream_goes_with_the_last_owner(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """Several owners attach and detach; the stream stays while one of them is there."""
    other = _workload(tenant, "other")
    tenant.apply(_ephemeral(tenant, "shared", scope, app, other))
    _until_reason(tenant, "shared", "Claimed")
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


def test_orphaned_stream_is_retained(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """--cascade=orphan leaves the stream, and an owner made again takes it over."""
    tenant.apply(_ephemeral(tenant, "kept", scope, app))
    _until_reason(tenant, "kept", "Claimed")
    tenant.run("delete", "deployment", "app", "--cascade=orphan")
    _until_reason(tenant, "kept", "OwnerOrphaned")
    assert java.streams(scope) == ["kept"]
    _workload(tenant, "app")
    _until_reason(tenant, "kept", "Claimed")
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "kept")
    assert java.streams(scope) == []


def test_finished_job_releases_and_the_resource_stays(
    tenant: Tenant, scope: str, java: ForeignClient, sluice: Operator
) -> None:
    """OwnersFinished: a Job that has completed needs its stream no more; nothing is made again."""
    image = sluice.run("get", "deployment/sluice-operator", "--output", _IMAGE)
    job = _job(image)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "short"}
    tenant.apply(_ephemeral(tenant, "brief", scope, owner, releaseWhen="OwnersFinished"))
    tenant.apply(job)
    _until_reason(tenant, "brief", "Released", seconds=90)
    assert java.streams(scope) == []
    found = tenant.get("eps", "brief") or {}
    assert found["status"]["release"]["reason"] == "OwnersFinished"
    assert "finalizers" not in found["metadata"]


def test_observed_owner_releases_and_the_resource_stays(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """Observe: the owner's end releases the stream, and leaves nothing for GitOps to mend."""
    tenant.apply(_ephemeral(tenant, "seen", scope, app, tracking="Observe"))
    _until_reason(tenant, "seen", "Claimed")
    assert "ownerReferences" not in (tenant.get("eps", "seen") or {})["metadata"]
    tenant.run("delete", "deployment", "app")
    _until_reason(tenant, "seen", "Released")
    assert java.streams(scope) == []
    _workload(tenant, "app")
    tenant.run("annotate", "eps", "seen", "touched=yes")
    tenant.apply(_ephemeral(tenant, "next", scope))
    _until_reason(tenant, "next", "Claimed")
    assert java.streams(scope) == ["next"]


def test_prefix_owns_what_the_application_makes(
    tenant: Tenant, java: ForeignClient, app: Object
) -> None:
    """Streams made later under the prefix go with the owner; older ones and others stay."""
    scope = f"s{uuid4().hex[:8]}"
    java.create(scope, "flow-old")
    java.create(scope, "unrelated")
    tenant.apply(_ephemeral(tenant, "flow", scope, app, streamPrefix="flow-"))
    _until_reason(tenant, "flow", "Claimed")
    time.sleep(2)  # the application starts later than its resource; the doubt lasts a second
    java.create(scope, "flow-state")
    java.create(scope, "flow-marks", segments=2)
    tenant.until(
        "both are counted",
        lambda: (tenant.get("eps", "flow") or {})["status"].get("streamCount") == 2,
        seconds=90,
    )
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "flow")
    assert java.streams(scope) == ["flow-old", "unrelated"]
    java.delete_scope(scope)


def test_scope_goes_when_it_was_ours_and_is_empty(
    tenant: Tenant, java: ForeignClient, app: Object
) -> None:
    """CreateIfAbsent makes the scope, and its last stream takes it along."""
    scope = f"s{uuid4().hex[:8]}"
    other = _workload(tenant, "other")
    policy = {"scopePolicy": "CreateIfAbsent"}
    tenant.apply(_ephemeral(tenant, "one", scope, app, **policy))
    tenant.apply(_ephemeral(tenant, "two", scope, other, **policy))
    _until_reason(tenant, "one", "Claimed")
    _until_reason(tenant, "two", "Claimed")
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "one")
    assert "two" in (java.streams(scope) or [])
    tenant.run("delete", "deployment", "other")
    tenant.until_gone("eps", "two")
    assert java.streams(scope) is None


def test_foreign_stream_is_not_touched(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """A stream that Sluice did not make is refused, and survives the resource."""
    java.create(scope, "theirs")
    tenant.apply(_ephemeral(tenant, "theirs", scope, app))
    said = _until_reason(tenant, "theirs", "StreamExists")
    assert "adopt" in said["message"]
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "theirs")
    assert java.streams(scope) == ["theirs"]


def test_owner_deleted_while_the_operator_is_away(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object, sluice: Operator
) -> None:
    """Nothing depends on seeing it happen."""
    tenant.apply(_ephemeral(tenant, "late", scope, app))
    _until_reason(tenant, "late", "Claimed")
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


def test_older_resource_wins(tenant: Tenant, scope: str, java: ForeignClient, app: Object) -> None:
    """Of two that claim one stream the younger says so, and does no harm when it goes."""
    tenant.apply(_ephemeral(tenant, "elder", scope, app, stream="same"))
    _until_reason(tenant, "elder", "Claimed")
    tenant.apply(_ephemeral(tenant, "younger", scope, app, stream="same"))
    said = _until_reason(tenant, "younger", "Conflict")
    assert f"{tenant.namespace}/elder" in said["message"]
    tenant.run("delete", "eps", "younger")
    assert java.streams(scope) == ["same"]
    assert tenant.condition("elder", resource="eps")["reason"] == "Claimed"


def test_stream_that_was_left_behind_is_taken_over(
    tenant: Tenant, scope: str, java: ForeignClient, app: Object
) -> None:
    """What a resource left that went by force gets a new one, with what is in it."""
    tenant.apply(_ephemeral(tenant, "first", scope, app, stream="same"))
    _until_reason(tenant, "first", "Claimed")
    java.write(scope, "same", events=10, keys=1)
    tenant.run("annotate", "eps", "first", "sluice.dev/force-orphan=true")
    tenant.run("delete", "eps", "first")
    tenant.apply(_ephemeral(tenant, "second", scope, app, stream="same"))
    said = _until_reason(tenant, "second", "StreamExists", "Conflict")
    assert f"{tenant.namespace}/first, which is gone" in said["message"]
    tenant.apply(_ephemeral(tenant, "second", scope, app, stream="same", adopt="IfUnowned"))
    _until_reason(tenant, "second", "Claimed")
    assert java.read(scope, "same").events == 10
    tenant.run("delete", "deployment", "app")
    tenant.until_gone("eps", "second")
    assert java.streams(scope) == []


@pytest.mark.crash
def test_namespace_with_many_streams_goes(
    kube: Cluster, tenant: Tenant, scope: str, java: ForeignClient, app: Object, sluice: Operator
) -> None:
    """200 EphemeralStreams, their Secretless store deleted first, the operator killed midway."""
    count = 200
    tenant.apply(*[_ephemeral(tenant, f"e{n:03}", scope, app) for n in range(count)])
    began = time.monotonic()
    tenant.until("all are there", lambda: len(java.streams(scope) or []) == count, seconds=180)
    tenant.say(f"  {count} streams made in {time.monotonic() - began:.0f} s")
    tenant.run("delete", "sst", "store", "--wait=false")
    began = time.monotonic()
    kube.kubectl("delete", "namespace", tenant.namespace, "--wait=false")
    tenant.until("some are gone", lambda: len(java.streams(scope) or []) < count - 20, seconds=60)
    sluice.kill()
    wait = ("--for=delete", "--timeout=180s")
    kube.kubectl("wait", f"namespace/{tenant.namespace}", *wait, timeout=190)
    tenant.say(f"  namespace gone after {time.monotonic() - began:.0f} s")
    assert java.streams(scope) == []


_IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"


def _job(image: str) -> Object:
    """A Job that ends at once, in a pod that `restricted` admits."""
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
