"""A store that requires a login, with Secrets that are wrong, missing and restored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from localcluster.release import restrict
from localstore.accounts import ADMIN
from sluice.kube.api.names import UID_LABEL
from support.gitops.kstatus import kstatus
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient

pytestmark = pytest.mark.exhaustive

EVENTS = 250_000
SLOW = {"bytesPerSecond": "2Mi"}
NAMESPACE = "sluice-test-login"
GUEST = "sluice-test-guest"


@pytest.fixture(scope="module")
def client(guarded_java: ForeignClient) -> ForeignClient:
    """Return the Java client, logged in, after it has written the source."""
    guarded_java.create_scope("guarded")
    guarded_java.create("guarded", "source", segments=2)
    guarded_java.write("guarded", "source", events=EVENTS, keys=10)
    return guarded_java


@pytest.fixture
def login(
    kube: Cluster, sluice: Operator, guarded: ClusterStore, say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Yield a namespace with a StreamStore and the right Secret."""
    assert sluice
    restrict(kube, NAMESPACE)
    tenant = Tenant(kube, NAMESPACE, guarded, say)
    tenant.apply(_secret(ADMIN.password), tenant.store_resource(secret="login"))  # noqa: S106
    yield tenant
    kube.kubectl("delete", "namespace", NAMESPACE, PATIENTLY)


def _secret(password: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login"},
        "stringData": {"username": ADMIN.name, "password": password},
    }


def test_wrong_password(login: Tenant, client: ForeignClient) -> None:
    """With a wrong password the copy waits. A corrected Secret suffices."""
    login.apply(_secret("wrong"))
    login.until(
        "the store is refused",
        lambda: login.condition("store", resource="sst").get("reason") == "AuthenticationFailed",
    )
    store = login.get("sst", "store")
    assert store is not None
    assert kstatus([store]) == {"StreamStore/store": "Failed"}
    assert "wrong" not in json.dumps(store["status"])
    login.apply(login.copy_resource("waits", "guarded/source", "guarded/waits"))
    condition = login.until_reason("waits", "StoreNotReady")
    assert "Correct the login" in condition["message"]
    assert login.get_all("jobs") == []
    login.apply(_secret(ADMIN.password))
    assert login.until_ready("waits")["verification"]["events"] == EVENTS
    assert client.read("guarded", "waits").clean


def test_secret_missing(login: Tenant) -> None:
    """A StreamStore without its Secret names it, and is ready once the Secret exists."""
    login.run("delete", "secret", "login")
    login.until(
        "the store misses its Secret",
        lambda: login.condition("store", resource="sst").get("reason") == "SecretNotFound",
    )
    login.apply(_secret(ADMIN.password))
    login.until(
        "the store is ready",
        lambda: login.condition("store", resource="sst").get("status") == "True",
    )


def test_secret_deleted_midway_stays_until_the_copy_is_done(
    login: Tenant, client: ForeignClient
) -> None:
    """A Secret that a running copy needs stays until the copy's end."""
    login.apply(login.copy_resource("holds", "guarded/source", "guarded/holds", limits=SLOW))
    login.until_staged("holds")
    login.run("delete", "secret", "login", "--wait=false")
    (pod,) = login.pods()
    login.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    login.until_ready("holds")
    assert client.read("guarded", "holds").events == EVENTS
    login.until_gone("secret", "login")
    login.apply(_secret(ADMIN.password))
    login.until(
        "the store is ready with the new Secret",
        lambda: login.condition("store", resource="sst").get("status") == "True",
    )


