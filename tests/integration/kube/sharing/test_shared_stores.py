"""A platform team's StreamStore and a tenant's resources: a real API server, operator and Pravega.

The operator has all rights in the tenant's namespace. So each refusal is its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest
import yaml

from localstore.accounts import ADMIN
from support.cluster.kubelet import DriverPod
from support.tenants.owned import ephemeral, until_reason
from support.tenants.scene import Scene, staged, waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.tenants.tenant import Object

pytestmark = pytest.mark.timeout(400)

EXAMPLE: Final = Path(__file__).parents[4] / "examples/streamstore-shared.yaml"
EVENTS: Final = 1000


@pytest.fixture(scope="module")
def scene(
    kube: Cluster, definitions: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Yield the two namespaces, and an operator that serves both."""
    assert definitions
    with staged(kube, tmp_path_factory.mktemp("shared")) as found:
        yield found


def test_a_tenants_stream_lives_in_a_store_whose_login_stays_with_the_platform(
    scene: Scene, standalone_auth: Standalone, foreign_for: Callable[..., ForeignClient]
) -> None:
    """A tenant's stream outlives a withdrawn grant until its own deletion.

    A deleted StreamStore waits until then.
    """
    java, uri = foreign_for(standalone_auth.controller_uri, ADMIN), standalone_auth.controller_uri
    scope, tenant, platform = f"shared-{uuid4().hex[:8]}", scene.tenant, scene.platform
    java.create_scope(scope)
    platform.apply(platform.login_resource(ADMIN))
    scene.share("main", uri, scene.grant, secret="login")  # noqa: S106 - the name of a Secret
    body = ephemeral(tenant, "helper", scope, storeRef=scene.ref("main"))
    tenant.apply(body)
    until_reason(tenant, "helper", "Claimed")
    assert java.streams(scope) == ["helper"]
    assert scene.is_held("main")
    assert tenant.get_all("secrets") == []

    platform.run("delete", "sst", "main", "--wait=false")
    platform.until(
        "it waits for the tenant's resource",
        lambda: (
            f"EphemeralStream {tenant.namespace}/helper"
            in platform.condition("main", resource="sst").get("message", "")
        ),
    )
    scene.share("main", uri, secret="login")  # noqa: S106 - the name of a Secret
    until_reason(tenant, "helper", "StoreNotShared")
    assert java.streams(scope) == ["helper"]
    tenant.run("delete", "eps", "helper")
    assert java.streams(scope) == []
    platform.until("it is let go", lambda: platform.get("sst", "main") is None)
    secret = platform.get("secret", "login")
    assert secret is not None
    assert not secret["metadata"].get("finalizers")


@pytest.mark.exhaustive
def test_a_grant_is_noticed_at_once(scene: Scene, standalone: Standalone, scope: str) -> None:
    """Earlier resources notice a new grant at once, without a change of their own."""
    tenant = scene.tenant
    tenant.apply(ephemeral(tenant, "early", scope, storeRef=scene.ref("late")))
    until_reason(tenant, "early", "StoreNotShared")
    scene.share("late", standalone.controller_uri)
    tenant.apply(ephemeral(tenant, "second", scope, storeRef=scene.ref("late")))
    until_reason(tenant, "second", "StoreNotShared")
    assert not scene.is_held("late")
    scene.share("late", standalone.controller_uri, scene.grant)
    for name in ("early", "second"):
        until_reason(tenant, name, "Claimed")
    scene.platform.until("both count", lambda: scene.store("late")["status"]["inUseBy"] == 2)
    tenant.run("delete", "eps", "early", "second")
    scene.platform.until("it is let go", lambda: not scene.is_held("late"))


@pytest.mark.exhaustive
def test_a_copy_of_a_shared_store_without_a_login_runs_in_its_own_namespace(
    scene: Scene, standalone: Standalone, foreign: ForeignClient, scope: str, tmp_path: Path
) -> None:
    """Without a login a copy runs in its own namespace. A withdrawn grant stops a second copy."""
    tenant = scene.tenant
    scene.share("open", standalone.controller_uri, scene.grant)
    foreign.create(scope, "source")
    foreign.write(scope, "source", events=EVENTS, keys=10)

    def copy(name: str) -> Object:
        body = tenant.copy_resource(name, f"{scope}/source", f"{scope}/{name}")
        for side in ("source", "target"):
            body["spec"][side]["storeRef"] = scene.ref("open")
        return body

    tenant.apply(copy("target"))
    pods: Any = tenant.until("its pod is there", lambda: waiting(tenant))
    assert scene.is_held("open")
    driver = DriverPod(tenant, pods[0], tmp_path)
    try:
        assert driver.finish() == 0
    finally:
        driver.close()
    tenant.until_ready("target")
    assert foreign.read(scope, "target").events == EVENTS
    scene.platform.until("it is let go", lambda: not scene.is_held("open"))

    tenant.apply(copy("second"))
    tenant.until("its pod is there", lambda: waiting(tenant))
    scene.share("open", standalone.controller_uri)
    tenant.until_reason("second", "StoreNotShared")
    tenant.until("its driver is stopped", lambda: not waiting(tenant))
    tenant.run("delete", "scopy", "second", "target")
    scene.platform.until("it is let go", lambda: not scene.is_held("open"))


def test_a_copy_whose_driver_would_need_the_platforms_login_is_refused(scene: Scene) -> None:
    """A copy that would need the platform's login is refused early, with a remedy."""
    tenant, platform = scene.tenant, scene.platform
    platform.apply(platform.login_resource(ADMIN, "other-login"))
    scene.share("closed", "tcp://127.0.0.1:9", scene.grant, secret="other-login")  # noqa: S106
    body = tenant.copy_resource("refused", "a/b", "a/c")
    body["spec"]["source"]["storeRef"] = scene.ref("closed")
    tenant.apply(body)
    tenant.until_reason("refused", "LoginNotShared")
    said = tenant.condition("refused")["message"]
    assert said.startswith("spec.source.storeRef.name: StreamStore ")
    assert "Run the copy in the StreamStore's namespace" in said
    assert "other-login" not in said
    assert not tenant.get_all("jobs,configmaps", labelSelector="app.kubernetes.io/managed-by")
    tenant.run("delete", "scopy", "refused")


def test_the_example_shares_a_store(
    kube: Cluster,
    scene: Scene,
    standalone_auth: Standalone,
    foreign_for: Callable[..., ForeignClient],
) -> None:
    """The example shares a store by its own commands, with the test's names and login."""
    java = foreign_for(standalone_auth.controller_uri, ADMIN)
    text = EXAMPLE.read_text()
    for before, after in (
        ("tcp://pravega-controller.pravega:9090", standalone_auth.controller_uri),
        ("username: sluice ", f"username: {ADMIN.name} "),
        ("change-me", ADMIN.password),
        ("namespace: platform", f"namespace: {scene.platform.namespace}"),
        ("namespace: checkout", f"namespace: {scene.tenant.namespace}"),
        ("metadata.name: checkout", f"metadata.name: {scene.tenant.namespace}"),
    ):
        assert before in text
        text = text.replace(before, after)
    bodies = [body for body in yaml.safe_load_all(text) if body["kind"] != "Namespace"]
    kube.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(bodies))
    until_reason(scene.tenant, "totals", "Claimed")
    assert "totals" in (java.streams("checkout") or [])
    scene.platform.until("it counts", lambda: scene.store("main")["status"].get("sharedUsers") == 1)
    kube.kubectl("delete", "--filename=-", stdin=yaml.safe_dump_all(bodies), timeout=120)
    assert java.streams("checkout") is None
