"""A StreamQuery on real pods, over a stream that the official Java client writes, in a browser."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from sluice.config import StoreTimeouts
from sluice.core.events.decoding import decoded
from sluice.core.values.model import StreamName
from sluice.kube.api.objects import VERIFY_REQUESTED_AT
from sluice.stores.pravega.store import PravegaStore
from support.cluster.gateway import gateway
from support.cluster.mounted import MountedClaim
from support.command.browser import PATIENCE, browsing, visiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

EVENTS = 2000
LISTED = 100
"""The number of rows that a page lists."""
KIND, NAME = "squery", "big-orders"
SQL = 'SELECT "order", customer, cents / 100 AS amount FROM orders WHERE cents >= 0'.replace(
    '"', "`"
)


@pytest.fixture
def claim(kube: Cluster, tenant: Tenant, sluice: Operator) -> Iterator[str]:
    """Yield the name of a claim for checkpoints."""
    with MountedClaim(kube, tenant.namespace, sluice.image) as made:
        yield made.name
        tenant.run("delete", KIND, "--all")


def rows(store: ClusterStore, sink: StreamName) -> list[dict[str, Any]]:
    """Return all events of a stream, decoded from JSON."""
    found = []
    with closing(
        PravegaStore(store.host_uri, credentials=None, timeouts=StoreTimeouts())
    ) as client:
        stream = client.describe(sink)
        assert stream is not None
        for segment in stream.tail:
            name = client.segment_name(sink, segment.id)
            (info,) = client.infos([name])
            assert info is not None
            blocks = [block.data.tobytes() for block in client.read(name, 0, info.length)]
            whole = memoryview(b"".join(blocks))
            found += [json.loads(event) for _, event in decoded([whole], 0)]
    return found


@pytest.fixture
def page(tenant: Tenant, sluice: Operator, claim: str) -> Iterator[Page]:
    """Yield the query's page, as a gateway in a pod serves it to a viewer with few rights."""
    assert claim  # its fixture deletes the query before the claim
    with (
        gateway(tenant, sluice.query_image) as address,
        browsing() as browser,
        # The browser logs 404 until the query exists.
        visiting(browser, address.format(NAME), borne="404") as found,
    ):
        yield found


@pytest.mark.parametrize("engine", ["Spark", "Arrow"])
def test_a_query_is_exact_after_its_pod_is_killed(
    tenant: Tenant,
    java: ForeignClient,
    scope: str,
    store: ClusterStore,
    claim: str,
    page: Page,
    engine: str,
) -> None:
    """Kubernetes makes another pod, which goes on from the checkpoint in the claim.

    Meanwhile the query's page stays live, and shows new rows.
    """
    java.create(scope, "orders", segments=2)
    java.write(scope, "orders", events=EVENTS, keys=8, size=200, kind="orders")
    place = {"storeRef": {"name": "store"}, "scope": scope}
    tenant.apply(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "StreamQuery",
            "metadata": {"name": NAME},
            "spec": {
                "sources": [
                    {
                        "name": "orders",
                        "stream": {**place, "stream": "orders"},
                        "format": "Json",
                        "schema": "order BIGINT, customer STRING, cents BIGINT",
                    }
                ],
                "query": {"sql": SQL},
                "result": {"keys": ["customer"]},
                "sinks": [{"stream": {**place, "stream": "amounts", "segments": 2}}],
                "checkpoint": {"claimName": claim},
                "verify": {},
                "engine": engine,
            },
        }
    )

    def progress() -> Object:
        status = (tenant.get(KIND, NAME) or {}).get("status", {})
        said = {one["type"]: one["message"] for one in status.get("conditions", ())}
        assert "Stalled" not in said, said["Ready"]
        found: Object = status.get("progress") or {}
        return found

    tenant.until("all events are read", lambda: progress().get("rows") == EVENTS)

    def runs() -> bool:
        return bool(tenant.condition(NAME, "Ready", KIND).get("status") == "True")

    tenant.until("it runs", runs)
    latest = page.get_by_role("region", name="Last rows").get_by_role("row")
    expect(page.locator("#link")).to_have_text("Live", timeout=PATIENCE)
    expect(latest).to_have_count(1 + LISTED, timeout=PATIENCE)
    (first,) = tenant.pods()
    tenant.run("delete", "pod", first["metadata"]["name"], "--force", "--grace-period=0")
    java.write(scope, "orders", events=EVENTS, keys=8, size=200, kind="orders", first=EVENTS)
    tenant.until("all events are read", lambda: progress().get("rows") == 2 * EVENTS)
    tenant.until("nothing is behind", lambda: progress().get("lag") == "0 B")
    tenant.until("it runs again", runs)
    expect(page.locator("#link")).to_have_text("Live")
    expect(page.locator("#tiles")).to_contain_text(f"{2 * EVENTS:,}", timeout=PATIENCE)
    expect(page.locator("#size")).to_contain_text(f"of the {2 * EVENTS:,} rows")
    (second,) = tenant.pods()
    assert second["metadata"]["name"] != first["metadata"]["name"]
    found = rows(store, StreamName(scope=scope, stream="amounts"))
    assert Counter(row["order"] for row in found) == Counter(range(2 * EVENTS))
    assert java.read(scope, "amounts").events == 2 * EVENTS
    header, row = tenant.run("get", KIND, NAME).splitlines()
    columns = ["NAME", "READY", "REASON", "ROWS", "LAG", "WATERMARK", "LATENCY", "AGE"]
    assert header.split() == columns
    assert row.split()[:5] == [NAME, "True", "Running", str(2 * EVENTS), "0"]
    tenant.run("annotate", KIND, NAME, f"{VERIFY_REQUESTED_AT}=now")
    verified = tenant.until(
        "the results are verified", lambda: tenant.condition(NAME, "Verified", KIND)
    )
    assert (verified["status"], verified["reason"]) == ("True", "ResultsMatch"), verified
    assert verified["message"].startswith(f"{2 * EVENTS:,} rows of {scope}/amounts")
    tenant.run("delete", KIND, NAME)
    assert tenant.pods() == []
    assert len(rows(store, StreamName(scope=scope, stream="amounts"))) == 2 * EVENTS
