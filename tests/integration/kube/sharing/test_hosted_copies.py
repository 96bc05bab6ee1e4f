"""Copies of tenants whose drivers run beside the platform's login: a real API server and Pravega.

The operator has all rights in the tenants' namespaces. So each refusal is its own.
"""

from __future__ import annotations

import os
import signal
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from localstore.accounts import ADMIN
from sluice.kube.api.names import ATTEMPT_LABEL, COPY_ANNOTATION, UID_LABEL
from support.cluster.kubelet import DriverPod
from support.tenants.scene import Scene, staged, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.tenants.tenant import Object, Tenant

pytestmark = pytest.mark.timeout(400)

EVENTS: Final = 1000
LOGIN: Final = "login"
OURS: Final = "app.kubernetes.io/managed-by=sluice-operator"


@pytest.fixture(scope="module")
def scene(
    kube: Cluster, definitions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Yield the namespaces of the platform and of two tenants, and the operator."""
    assert definitions
    with staged(kube, tmp_path_factory.mktemp("hosted"), "second") as found:
        found.platform.apply(found.platform.login_resource(ADMIN))
        yield found


@pytest.fixture
def shop(
    scene: Scene, standalone_auth: Standalone, foreign_for: Callable[..., ForeignClient]
) -> tuple[str, ForeignClient]:
    """Return a scope with a stream in it, in a StreamStore that both tenants may use."""
    java = foreign_for(standalone_auth.controller_uri, ADMIN)
    scope = f"hosted-{uuid4().hex[:8]}"
    java.create_scope(scope)
    java.create(scope, "source")
    java.write(scope, "source", events=EVENTS, keys=10)
    lend(scene, standalone_auth, on=True)
    return scope, java


def lend(scene: Scene, store: Standalone, *, on: bool) -> None:
    """Share the StreamStore with both tenants, or with no tenant."""
    tenants = (scene.tenant, *scene.others) if on else ()
    grants = [scene.grant_to(one, driverNamespace="Store") for one in tenants]
    scene.share("main", store.controller_uri, *grants, secret=LOGIN)


def copy(scene: Scene, name: str, scope: str, **spec: Any) -> Object:
    """Return a StreamCopy within the platform's store."""
    body = scene.tenant.copy_resource(name, f"{scope}/source", f"{scope}/{name}", **spec)
    for side in ("source", "target"):
        body["spec"][side]["storeRef"] = scene.ref("main")
    return body


def work(tenant: Tenant) -> set[str]:
    """Return the Jobs, pods and ConfigMaps of copies in a namespace, as kind/name."""
    found = tenant.get_all("jobs,pods,configmaps", labelSelector=OURS)
    return {f"{one['kind']}/{one['metadata']['name']}" for one in found}


def copies(tenant: Tenant) -> set[str]:
    """Return the UIDs of the copies that have Jobs, pods or ConfigMaps in a namespace."""
    found = tenant.get_all("jobs,pods,configmaps", labelSelector=OURS)
    return {one["metadata"]["labels"][UID_LABEL] for one in found}


def pod_in(tenant: Tenant) -> Object:
    """Wait for the pod of a driver in a namespace, and return it."""
    pods: Any = tenant.until("its pod is there", lambda: waiting(tenant))
    found: Object = pods[0]
    return found


def test_a_tenants_copy_runs_beside_the_platforms_login(
    scene: Scene, shop: tuple[str, ForeignClient], tmp_path: Path
) -> None:
    """The tenant sees plan and result. No other object of the copy is ever in its namespace."""
    (scope, java), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "target", scope))
    pod = pod_in(platform)
    (mounted,) = [one["secret"] for one in pod["spec"]["volumes"] if "secret" in one]
    assert mounted["secretName"] == LOGIN
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert tenant.status("target")["driverNamespace"] == platform.namespace
    assert {one.partition("/")[0] for one in work(tenant)} == {"ConfigMap"}
    assert tenant.get_all("secrets") == []
    assert scene.is_held("main")
    driver = DriverPod(platform, pod, tmp_path)
    try:
        assert driver.finish() == 0
    finally:
        driver.close()
    tenant.until_ready("target")
    assert java.read(scope, "target").events == EVENTS
    tenant.until_tidied("target")
    platform.until("nothing of it is left", lambda: not work(platform))
    platform.until("the store is let go", lambda: not scene.is_held("main"))
    tenant.run("delete", "scopy", "target")