def test_secret_torn_away_midway_and_restored(login: Tenant, client: ForeignClient) -> None:
    """Without its Secret a driver says so. It goes on once the Secret is restored."""
    login.apply(login.copy_resource("torn", "guarded/source", "guarded/torn", limits=SLOW))
    staged = login.until_staged("torn")
    login.run("delete", "secret", "login", "--wait=false")
    login.patch("secret", "login", {"metadata": {"finalizers": None}})
    login.until_gone("secret", "login")
    (pod,) = login.pods()
    login.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    login.until_reason("torn", "SecretNotFound", "StoreNotReady")
    login.apply(_secret(ADMIN.password))
    status = login.until_ready("torn")
    assert status["progress"]["percent"] == 100 > staged
    assert client.read("guarded", "torn").events == EVENTS


def test_credentials_are_nowhere_to_be_read(
    login: Tenant, client: ForeignClient, sluice: Operator
) -> None:
    """A copy logs in, and no object but the Secret, and no log, has the password."""
    login.apply(login.copy_resource("secretive", "guarded/source", "guarded/secretive"))
    login.until_ready("secretive")
    assert client.read("guarded", "secretive").events == EVENTS
    everything = login.run("get", "scopy,sst,jobs,pods,configmaps,events", "--output=yaml")
    everything += login.run("logs", "--selector=app.kubernetes.io/component=driver", "--tail=-1")
    everything += sluice.run("logs", "deployment/sluice-operator", "--tail=-1")
    assert ADMIN.password not in everything


def test_a_tenants_copy_runs_beside_the_platforms_login(
    login: Tenant, client: ForeignClient, kube: Cluster, say: Callable[[str], None]
) -> None:
    """After a killed driver and changed limits the copy is whole.

    Its users see no login and no pod.
    """
    restrict(kube, GUEST)
    guest = Tenant(kube, GUEST, login.store, say)
    store = login.store_resource(secret="login")  # noqa: S106 - the name of a Secret
    selector = {"matchLabels": {"kubernetes.io/metadata.name": GUEST}}
    grant = {"selector": selector, "scopes": ["guarded"], "driverNamespace": "Store"}
    login.apply(store | {"spec": store["spec"] | {"access": {"sharedWith": [grant]}}})
    body = guest.copy_resource("guest", "guarded/source", "guarded/guest", limits=SLOW)
    for side in ("source", "target"):
        body["spec"][side]["storeRef"]["namespace"] = NAMESPACE
    guest.apply(body)
    guest.until_staged("guest")
    (pod,) = login.pods()
    login.run("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0")
    guest.patch("scopy", "guest", {"spec": {"limits": None}})
    guest.until_ready("guest")
    guest.until_tidied("guest")
    assert client.read("guarded", "guest").events == EVENTS
    everything = guest.run("get", "scopy,sst,jobs,pods,configmaps,secrets,events", "--output=yaml")
    assert ADMIN.password not in everything
    assert guest.get_all("jobs,pods,secrets") == []
    uid = (guest.get("scopy", "guest") or {})["metadata"]["uid"]
    login.until(
        "nothing is left",
        lambda: not login.get_all("jobs,pods,configmaps", labelSelector=f"{UID_LABEL}={uid}"),
    )
    kube.kubectl("delete", "namespace", GUEST, PATIENTLY)


def test_secret_exchanged_midway(login: Tenant, client: ForeignClient) -> None:
    """A StreamStore with another Secret holds that one, and releases the old one."""
    login.apply(login.copy_resource("moves", "guarded/source", "guarded/moves", limits=SLOW))
    login.until_staged("moves")
    other = _secret(ADMIN.password) | {"metadata": {"name": "login-2"}}
    login.apply(other, login.store_resource(secret="login-2"))  # noqa: S106
    login.until("the new Secret is held", lambda: _held(login, "login-2"))
    login.until("the old Secret is let go", lambda: not _held(login, "login"))
    login.until_ready("moves")
    login.until("the new Secret is let go", lambda: not _held(login, "login-2"))
    assert client.read("guarded", "moves").events == EVENTS


def _held(tenant: Tenant, secret: str) -> bool:
    found = tenant.get("secret", secret)
    return found is not None and "sluice.dev/in-use" in found["metadata"].get("finalizers", [])
