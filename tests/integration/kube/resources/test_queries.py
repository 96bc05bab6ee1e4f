"""A StreamQuery by an operator at a real API server, over a real store.

Kubernetes' own Job controller makes and replaces the pods. These find no node, so the test runs
them (`support.cluster.kubelet`), with Spark, and kills and stops their processes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sluice.config import Settings
from sluice.core.values.model import RetentionType, StoreAddress, StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.kube.api.objects import VERIFY_REQUESTED_AT as REQUESTED_AT
from sluice.stores.connect import connect
from support.gitops.kstatus import kstatus
from support.store.clicks import Clicks
from support.store.counts import assert_counted, manifest, results
from support.until import PATIENT, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import Standalone
    from sluice.stores.base import Store
    from support.cluster.kubelet import Object
    from support.cluster.local_operator import LocalOperator
    from support.tenants.desk import Desk

pytestmark = pytest.mark.timeout(600)

KIND = "streamquery"
LABEL = "app.kubernetes.io/component=verifier"
CLAIM = "checkpoints"


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Return the operator's settings, with an image of queries that no node pulls."""
    return {"queries": {"image": "localhost/sluice-query:none"}}


@pytest.fixture
def store(standalone: Standalone) -> Iterator[Store]:
    """Yield the shared store."""
    made = connect(StoreAddress(uri=standalone.controller_uri), Settings(timeouts=PATIENT))
    yield made
    made.close()


@pytest.fixture
def clicks(store: Store, scope: str) -> Clicks:
    """Return a new stream in a scope of its own."""
    return Clicks(store, StreamName(scope=scope, stream="clicks"))


@pytest.fixture
def query(desk: Desk, standalone: Standalone, clicks: Clicks) -> Query:
    """Return the query of the namespace beside a claim. It is not applied yet."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    desk.tenant.apply(claim)
    return Query(desk, standalone, clicks)


class Query:
    """The query of a namespace.

    Args:
        desk: the namespace.
        standalone: the store.
        clicks: the stream.
    """

    name = "counts"

    def __init__(self, desk: Desk, standalone: Standalone, clicks: Clicks) -> None:
        self._desk = desk
        self._uri = standalone.controller_uri
        self._clicks = clicks

    def apply(self, **changes: Any) -> None:
        """Apply the query and its StreamStore."""
        usual = {"mode": "Continuous", "checkpoint": {"claimName": CLAIM}}
        text = manifest(self._uri, self._clicks.name, **(usual | changes))
        self._desk.tenant.apply(*yaml.safe_load_all(text))

    def until(self, *reasons: str) -> Object:
        """Wait until the query's condition Ready has one of these reasons. Return its status."""
        return self._desk.until_reason(KIND, self.name, *reasons)

    @property
    def status(self) -> Object:
        """The query's status."""
        found: Object = self._desk.tenant.get(KIND, self.name) or {}
        status: Object = found.get("status", {})
        return status

    def condition(self, kind: str = "Ready") -> Object:
        """Return a condition of the query; an empty one if there is none."""
        return self._desk.tenant.condition(self.name, kind, KIND)


@pytest.mark.exhaustive
def test_a_query_runs_and_is_replaced_by_kubernetes_when_it_is_killed(
    desk: Desk, query: Query, clicks: Clicks, store: Store, local_operator: LocalOperator
) -> None:
    """The status has the progress. Rows are exact after kills of the driver and the operator."""
    tenant = desk.tenant
    clicks.write(130)
    query.apply()
    with desk.driver() as first:
        status = query.until("Running")
        assert status["version"]["number"] == 1
        assert status["version"]["columns"] == ("start TIMESTAMP,k STRING,n BIGINT,total BIGINT")
        until("two windows are closed", lambda: len(results(store, clicks.name)) >= 32)
        tenant.until(
            "the status has the rows",
            lambda: query.status["progress"] if query.status["progress"]["rows"] == 32 else None,
        )
        progress = query.status["progress"]
        assert (progress["lagBytes"], progress["lag"]) == (0, "0 B")
        assert progress["watermark"] == "2026-01-01T00:02:00Z"
        body = tenant.get(KIND, query.name)
        assert body is not None
        assert kstatus([body]) == {f"StreamQuery/{query.name}": "Current"}
        local_operator.operator.kill()
        clicks.write(60)
        first.process.kill()
        first.finish()
    with desk.driver() as second:  # Kubernetes makes this pod, since no operator runs
        until("three windows are closed", lambda: len(results(store, clicks.name)) >= 48)
        local_operator.operator.start()
        clicks.write(60)
        until("four windows are closed", lambda: len(results(store, clicks.name)) >= 64)
        query.until("Running")
        assert query.status["attempts"] == 1
        tenant.run("delete", KIND, query.name, "--wait=false")
        second.stop()
    tenant.until_gone(KIND, query.name)
    assert_counted(results(store, clicks.name), clicks)


