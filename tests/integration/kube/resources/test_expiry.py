"""An operator at a real API server deletes finished copies whose spec asks for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.aio import client, config

from sluice.core.reconcile.copies.decide import reconcile
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import CONFIG_MAP, STREAM_COPY
from sluice.kube.api.names import Child
from support.cases import resources
from support.cluster.operator_process import OperatorProcess
from support.cluster.outside import nobody_else
from support.kube.objects import objects_in
from support.reconcile import copies
from support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster

HOUR = 3600


@pytest.mark.usefixtures("definitions")
def test_only_finished_copies_whose_time_is_over_are_deleted(
    kube: Cluster, outside: str, tmp_path: Path
) -> None:
    """Only finished copies past their time are deleted, with their ConfigMaps."""

    def names(kind: str) -> set[str]:
        found = objects_in(kube).list(outside, kind)
        return {body["metadata"]["name"] for body in found} - {"kube-root-ca.crt"}

    with nobody_else(kube):
        asyncio.run(_fill(kube.kubeconfig, outside))
        assert names("cm") == {"over-positions", "kept-positions"}
        with OperatorProcess(tmp_path, kube.kubeconfig, outside):
            until("it is deleted", lambda: "over" not in names("scopy"))
            until("its ConfigMap is gone", lambda: names("cm") == {"kept-positions"})
            assert names("scopy") == {"kept", "later", "waiting"}


async def _fill(kubeconfig: Path, namespace: str) -> None:
    """Make two copies that finished an hour ago, one that just finished, and one that waits."""
    configuration = client.Configuration()
    await config.load_kube_config(  # type: ignore[no-untyped-call]
        config_file=str(kubeconfig), client_configuration=configuration
    )
    now = datetime.now(UTC)
    async with Api(client.ApiClient(configuration)) as api:
        await _make(api, namespace, "over", ttl=HOUR // 2, done=now - timedelta(seconds=HOUR))
        await _make(api, namespace, "kept", ttl=None, done=now - timedelta(seconds=HOUR))
        await _make(api, namespace, "later", ttl=HOUR, done=now)
        await _make(api, namespace, "waiting", ttl=0, done=None)


async def _make(
    api: Api, namespace: str, name: str, *, ttl: int | None, done: datetime | None
) -> None:
    """Make a copy, with the status that the operator leaves if it is done."""
    spec = resources.COPY["spec"] | ({} if ttl is None else {"ttlSecondsAfterFinished": ttl})
    body = resources.COPY | {"metadata": {"name": name}, "spec": spec}
    made = await api.create(STREAM_COPY, namespace, body)
    assert made is not None
    if done is None:
        return
    child = Child(kind=STREAM_COPY, namespace=namespace, name=name, uid=made["metadata"]["uid"])
    if name in {"over", "kept"}:
        positions: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
        positions["metadata"] = child.metadata(f"{name}-positions", "positions")
        assert await api.create(CONFIG_MAP, namespace, positions)
    status = reconcile(copies.begun(), copies.world(answer=copies.WHOLE, now=done)).status.dump()
    written: dict[str, Any] = {key: made[key] for key in ("apiVersion", "kind")}
    written |= {"metadata": {"name": name}, "status": status}
    assert await api.apply(STREAM_COPY, namespace, written, subresource="status")
