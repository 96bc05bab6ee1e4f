"""The gateway of a namespace as the chart makes it, and a way to it from this machine."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from support.kube.chart import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.tenants.tenant import Tenant

_COMPONENT = "gateway"
_FORWARDED = "Forwarding from 127.0.0.1:"


@contextmanager
def gateway(tenant: Tenant, image: str) -> Iterator[str]:
    """Run a gateway of a namespace as pods, and give its address, with a viewer's token.

    Args:
        tenant: the namespace.
        image: the image of queries.
    """
    values = {"queries": {"image": image}, "gateway": {"enabled": True, "replicas": 1}}
    release = tenant.namespace
    made = [
        one
        for one in render(values, release=release, namespace=tenant.namespace)
        if one["metadata"].get("labels", {}).get("app.kubernetes.io/component") == _COMPONENT
    ]
    text = yaml.safe_dump_all(made)
    # Among them are a ClusterRole and its binding, which have no namespace.
    names = tenant.run("apply", "--filename=-", "--output=name", stdin=text).split()
    (deployment,) = [name for name in names if name.startswith("deployment")]
    (service,) = [name for name in names if name.startswith("service/")]
    try:
        tenant.run("rollout", "status", deployment, "--timeout=300s")
        with _forwarded(tenant, service) as address:
            yield f"{address}q/{tenant.namespace}/{{}}#token={_token(tenant)}"
    finally:
        tenant.run("delete", *names, "--wait=false")


@contextmanager
def _forwarded(tenant: Tenant, service: str) -> Iterator[str]:
    """Forward a port of this machine to a Service's port 80."""
    words = (f"--namespace={tenant.namespace}", "port-forward", service, ":80")
    command = tenant.cluster.kubectl_command(*words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said.startswith(_FORWARDED), said
            yield f"http://127.0.0.1:{said.removeprefix(_FORWARDED).split()[0]}/"
        finally:
            process.kill()


def _token(tenant: Tenant) -> str:
    """Return the token of an account that may see queries and their rows, and nothing else."""
    see = "--resource=streamqueries.sluice.dev,streamqueries.sluice.dev/results"
    account = f"--serviceaccount={tenant.namespace}:viewer"
    tenant.run("create", "serviceaccount", "viewer")
    tenant.run("create", "role", "viewer", "--verb=get", see)
    tenant.run("create", "rolebinding", "viewer", "--role=viewer", account)
    return tenant.run("create", "token", "viewer").strip()