def test_a_query_without_a_volume_is_refused_before_a_pod_is_made(
    desk: Desk, query: Query, clicks: Clicks
) -> None:
    """The condition names each missing object and its field. No Job is made."""
    query.apply(checkpoint={})
    query.until("InvalidSpec")
    assert "spec.checkpoint.claimName" in query.condition()["message"]
    query.apply(checkpoint={"claimName": "later"})
    query.until("ClaimNotFound")
    assert query.condition("Stalled")["status"] == "True"
    assert desk.tenant.get_all("jobs") == []
    query.apply(runtime={"profile": "nowhere"})
    query.until("ProfileNotFound")
    assert "spec.runtime.profile" in query.condition()["message"]
    query.apply(sinks__0__stream__storeRef__name="nowhere")
    query.until("StoreNotFound")
    assert "spec.sinks[0].stream.storeRef.name" in query.condition()["message"]
    assert desk.tenant.get_all("jobs") == []
    desk.tenant.run("delete", KIND, query.name)


@pytest.mark.exhaustive
def test_a_query_is_refused_mended_suspended_and_changed(
    desk: Desk, query: Query, clicks: Clicks, store: Store
) -> None:
    """Each change of the spec stops the driver, and the next one reads the new spec."""
    tenant = desk.tenant
    clicks.write(130)
    query.apply(query__sql="SELECT rand() AS r FROM clicks")
    desk.drive(code=2)
    query.until("InvalidQuery")
    said = query.condition()["message"]
    assert "spec.query.sql" in said
    assert "may not call rand (line 1, column 8)" in said
    query.apply()
    with desk.driver() as second:
        query.until("Running")
        until("two windows are closed", lambda: len(results(store, clicks.name)) >= 32)
        query.apply(suspend=True)
        second.stop()
    query.until("Suspended")
    clicks.write(60)
    query.apply()
    with desk.driver() as third:
        until("three windows are closed", lambda: len(results(store, clicks.name)) >= 48)
        query.until("Running")
        query.apply(sources__0__eventTime__latenessSeconds=5)
        third.stop()
    desk.drive(code=2)
    query.until("QueryChanged")
    assert (
        "spec.sources[clicks].eventTime.latenessSeconds was 0, and is 5"
        in query.condition()["message"]
    )
    assert query.status["version"]["number"] == 1
    assert_counted(results(store, clicks.name), clicks)
    query.apply(sources__0__eventTime__latenessSeconds=5, onChange="Restart")
    with desk.driver() as fifth:
        tenant.until("the second version runs", lambda: query.status["version"]["number"] == 2)
        tenant.run("delete", KIND, query.name, "--wait=false")
        fifth.stop()
    tenant.until_gone(KIND, query.name)


@pytest.mark.exhaustive
def test_a_query_with_an_end_is_done_and_lets_its_store_go(
    desk: Desk, query: Query, clicks: Clicks, store: Store
) -> None:
    """A query that has ended is Succeeded. It has no finalizer and releases its StreamStore."""
    clicks.write(130)
    query.apply(mode="Once")
    desk.drive()
    query.until("Completed")
    assert query.condition("Succeeded")["status"] == "True"
    assert_counted(results(store, clicks.name), clicks)
    body = desk.tenant.get(KIND, query.name)
    assert body is not None
    assert "finalizers" not in body["metadata"]
    assert kstatus([body]) == {f"StreamQuery/{query.name}": "Current"}
    desk.tenant.until(
        "its StreamStore is free",
        lambda: not (desk.tenant.get("sst", "main") or {})["status"].get("inUseBy"),
    )
    desk.tenant.run("delete", KIND, query.name)