@pytest.mark.exhaustive
def test_a_copy_follows_its_source_beside_the_platforms_login(
    scene: Scene, shop: tuple[str, ForeignClient], tmp_path: Path
) -> None:
    """A follower's Job is beside the login, and the tenant can still cut over."""
    (scope, java), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "live", scope, mode="Continuous"))
    driver = DriverPod(platform, pod_in(platform), tmp_path)
    try:
        tenant.until_reason("live", "Following")
        (job,) = platform.get_all("jobs", labelSelector=OURS)
        assert job["spec"]["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
        java.write(scope, "source", events=EVENTS, keys=10, first=EVENTS)
        tenant.patch("scopy", "live", {"spec": {"cutover": "Drain"}})
        assert driver.finish() == 0
    finally:
        driver.close()
    tenant.until_ready("live")
    assert tenant.reason("live") == "CutOver"
    assert java.read(scope, "live").events == 2 * EVENTS
    tenant.until_tidied("live")
    platform.until("nothing of it is left", lambda: not work(platform))
    tenant.run("delete", "scopy", "live")


def test_a_withdrawn_grant_stops_the_driver_and_a_deleted_copy_leaves_nothing(
    scene: Scene, standalone_auth: Standalone, shop: tuple[str, ForeignClient]
) -> None:
    """A withdrawn grant stops the driver until it returns. A deleted copy leaves no objects."""
    (scope, _), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "second", scope))
    pod_in(platform)
    lend(scene, standalone_auth, on=False)
    tenant.until_reason("second", "StoreNotShared")
    platform.until("its driver is stopped", lambda: not waiting(platform))
    lend(scene, standalone_auth, on=True)
    pod_in(platform)
    tenant.run("delete", "scopy", "second")
    platform.until("nothing of it is left", lambda: not work(platform))
    platform.until("the store is let go", lambda: not scene.is_held("main"))


@pytest.mark.exhaustive
def test_copies_of_one_name_do_not_meet(scene: Scene, shop: tuple[str, ForeignClient]) -> None:
    """Copies of one name have separate objects in the platform's namespace."""
    (scope, _), platform, (second,) = shop, scene.platform, scene.others
    scene.tenant.apply(copy(scene, "same", scope))
    first = pod_in(platform)
    body = copy(scene, "same", scope)
    body["spec"]["target"]["stream"] = "another"
    second.apply(body)
    platform.until("both are there", lambda: len(waiting(platform)) == 2)
    other = (second.get("scopy", "same") or {})["metadata"]["uid"]
    platform.until("both have objects", lambda: copies(platform) > {other})
    scene.tenant.run("delete", "scopy", "same")
    platform.until("those of one are left", lambda: copies(platform) == {other})
    (left,) = waiting(platform)
    assert left["metadata"]["uid"] != first["metadata"]["uid"]
    second.run("delete", "scopy", "same")
    platform.until("nothing of them is left", lambda: not work(platform))


def test_all_that_a_driver_mounts_has_its_job_as_owner(
    scene: Scene, shop: tuple[str, ForeignClient]
) -> None:
    """The Job owns all mounted objects. So they go even if a user removes the finalizer."""
    (scope, _), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "owned", scope))
    pod_in(platform)
    (job,) = platform.get_all("jobs", labelSelector=OURS)
    for one in platform.get_all("configmaps", labelSelector=OURS):
        (owner,) = one["metadata"]["ownerReferences"]
        assert owner["uid"] == job["metadata"]["uid"]
    # The operator must see both at once, before it has finished the deletion.
    os.kill(scene.operator.pid, signal.SIGSTOP)
    tenant.run("delete", "scopy", "owned", "--wait=false")
    tenant.patch("scopy", "owned", {"metadata": {"finalizers": None}})
    os.kill(scene.operator.pid, signal.SIGCONT)
    platform.until("nothing of it is left", lambda: not work(platform))


@pytest.mark.exhaustive
def test_what_a_lost_finalizer_leaves_is_swept(
    scene: Scene, shop: tuple[str, ForeignClient]
) -> None:
    """If a user removes the finalizer, the operator sweeps the driver that is left."""
    (scope, _), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "torn", scope))
    pod_in(platform)
    scene.operator.kill()
    tenant.run("delete", "scopy", "torn", "--wait=false")
    tenant.patch("scopy", "torn", {"metadata": {"finalizers": None}})
    tenant.until_gone("scopy", "torn")
    assert work(platform)
    scene.operator.start()
    platform.until("nothing of it is left", lambda: not work(platform))


