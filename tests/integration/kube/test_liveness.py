"""The liveness probe of a running operator whose connections to the API server we can freeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.link import Link
from support.operator_process import OperatorProcess, until
from support.tenant import Tenant

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster


@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(300)
def test_liveness_fails_when_a_watch_is_dead(kube: Cluster, namespace: str, tmp_path: Path) -> None:
    """Watches that hang while all other calls go through are noticed by comparing with lists."""
    through = tmp_path / "kubeconfig"
    with (
        Link.to(kube.kubeconfig, through) as link,
        OperatorProcess(tmp_path, through, namespace) as operator,
    ):
        tenant = Tenant(kube, namespace, None, print)  # type: ignore[arg-type]
        tenant.apply(tenant.store_resource(uri="tcp://127.0.0.1:9"))
        until(
            "the store was looked at",
            lambda: bool(tenant.condition("store", resource="sst")),
            60,
        )
        assert operator.probe("livez") == (200, "ok\n")
        link.freeze()
        tenant.run("annotate", "sst", "store", "touched=yes")
        until("liveness fails", lambda: operator.probe("livez")[0] == 500, 120)
        assert "the watch of StreamStore misses changes" in operator.probe("livez")[1]
