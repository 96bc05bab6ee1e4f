"""The liveness probe of a running operator.

The test can freeze its connections to the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cluster.operator_process import OperatorProcess
from support.kube.link import Link
from support.tenants.tenant import Tenant
from support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster


@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(300)
def test_liveness_fails_when_a_watch_is_dead(kube: Cluster, namespace: str, tmp_path: Path) -> None:
    """Liveness fails if watches hang while other calls succeed. Lists reveal such a watch."""
    through = tmp_path / "kubeconfig"
    with (
        Link.to(kube.kubeconfig, through) as link,
        OperatorProcess(tmp_path, through, namespace) as operator,
    ):
        tenant = Tenant(kube, namespace, None, print)
        tenant.apply(tenant.store_resource(uri="tcp://127.0.0.1:9"))
        until(
            "the store was looked at",
            lambda: bool(tenant.condition("store", resource="sst")),
        )
        assert operator.probe("livez") == (200, "ok\n")
        link.freeze()
        tenant.run("annotate", "sst", "store", "touched=yes")
        until("liveness fails", lambda: operator.probe("livez")[0] == 500)
        assert "the watch of StreamStore misses changes" in operator.probe("livez")[1]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("definitions")
@pytest.mark.timeout(300)
def test_an_api_server_that_is_away_is_waited_for(
    kube: Cluster, namespace: str, tmp_path: Path
) -> None:
    """The operator waits for an absent API server, at its start and later, without a restart."""
    through = tmp_path / "kubeconfig"
    tenant = Tenant(kube, namespace, None, print)
    with Link.to(kube.kubeconfig, through) as link:
        link.go_away()
        operator = OperatorProcess(tmp_path, through, namespace, cluster="")
        operator.begin()
        try:
            until("it waits", lambda: "waiting for the API server" in operator.log())
            assert operator.probe("livez") == (200, "ok\n")
            assert operator.probe("readyz")[0] == 503
            link.come_back()
            until("it is ready", lambda: operator.probe("readyz")[0] == 200)
            link.go_away()
            until("it notices", lambda: operator.log().count("resync failed") > 2)
            assert operator.probe("livez") == (200, "ok\n")
            tenant.apply(tenant.store_resource(uri="tcp://127.0.0.1:9"))
            link.come_back()
            until(
                "the store was looked at",
                lambda: bool(tenant.condition("store", resource="sst")),
            )
            assert operator.is_running
            assert operator.probe("livez") == (200, "ok\n")
        finally:
            operator.__exit__()
        assert "operator stopped" in operator.log()
