"""The trace of a copy by an operator and a driver, at a collector that accepts OTLP.

The operator and the driver are processes of this machine, and the API server is a real one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.cluster.local_operator import opened
from support.kube.collector import collector
from support.tenants.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone
    from support.kube.collector import Collector

pytestmark = pytest.mark.timeout(600)

EVENTS = 200
FORGED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traces() -> Iterator[Collector]:
    """Yield a collector."""
    with collector() as found:
        yield found


@pytest.fixture
def desk(
    kube: Cluster,
    definitions: list[str],
    standalone: Standalone,
    traces: Collector,
    tmp_path: Path,
) -> Iterator[Desk]:
    """Yield a namespace. Its operator and drivers send their spans to the collector."""
    assert definitions
    folder = tmp_path / "sluice-test-traces"
    folder.mkdir()
    settings = {"tracing": {"endpoint": traces.url}}
    # The exporter's delay is short, since this operator keeps running.
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": traces.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    with opened(kube, folder, standalone.controller_uri, settings, environment) as made:
        yield Desk(made.tenant, folder)


def test_a_copy_is_one_trace_from_the_first_look_to_ready(
    desk: Desk, traces: Collector, scope: str, foreign: ForeignClient
) -> None:
    """Looks, Job, driver and steps of a copy are one trace, which no tenant can choose."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=EVENTS, keys=8)
    notes = dict.fromkeys(("traceparent", "sluice.dev/traceparent", "TRACEPARENT"), FORGED)
    desk.tenant.apply(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "StreamCopy",
            "metadata": {"name": "orders", "annotations": notes},
            "spec": {
                "source": {"storeRef": {"name": "store"}, "scope": scope, "stream": "source"},
                "target": {"storeRef": {"name": "store"}, "scope": scope, "stream": "target"},
            },
        }
    )
    desk.drive()
    desk.until_reason("StreamCopy", "orders", "Copied")
    traces.wait("driver", "Publish", "RemoveFinalizer")

    (job,) = desk.tenant.get_all("jobs")
    uid = desk.tenant.get("StreamCopy", "orders")["metadata"]["uid"]
    of_copy = [one for one in traces.spans if one.attributes.get("sluice.uid") == uid]
    looks = sorted(of_copy, key=lambda one: one.began)
    first, *later = looks
    assert {one.name for one in looks} == {"reconcile"}
    assert (first.parent, first.service) == ("", "sluice-operator")
    assert {one.parent for one in later} == {first.id}
    starting = traces.only("StartJob")
    assert starting.parent in {one.id for one in looks}

    driver = traces.only("driver")
    assert (driver.parent, driver.service, driver.failed) == (starting.id, "sluice-driver", None)
    assert driver.resource["k8s.namespace.name"] == job["metadata"]["namespace"]
    assert driver.resource["k8s.pod.name"].startswith(job["metadata"]["name"])
    names = [one.name for one in traces.below(driver)]
    assert names.index("Transfer") < names.index("Verify") < names.index("Publish")
    ending = traces.only("RemoveFinalizer")
    (last,) = (one for one in looks if one.id == ending.parent)
    assert last.began > driver.began
    assert last.attributes["sluice.reason"] == "Copied"

    assert {one.trace for one in (starting, driver, ending, *looks)} == {first.trace}
    assert FORGED.split("-")[1] not in {one.trace for one in traces.spans}
    assert FORGED not in json.dumps(job)
