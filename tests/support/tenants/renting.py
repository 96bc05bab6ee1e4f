"""Namespaces that tests rent: made for one test or module, and given back afterwards."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from localcluster import LocalClusterError
from localcluster.release import restrict
from localstore.process import start_of
from support.cluster.turns import one_at_a_time
from support.kube.objects import objects_in
from support.tenants.tenant import OURS, Tenant
from support.until import PATIENTLY, NeverHappenedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from support.tenants.tenant import Object

_RENTED = "sluice.dev/rented-by-tests"
"""Label of a rented namespace; its value is `_process()` of the process that has rented it."""


@contextmanager
def rented(
    cluster: Cluster, store: ClusterStore | None, say: Callable[[str], None], name: str
) -> Iterator[Tenant]:
    """Yield a namespace that admits only restricted pods, and delete Sluice's resources afterwards.

    The deletion of the rest is not awaited, see `given_back`: Kubernetes looks at a deleted
    namespace only after five seconds.
    """
    _end_lease(cluster, name)
    restrict(cluster, name)
    cluster.kubectl("label", "namespace", name, f"{_RENTED}={_process(os.getpid())}")
    found = Tenant(cluster, name, store, say)
    yield found
    try:
        found.run("delete", OURS, "--all", PATIENTLY)
    except LocalClusterError as error:
        raise NeverHappenedError(f"not deleted: {_left_in(cluster, name)}") from error
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def _end_lease(cluster: Cluster, name: str) -> None:
    """Delete a namespace that a killed run of the tests had rented.

    No operator serves it any more, so the finalizers of its resources are taken off here.
    """
    space = json.loads(
        cluster.kubectl("get", "namespace", name, "--ignore-not-found", "--output=json") or "{}"
    )
    if not _was_killed(space.get("metadata", {}).get("labels", {}).get(_RENTED, "")):
        return
    none = json.dumps({"metadata": {"finalizers": None}})
    found = objects_in(cluster).list(name, f"{OURS},secrets")
    for one in (one for one in found if one["metadata"].get("finalizers")):
        named = f"{one['kind']}/{one['metadata']['name']}"
        words = (f"--namespace={name}", "patch", named, "--type=merge", f"--patch={none}")
        with suppress(LocalClusterError):  # gone by now, or the deletion below fails
            cluster.kubectl(*words)
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", PATIENTLY)


def given_back(cluster: Cluster) -> None:
    """Wait until all namespaces are gone that this process, or an interrupted one, rented."""
    found = json.loads(
        cluster.kubectl("get", "namespaces", f"--selector={_RENTED}", "--output=json")
    )
    renters = {
        one["metadata"]["name"]: one["metadata"]["labels"][_RENTED] for one in found["items"]
    }
    with one_at_a_time("leases"):
        for name in (name for name, renter in renters.items() if _was_killed(renter)):
            _end_lease(cluster, name)
    if names := [name for name, renter in renters.items() if renter == _process(os.getpid())]:
        words = ("--ignore-not-found", PATIENTLY)
        try:
            cluster.kubectl("delete", "namespaces", *names, *words)
        except LocalClusterError as error:
            left = "; ".join(_left_in(cluster, name) for name in names)
            raise NeverHappenedError(f"not gone: {left}") from error


def _left_in(cluster: Cluster, name: str) -> str:
    """Return a namespace's remains and their causes, in one line: the error may show no more."""
    found = objects_in(cluster).list(name, f"{OURS},jobs,pods")
    said = []
    for one in found:
        status, meta = one.get("status", {}), one["metadata"]
        conditions: list[Object] = status.get("conditions", [])
        ready = next((c for c in conditions if c["type"] == "Ready"), {})
        why = [status.get("phase"), ready.get("reason"), ready.get("message")]
        held = meta.get("finalizers", [])
        said.append(f"{one['kind']}/{meta['name']} {[*filter(None, why), *held]}")
    words = ("get", "namespace", name, "--ignore-not-found", "--output=json")
    found = json.loads(cluster.kubectl(*words) or "{}").get("status", {}).get("conditions", [])
    reasons = [one["message"] for one in found if one["status"] == "True"]
    return f"{name}: {said} {reasons}"


def _process(pid: int) -> str:
    """Return a process's id and start, since another one may have the id later; empty for none."""
    started = start_of(pid)
    return "" if started is None else f"{pid}-{started}"


def _was_killed(renter: str) -> bool:
    """Tell whether a process that has rented a namespace is gone without giving it back."""
    return bool(renter) and _process(int(renter.partition("-")[0])) != renter
