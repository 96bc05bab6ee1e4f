"""The operator's memory for finished resources."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest
from kubernetes.aio import client, config
from prometheus_client.parser import text_string_to_metric_families

from sluice.core.reconcile.copies.decide import reconcile
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import JOB, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import Child
from sluice.kube.api.objects import IN_USE_FINALIZER
from support.cases import resources
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import nobody_else
from support.command.scope_command import peak_memory
from support.kube.objects import objects_in
from support.reconcile import copies
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localcluster import Cluster

_AT_ONCE: Final = 16
_ROUNDS: Final = 3
_MOST_MEMORY: Final = {200: 200_000_000, 5000: 300_000_000}
_JOB: Final[dict[str, Any]] = {
    "suspend": True,  # creates no pod
    "template": {
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "driver",
                    "image": "localhost/none:1",
                    "args": ["driver", "--plan=/etc/sluice/run/plan.json"],
                    "env": [{"name": f"SETTING_{n}", "value": "v" * 40} for n in range(30)],
                }
            ],
        }
    },
}
"""A Job about as long as a driver's."""


@pytest.mark.exhaustive
@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [200, 5000])
def test_finished_copies_cost_little_memory(
    kube: Cluster,
    outside: str,
    tmp_path: Path,
    say: Callable[[str], None],
    count: int,
) -> None:
    """An operator beside many finished copies and Jobs takes little memory, also to list them."""
    with nobody_else(kube):
        asyncio.run(_fill(kube.kubeconfig, outside, count))
        with OperatorProcess(tmp_path, kube.kubeconfig, outside) as operator:
            until("all were counted", lambda: _succeeded(operator) == count)
            listed = _lists(operator)
            until("the store was let go", lambda: not _is_held(kube, outside))
            until("all were listed again", lambda: _lists(operator) > _ROUNDS * listed)
            most = peak_memory(operator.pid)
            assert operator.probe("livez") == (200, "ok\n")
    # The test deletes them, since controllers that are busy with so many objects would delay other
    # tests. One call deletes all of a kind, since kubectl deletes only some five objects a second.
    for kind in ("batch/v1/{}/jobs", "sluice.dev/v1alpha1/{}/streamcopies"):
        path = kind.format(f"namespaces/{outside}")
        kube.kubectl("delete", f"--raw=/apis/{path}?propagationPolicy=Background", timeout=600)
    say(f"{count} finished copies with their Jobs: {most >> 20} MiB at most")
    assert most < _MOST_MEMORY[count]


def _succeeded(operator: OperatorProcess) -> float:
    """Return the number of succeeded StreamCopies."""
    labels = {"kind": "StreamCopy", "state": "Succeeded"}
    return _metric(operator, "sluice_copies", labels)


def _lists(operator: OperatorProcess) -> float:
    """Return the number of pages of StreamCopies that the operator has listed."""
    labels = {"verb": "list", "resource": "streamcopies"}
    return _metric(operator, "sluice_api_calls_total", labels)


def _is_held(kube: Cluster, namespace: str) -> bool:
    """Tell whether the copies' store is held. To release it, the operator lists all copies."""
    store = objects_in(kube).get(namespace, "sst", "local")
    return store is not None and "finalizers" in store["metadata"]


def _metric(operator: OperatorProcess, name: str, labels: dict[str, str]) -> float:
    for family in text_string_to_metric_families(operator.probe("metrics")[1]):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return 0.0


async def _fill(kubeconfig: Path, namespace: str, count: int) -> None:
    """Make finished copies, as the operator leaves them, each with a Job."""
    turns = asyncio.Semaphore(_AT_ONCE)
    status = reconcile(copies.begun(), copies.world(answer=copies.WHOLE)).status.dump()
    configuration = client.Configuration()
    await config.load_kube_config(  # type: ignore[no-untyped-call]
        config_file=str(kubeconfig), client_configuration=configuration
    )
    store = resources.STORE | {"metadata": {"name": "local", "finalizers": [IN_USE_FINALIZER]}}
    async with Api(client.ApiClient(configuration)) as api:

        async def make(number: int) -> None:
            async with turns:
                await _make(api, namespace, f"copy-{number}", status)

        await asyncio.gather(*map(make, range(count)))
        assert await api.create(STREAM_STORE, namespace, store)


async def _make(api: Api, namespace: str, name: str, status: dict[str, Any]) -> None:
    made = await api.create(STREAM_COPY, namespace, resources.COPY | {"metadata": {"name": name}})
    assert made is not None
    child = Child(
        kind=STREAM_COPY, namespace=namespace, name=name, uid=str(made["metadata"]["uid"])
    )
    job = {"metadata": child.metadata(f"{name}-1", "driver"), "spec": _JOB}
    assert await api.create(JOB, namespace, {"apiVersion": "batch/v1", "kind": "Job"} | job)
    body = {key: made[key] for key in ("apiVersion", "kind")} | {"status": status}
    body["metadata"] = {"name": name}
    assert await api.apply(STREAM_COPY, namespace, body, subresource="status")
