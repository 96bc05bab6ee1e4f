"""`helm uninstall` on a real cluster: it leaves nothing unasked, and no resource is stuck later."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from localcluster import LocalClusterError
from localcluster.release import NAME, NAMESPACE, uninstall
from support.tenants.tenant import SLOW
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.operator.conftest import Operator, Source
    from localcluster import Cluster
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

_HOOK = "sluice-uninstall"
_HOOK_KINDS = "jobs,serviceaccounts"
_RIGHTS = "roles,rolebindings"


pytestmark = pytest.mark.alone


@pytest.fixture
def serve(
    tenant: Tenant, release: Callable[..., None], sluice: Operator
) -> Iterator[Callable[..., None]]:
    """Yield a function that restricts Sluice to this namespace, with a policy to uninstall.

    So the uninstall leaves the rest of the cluster alone. Afterwards Sluice is restored.
    """
    only = [tenant.namespace]

    def narrow(policy: str, **values: Any) -> None:
        release(
            watch={"namespaces": only},
            driver={"namespaces": []},
            uninstall={"policy": policy, "timeoutSeconds": 120},
            **values,
        )

    yield narrow
    try:
        release()
    except LocalClusterError:  # a failed test has left the release half uninstalled
        uninstall(sluice.cluster)
        release()
    sluice.ready()


def _helper(tenant: Tenant, scope: str) -> Object:
    """Return an EphemeralStream that lives as long as its resource."""
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "EphemeralStream",
        "metadata": {"name": "helper", "namespace": tenant.namespace},
        "spec": {"storeRef": {"name": "store"}, "scope": scope, "stream": "helper"},
    }


def _claim(tenant: Tenant, scope: str) -> None:
    """Make an EphemeralStream, and wait for its stream."""
    tenant.apply(_helper(tenant, scope))
    tenant.until(
        "helper is claimed",
        lambda: tenant.condition("helper", resource="eps").get("reason") == "Claimed",
    )


def _uninstall(kube: Cluster) -> None:
    """Uninstall the release, as an administrator does."""
    where = f"--namespace={NAMESPACE}"
    kube.helm("uninstall", NAME, where, "--wait", PATIENTLY)


def _finalizers(tenant: Tenant, kind: str, name: str) -> list[str]:
    found: list[str] = (tenant.get(kind, name) or {})["metadata"].get("finalizers", [])
    return found


def _nothing_of_the_hook(tenant: Tenant, sluice: Operator) -> None:
    """Check that the hook's account, rights and Job are gone."""
    assert _HOOK not in sluice.run("get", _HOOK_KINDS, "--output=name")
    assert _HOOK not in tenant.run("get", _RIGHTS, "--output=name")


@pytest.mark.exhaustive
def test_uninstall_is_refused_while_something_is_held_unless_it_is_to_be_deleted(
    tenant: Tenant,
    scope: str,
    source: Source,
    java: ForeignClient,
    kube: Cluster,
    sluice: Operator,
    serve: Callable[..., None],
) -> None:
    """A refused uninstall names the held resources. After a rollback the operator works on.

    With the policy Delete, streams, unfinished copies and their staging go, and nothing is held.
    """
    serve("refuse")
    _claim(tenant, scope)
    said = f"EphemeralStream {tenant.namespace}/helper: StreamStore store, scope {scope}: helper"
    with pytest.raises(LocalClusterError):
        _uninstall(kube)
    log = sluice.run("logs", f"job/{_HOOK}")
    assert said in log
    assert "REFUSED: 1 resource is listed above." in log
    pods = json.loads(sluice.run("get", "pods", f"--selector=job-name={_HOOK}", "--output=json"))[
        "items"
    ]
    (status,) = pods[0]["status"]["containerStatuses"]
    assert "sluice drain --policy orphan" in status["state"]["terminated"]["message"]
    sluice.ready()
    assert java.streams(scope) == ["helper"]

    where = f"--namespace={NAMESPACE}"
    history = json.loads(kube.helm("history", NAME, where, "--output=json"))
    kube.helm("rollback", NAME, str(history[-1]["revision"]), where, "--wait", PATIENTLY)
    serve("delete")
    tenant.apply(tenant.copy_resource("cut", source.name, f"{scope}/cut", limits=SLOW))
    tenant.until_staged("cut")
    copy_id = tenant.status("cut")["copyID"]
    _uninstall(kube)
    assert tenant.get("eps", "helper") is None
    assert tenant.get("scopy", "cut") is None
    assert java.streams(scope) == []
    assert tenant.left_over(f"{scope}/cut", copy_id) == []
    assert _finalizers(tenant, "sst", "store") == []
    _nothing_of_the_hook(tenant, sluice)


@pytest.mark.exhaustive
def test_uninstall_goes_once_nothing_is_held(
    tenant: Tenant,
    scope: str,
    java: ForeignClient,
    kube: Cluster,
    sluice: Operator,
    serve: Callable[..., None],
) -> None:
    """An uninstall that was refused succeeds once nothing is held."""
    serve("refuse")
    _claim(tenant, scope)
    with pytest.raises(LocalClusterError):
        _uninstall(kube)
    sluice.ready()
    tenant.run("delete", "eps", "helper")
    assert java.streams(scope) == []
    tenant.until("the store is free", lambda: not _finalizers(tenant, "sst", "store"))
    _uninstall(kube)
    assert not sluice.run("get", "deployments", "--output=name")
    _nothing_of_the_hook(tenant, sluice)


@pytest.mark.exhaustive
def test_uninstall_leaves_behind_what_is_found_again(
    tenant: Tenant,
    scope: str,
    java: ForeignClient,
    kube: Cluster,
    sluice: Operator,
    release: Callable[..., None],
    serve: Callable[..., None],
) -> None:
    """With Orphan the resource goes and its stream stays. A pod of the next operator deletes it.

    The API server allows this to the hook, even if it requires the verb orphan from users.
    """
    serve("orphan", admission={"enabled": True})
    _claim(tenant, scope)
    _uninstall(kube)
    assert tenant.get("eps", "helper") is None
    assert java.streams(scope) == ["helper"]
    assert _finalizers(tenant, "sst", "store") == []

    release()
    sluice.ready()
    pod = ("exec", "deployment/sluice-operator", "--", "sluice", "streams", "stale")
    ours = (f"--namespace={tenant.namespace}", "--store=store", "--output=json")
    found = [one for one in json.loads(sluice.run(*pod, *ours)) if one["scope"] == scope]
    assert [one["streams"] for one in found] == [["helper"]]
    assert found[0]["resource"] == f"{tenant.namespace}/helper"
    assert java.streams(scope) == ["helper"]
    deleted = json.loads(sluice.run(*pod, *ours, "--delete", "--yes"))
    assert [one["deleted"] for one in deleted if one["scope"] == scope] == [1]
    assert java.streams(scope) == []


@pytest.mark.exhaustive
def test_uninstall_needs_no_operator_to_let_go(
    tenant: Tenant,
    scope: str,
    java: ForeignClient,
    kube: Cluster,
    sluice: Operator,
    serve: Callable[..., None],
) -> None:
    """Without an operator, the hook removes the finalizers too, and the namespace can go."""
    serve("orphan")
    _claim(tenant, scope)
    assert _finalizers(tenant, "sst", "store")
    sluice.scale(0)
    tenant.run("delete", "eps", "helper", "--wait=false")
    _uninstall(kube)
    assert tenant.get("eps", "helper") is None
    assert _finalizers(tenant, "sst", "store") == []
    assert java.streams(scope) == ["helper"]
    kube.kubectl("delete", "namespace", tenant.namespace, PATIENTLY)
