"""The dashboard's and the alerts' queries, at a Prometheus that scrapes an operator after its work.

The operator is a process at a real API server. The test runs the driver pods
(`support.cluster.kubelet`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from promserver import Prometheus, programs
from support.kube.chart import EVERYTHING, NAMESPACE, render
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from localstore import ForeignClient
    from s3gateway import Gateway
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk

# The first test that needs the gateway or Prometheus compiles it.
pytestmark = pytest.mark.timeout(1200)

EVENTS, KEYS = 500, 8
WINDOW = "1m"
"""In place of Grafana's own variable, which depends on the width of the screen."""


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Switch on metrics of each resource."""
    return {"metrics": {"resources": True}}


@pytest.fixture
def worked(desk: Desk, gateway: Gateway, foreign: ForeignClient, scope: str) -> Desk:
    """Return the namespace after a copy, a copy of a scope, a scheduled run, and a stream."""
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=KEYS)
    tenant = desk.tenant
    tenant.apply(tenant.copy_resource("orders", f"{scope}/orders", f"{scope}/copied"))
    desk.drive()
    desk.until_reason("scopy", "orders", "Copied")
    tenant.apply(tenant.scope_resource("shop", scope, f"{scope}-2", scope_policy="CreateIfAbsent"))
    desk.drive()
    desk.until_reason("sccp", "shop", "Succeeded")
    place = {"storeRef": {"name": "store"}, "scope": scope}
    desk.resource("EphemeralStream", "helper", place | {"stream": "helper"})
    desk.bucket(gateway, "bucket")
    destination = {"storeRef": {"name": "bucket"}, "path": "demo/orders"}
    schedule = {"cron": "0 3 1 * *"}
    source = place | {"stream": "orders"}
    verify = {"schedule": {"cron": "0 5 1 * *"}}
    spec = {"source": source, "destination": destination, "schedule": schedule, "verify": verify}
    desk.resource("StreamArchive", "nightly", spec)
    desk.until_reason("sarc", "nightly", "Scheduled")
    return desk


@pytest.fixture
def live(worked: Desk, scope: str) -> Iterator[None]:
    """Follow a source by a copy that has compared bytes, until the test ends."""
    tenant = worked.tenant
    source, target = f"{scope}/orders", f"{scope}/live"
    tenant.apply(tenant.copy_resource("live", source, target, mode="Continuous"))

    def compared() -> bool:
        return "provedTo" in (tenant.status("live").get("follow") or {})

    with worked.driver():
        tenant.until("the copy has compared bytes", compared)
        yield
    tenant.run("delete", "scopy", "live", "--wait=false")


@pytest.fixture
def prometheus(
    local_operator: LocalOperator, announce: Callable[[str], AbstractContextManager[None]]
) -> Iterator[Prometheus]:
    """Yield a Prometheus with the chart's rules, which scrapes as the chart's ServiceMonitor."""
    with announce("Prometheus"):
        programs(lambda _: None)
    objects = render(EVERYTHING)
    (endpoint,) = objects.one("ServiceMonitor")["spec"]["endpoints"]
    with Prometheus(
        f"127.0.0.1:{local_operator.operator.port}",
        labels={"namespace": NAMESPACE, "job": "sluice-metrics"},
        honor=endpoint["honorLabels"],
        rules=objects.one("PrometheusRule")["spec"],
    ) as server:
        yield server


def wait_for(prometheus: Prometheus, query: str) -> list[dict[str, Any]]:
    """Wait until a query gives series, and return them."""
    return until(query, lambda: prometheus.query(query))


def run_nightly(desk: Desk) -> float:
    """Let the archive make a run now. Return the time of its success, from the metrics."""
    desk.tenant.run("annotate", "sarc", "nightly", "sluice.dev/requestedAt=now", "--overwrite")
    desk.drive()
    status = desk.until_reason("sarc", "nightly", "Archived")
    found: str = status["lastSuccessTime"]
    return datetime.fromisoformat(found).timestamp()


def run_drill(desk: Desk) -> float:
    """Run a drill now. Return the time of its success, from the metrics."""
    tenant = desk.tenant
    tenant.run("annotate", "sarc", "nightly", "sluice.dev/drillRequestedAt=now", "--overwrite")
    desk.drive()

    def drill() -> dict[str, Any]:
        found = tenant.get("sarc", "nightly") or {}
        return dict(found.get("status", {}).get("drill") or {})

    tenant.until(
        "a drill has passed, and nothing of it is left",
        lambda: drill().get("result") == "Passed" and not drill()["scratch"],
    )
    return datetime.fromisoformat(drill()["lastSuccessTime"]).timestamp()


def queries() -> dict[str, str]:
    """Return the queries of the dashboard's panels, by their titles."""
    return {
        panel["title"]: target["expr"].replace("$__rate_interval", WINDOW)
        for panel in render(EVERYTHING).dashboard["panels"]
        for target in panel.get("targets", ())
    }


@pytest.mark.exhaustive
@pytest.mark.usefixtures("live")
def test_people_see_what_an_operator_did(worked: Desk, prometheus: Prometheus) -> None:
    """Every panel of the dashboard has series, and every rule can be evaluated.

    Those of queries have none, since no query runs here; they can be evaluated.

    The metrics of a schedule have its last good run and drill, and end with its resource. The
    schedule holds its store until then.
    """
    own = f'{{kind="StreamArchive", namespace="{worked.tenant.namespace}", name="nightly"}}'
    made, good, due = (
        f"sluice_schedule_{name}_timestamp_seconds{own}"
        for name in ("created", "last_success", "due")
    )
    wait_for(prometheus, f"{made} unless {good}")
    first = run_nightly(worked)
    wait_for(prometheus, f"{good} == {first:.0f}")
    (following,) = wait_for(prometheus, f"{due} - {good}")
    assert float(following["value"][1]) > 0
    drilled = f"sluice_drill_last_success_timestamp_seconds{own}"
    wait_for(prometheus, f"absent({drilled})")
    passed = run_drill(worked)
    wait_for(prometheus, f"{drilled} == {passed:.0f}")

    wait_for(prometheus, f"sluice_copied_events_total >= {2 * EVENTS}")
    wait_for(prometheus, 'sluice_attempts_total{outcome="Succeeded", reason=""} >= 2')
    wait_for(prometheus, 'sluice_copies{kind="StreamCopy", state="Succeeded"} >= 1')
    wait_for(prometheus, f"count_over_time(up[{WINDOW}]) >= 3")
    found = {title: prometheus.query(query) for title, query in queries().items()}
    empty = [title for title, query in queries().items() if not found[title]]
    assert [title for title in empty if "sluice_query_" not in queries()[title]] == []
    wait_for(prometheus, "count(ALERTS) or vector(0)")
    rules = prometheus.rules()
    assert {rule["health"]: rule.get("lastError") for rule in rules} == {"ok": None}

    worked.tenant.run("delete", "sst", "bucket", "--wait=false")
    status = worked.until_reason("sst", "bucket", "InUse")
    assert status["inUseBy"] == 1
    worked.tenant.run("delete", "sarc", "nightly")
    worked.tenant.until_gone("sst", "bucket")
    wait_for(prometheus, f"absent({made}) and absent({good}) and absent({due})")