@pytest.mark.parametrize(
    ("runtime", "field"),
    [
        ({"executors": 1}, "spec.runtime.executors"),
        ({"driver": {"resources": {"memory": "4Gi"}}}, "spec.runtime.driver.resources"),
    ],
    ids=["executors", "sizes"],
)
def test_a_tenant_chooses_no_pods_in_the_platforms_namespace(
    scene: Scene, shop: tuple[str, ForeignClient], runtime: Object, field: str
) -> None:
    """A tenant's settings of pods are refused by the field's name, and nothing is made."""
    (scope, _), tenant = shop, scene.tenant
    tenant.apply(copy(scene, "greedy", scope, runtime=runtime))
    tenant.until_reason("greedy", "InvalidSpec")
    assert tenant.condition("greedy")["message"].startswith(field)
    assert not work(scene.platform)
    tenant.run("delete", "scopy", "greedy")


def test_no_driver_of_the_platforms_opens_an_address_of_a_tenants(
    scene: Scene, shop: tuple[str, ForeignClient]
) -> None:
    """A platform's driver opens no tenant's address, even with a Secret of the login's name."""
    (scope, _), tenant = shop, scene.tenant
    tenant.apply(tenant.login_resource(ADMIN))
    tenant.apply(tenant.store_resource("evil", uri="tcp://127.0.0.1:9", secret=LOGIN))
    for side in ("source", "target"):
        body = copy(scene, f"evil-{side}", scope)
        body["spec"][side]["storeRef"] = {"name": "evil"}
        tenant.apply(body)
        tenant.until_reason(f"evil-{side}", "LoginNotShared")
    assert not work(scene.platform)
    assert not [one for one in work(tenant) if one.startswith(("Job", "Pod"))]
    tenant.run("delete", "scopy", "evil-source", "evil-target")
    tenant.run("delete", "sst/evil", "secret/login")


def test_a_forged_status_of_drivers_is_nothing_that_a_tenant_can_write(
    scene: Scene, shop: tuple[str, ForeignClient]
) -> None:
    """A tenant's forged Job or plan changes nothing of a hosted copy."""
    (scope, _), platform, tenant = shop, scene.platform, scene.tenant
    tenant.apply(copy(scene, "forged", scope))
    pod = pod_in(platform)
    uid = tenant.get("scopy", "forged")["metadata"]["uid"]  # type: ignore[index]
    forged = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "forged",
            "labels": {
                "app.kubernetes.io/managed-by": "sluice-operator",
                UID_LABEL: uid,
            },
            "annotations": {COPY_ANNOTATION: f"StreamCopy/{tenant.namespace}/forged"},
        },
        "spec": {"suspend": True, "template": pod_template()},
    }
    tenant.apply(forged)
    blinding = copy_of(forged, "blinding")
    blinding["metadata"]["labels"][ATTEMPT_LABEL] = "9999999999"
    owner = {"apiVersion": "sluice.dev/v1alpha1", "kind": "StreamCopy", "name": "forged"}
    blinding["metadata"]["ownerReferences"] = [owner | {"uid": uid, "controller": True}]
    tenant.apply(blinding)
    tenant.until_gone("job", "blinding")
    assert pod["metadata"]["uid"] in {one["metadata"]["uid"] for one in waiting(platform)}
    plan = tenant.status("forged")["planRef"]["name"]
    tenant.run("delete", "configmap", plan)
    platform.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    again = platform.until("another attempt begins", lambda: other_than(pod, waiting(platform)))
    assert again["metadata"]["namespace"] == platform.namespace
    assert tenant.get("job", "forged") is not None, "it is not the operator's to delete"
    tenant.run("delete", "scopy", "forged")
    tenant.run("delete", "job", "forged")
    platform.until("nothing of it is left", lambda: not work(platform))


def copy_of(body: Object, name: str) -> Object:
    """Return a copy of an object, with another name."""
    made: Object = deepcopy(body)
    made["metadata"]["name"] = name
    return made


def other_than(pod: Object, pods: list[Object]) -> Object | None:
    """Return another pod than this one, if there is one."""
    uid = pod["metadata"]["uid"]
    return next((one for one in pods if one["metadata"]["uid"] != uid), None)


def pod_template() -> Object:
    """Return the template of a pod that is never made."""
    security = {
        "runAsNonRoot": True,
        "runAsUser": 1,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "x", "image": "x", "securityContext": security}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}
