"""`helm uninstall` on a real cluster: nothing stays behind unasked, and nothing hangs later."""

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
    """Yield the function that has Sluice serve this namespace only, with a policy to uninstall.

    So the uninstall leaves alone what else is in the cluster. Afterwards Sluice is as it was.
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
    except LocalClusterError:  # a test that failed left it half uninstalled
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
    """Have one, with its stream."""
    tenant.apply(_helper(tenant, scope))
    tenant.until(
        "helper is claimed",
        lambda: tenant.condition("helper", resource="eps").get("reason") == "Claimed",
    )


def _uninstall(kube: Cluster) -> None:
    """As an administrator does it."""
    where = f"--namespace={NAMESPACE}"
    kube.helm("uninstall", NAME, where, "--wait", PATIENTLY)


def _finalizers(tenant: Tenant, kind: str, name: str) -> list[str]:
    found: list[str] = (tenant.get(kind, name) or {})["metadata"].get("finalizers", [])
    return found


def _nothing_of_the_hook(tenant: Tenant, sluice: Operator) -> None:
    """The hook has taken along its account, its rights and its Job."""
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
    """It says what is held, and the operator works on after a rollback, as Helm wants it.

    Deleted, streams go, and unfinished copies with what they staged; nothing is held any more.
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
    """Refused before, it can be asked for again."""
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
    """The resource goes and its stream stays; the next operator's pod finds and deletes it.

    The API server lets the hook do that also where it asks everybody for the verb orphan.
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
    """Where none answers the finalizers are taken off all the same, and the namespace can go."""
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
