"""Archives of tenants in a platform's bucket. Login and keys stay in the platform's namespace.

API server, Pravega and S3 gateway are real. The test runs the pods here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from localstore.accounts import ADMIN
from sluice.kube.api.names import UID_LABEL
from sluice.kube.api.objects import REQUESTED_AT
from support.tenants.desk import Desk
from support.tenants.scene import Scene, staged
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from s3gateway import Gateway
    from support.tenants.tenant import Object

# The first test that needs the gateway compiles it.
pytestmark = pytest.mark.timeout(1200)

EVENTS: Final = 500
YEARLY: Final = {"cron": "0 0 1 1 *"}


@pytest.fixture(scope="module")
def scene(
    kube: Cluster,
    definitions: list[str],
    standalone_auth: Standalone,
    gateway: Gateway,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    """Yield the namespaces. The platform shares a Pravega with a login and a bucket with keys."""
    assert definitions
    folder = tmp_path_factory.mktemp("hosted-archives")
    with staged(kube, folder) as found:
        grant = found.grant_to(found.tenant, driverNamespace="Store")
        found.platform.apply(found.platform.login_resource(ADMIN))
        found.share("main", standalone_auth.controller_uri, grant, secret="login")  # noqa: S106
        Desk(found.platform, folder).bucket(gateway, "bucket")
        found.platform.patch("sst", "bucket", {"spec": {"access": {"sharedWith": [grant]}}})
        yield found


def made(scene: Scene, kind: str, plural: str, name: str, spec: Object) -> str:
    """Apply a resource of the tenant that is to run now, and return its UID."""
    body: Object = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
    if "schedule" in spec:
        body["metadata"] |= {"annotations": {REQUESTED_AT: "now"}}
    scene.tenant.apply(body | {"spec": spec})
    found = scene.tenant.get(plural, name)
    assert found is not None
    uid: str = found["metadata"]["uid"]
    return uid


def left(scene: Scene, uid: str) -> list[Object]:
    """Return the platform's objects that work for a resource."""
    return scene.platform.get_all("jobs,pods,configmaps", labelSelector=f"{UID_LABEL}={uid}")


@pytest.mark.exhaustive
def test_a_tenants_streams_are_archived_and_restored_beside_the_platforms_keys(
    scene: Scene,
    standalone_auth: Standalone,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
) -> None:
    """A tenant archives by StreamArchive and ScopeCopy, and restores by StreamCopy."""
    java = foreign_for(standalone_auth.controller_uri, ADMIN)
    scope, tenant = f"hosted-{uuid4().hex[:8]}", scene.tenant
    java.create_scope(scope)
    java.create(scope, "orders")
    java.write(scope, "orders", events=EVENTS, keys=10)
    desk, own = Desk(scene.platform, tmp_path), Desk(tenant, tmp_path)
    main: Any = {"storeRef": scene.ref("main"), "scope": scope}
    bucket = {"storeRef": scene.ref("bucket")}

    spec = {
        "source": main | {"stream": "orders"},
        "destination": bucket | {"path": f"{scope}/one"},
        "onDelete": "Delete",
    }
    archive = made(scene, "StreamArchive", "sarc", "orders", spec)
    desk.drive()
    assert own.until_reason("sarc", "orders", "Archived")["archive"]["runs"] == 1

    restored = main | {"stream": "restored"}
    source = {"archive": bucket | {"path": f"{scope}/one"}}
    restore = made(scene, "StreamCopy", "scopy", "back", {"source": source, "target": restored})
    desk.drive()
    own.until_reason("scopy", "back", "Copied")
    assert java.read(scope, "restored").events == EVENTS

    target = {"archive": bucket | {"path": f"{scope}/all"}}
    nightly = {"source": main, "target": target, "schedule": YEARLY, "onExists": "Append"}
    scheduled = made(scene, "ScopeCopy", "sccp", "nightly", nightly)
    desk.drive()
    tenant.until(
        "the run of the scope has succeeded",
        lambda: "lastSuccessTime" in (tenant.get("sccp", "nightly") or {})["status"],
    )

    assert not tenant.get_all("jobs,pods,secrets")
    tenant.run("delete", "sarc/orders", "scopy/back", "sccp/nightly", PATIENTLY)
    uids = archive, restore, scheduled
    scene.platform.until("nothing is left", lambda: not any(left(scene, uid) for uid in uids))
    assert java.streams(scope) == ["orders", "restored"]