@pytest.mark.exhaustive
def test_results_are_verified_once_the_query_is_done_and_when_that_is_requested(
    desk: Desk, query: Query, clicks: Clicks, store: Store
) -> None:
    """A pod of its own computes the rows anew, and finds the one that another program has added.

    It ends where it was killed, and another operator goes by what the pod has said.
    """

    def verified(status: str) -> Object:
        desk.tenant.until(
            f"Verified is {status}", lambda: query.condition("Verified").get("status") == status
        )
        return query.condition("Verified")

    clicks.write(130)
    query.apply(mode="Once", verify={"timeoutSeconds": 300})
    desk.drive()
    query.until("Completed")
    with desk.driver("verifier") as first:
        first.process.kill()
        first.finish()
    assert verified("Unknown")["reason"] == "VerificationNotRun"
    desk.tenant.run("annotate", KIND, query.name, f"{REQUESTED_AT}=once more")
    with desk.driver("verifier") as second:
        assert second.finish() == 0
    said = verified("True")
    assert said["reason"] == "ResultsMatch"
    assert said["message"].startswith("32 rows of ")
    row = {"start": "2026-01-01T00:00:00.000000Z", "k": "key-0", "n": 1, "total": 0}
    sink = StreamName(scope=clicks.name.scope, stream="counts")
    EventWriter(store, sink).write([Routed(0.0, json.dumps(row).encode())])
    desk.tenant.run("annotate", KIND, query.name, f"{REQUESTED_AT}=and more", "--overwrite")
    with desk.driver("verifier") as third:
        assert third.finish() == 0
    said = verified("False")
    assert said["reason"] == "ResultsDiffer"
    assert "0 are missing, 1 too many" in said["message"]
    found = query.status["verification"]
    assert (found["number"], found["result"], found["extra"]) == (3, "Different", 1)
    told = [reason for reason, _ in desk.tenant.events(query.name)]
    assert {"VerificationNotRun", "ResultsMatch", "ResultsDiffer"} <= set(told)
    assert len(desk.tenant.get_all("jobs", labelSelector=LABEL)) == 1
    assert query.condition()["reason"] == "Completed"
    desk.tenant.run("delete", KIND, query.name)


@pytest.mark.exhaustive
def test_a_live_sink_goes_with_the_query_and_another_one_begins_anew(
    desk: Desk, query: Query, clicks: Clicks, store: Store
) -> None:
    """Its ledger, which lies beside it, goes too, also if the query may not use the store any more.

    A stream that stays is another query's.
    """
    shown = StreamName(scope=clicks.name.scope, stream="counts")
    place = {"storeRef": {"name": "main"}, "scope": shown.scope, "stream": "counts"}
    clicks.write(130)
    for withdrawn in (False, True):
        query.apply(mode="Once", sinks=[{"live": {**place, "segments": 2, "keepSeconds": 3600}}])
        desk.drive()
        query.until("Completed")
        assert_counted(results(store, clicks.name), clicks)
        kept = store.describe(shown)
        assert kept is not None
        assert (kept.config.retention.type, kept.config.retention.minimum) == (
            RetentionType.TIME,
            3_600_000,
        )
        body = desk.tenant.get(KIND, query.name)
        assert body is not None
        assert body["metadata"]["finalizers"]
        ledger = QueryLedger(store, body["status"]["queryID"], shown)
        assert ledger.load().rows == 32
        desk.tenant.run("annotate", KIND, query.name, "sluice.dev/requestedAt=now")
        desk.drive()  # another attempt makes nothing anew
        query.until("Completed")
        assert_counted(results(store, clicks.name), clicks)
        if withdrawn:
            desk.tenant.patch("sst", "main", {"spec": {"access": {"operations": ["Read"]}}})
        desk.tenant.run("delete", KIND, query.name)
        assert store.describe(shown) is None
        ledger = QueryLedger(store, body["status"]["queryID"], shown)
        assert ledger.load().version is None
