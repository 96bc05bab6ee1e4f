"""EphemeralStreams while a store is away, operators die and clusters share a store.

The store requires logins, and a test can shut the gate in front of it. The store's own listing is
the witness. One store is away from the first test to the last.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import pytest

from localstore.accounts import ADMIN
from support.cluster.gate import Gate
from support.tenants.owned import Watch, ephemeral, ready_of, until_reason, workload
from support.tenants.renting import rented
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

_AWAY_SECONDS = 90
_AWAY = {"StoreUnavailable", "StoreTimeout"}
_ELSEWHERE = "harbour-east"


class Outage(NamedTuple):
    """A store that went away while a stream was to be deleted.

    Attributes:
        tenant: the namespace of the EphemeralStream `kept`.
        scope: the scope of its stream.
        gate: the gate in front of the store.
        watch: the watch of the resource.
        began: the time at which the store went away.
    """

    tenant: Tenant
    scope: str
    gate: Gate
    watch: Watch
    began: float

    def said(self) -> list[Object]:
        """Return the successive Ready conditions of the resource."""
        return [ready_of(resource) for _, resource in self.watch.events()]


@pytest.fixture(scope="module", autouse=True)  # shortens the wait of the last test
def outage(
    kube: Cluster, sluice: Operator, guarded: ClusterStore, guarded_java: ForeignClient
) -> Iterator[Outage]:
    """Yield a store that accepts calls without an answer, and a resource in deletion."""
    with ExitStack() as stack:
        gate = stack.enter_context(Gate(kube, guarded, sluice.image))
        name = f"sluice-test-{uuid4().hex[:8]}"
        tenant = stack.enter_context(rented(kube, guarded, print, name))
        stack.callback(gate.open)
        guarded_java.create_scope(name)
        store = tenant.store_resource(uri=gate.uri, secret="login")  # noqa: S106 - its name
        tenant.apply(tenant.login_resource(ADMIN), store, ephemeral(tenant, "kept", name))
        until_reason(tenant, "kept", "Claimed")
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        watch = stack.enter_context(Watch(tenant, "kept", log))
        tenant.until("it is watched", watch.events)
        gate.swallow()
        began = time.monotonic()
        tenant.run("delete", "eps", "kept", "--wait=false")
        yield Outage(tenant, name, gate, watch, began)


@pytest.mark.exhaustive
def test_store_that_is_away_is_told_while_a_stream_is_deleted(
    outage: Outage, guarded_java: ForeignClient
) -> None:
    """A deletion reports a silent store, and one that does not listen, with a remedy."""
    tenant = outage.tenant
    said = until_reason(tenant, "kept", "StoreTimeout")
    assert "sluice.dev/force-orphan" in said["message"]
    outage.gate.shut()
    said = until_reason(tenant, "kept", "StoreUnavailable")
    assert "next try goes on" in said["message"]
    assert "sluice.dev/force-orphan" in said["message"]
    tenant.until(
        "the StreamStore says so, too",
        lambda: tenant.condition("store", resource="sst").get("reason") in _AWAY,
    )
    assert guarded_java.streams(outage.scope) == ["kept"]


@pytest.mark.exhaustive
@pytest.mark.crash
def test_namespace_with_many_streams_goes(
    kube: Cluster, locked: Tenant, locked_scope: str, guarded_java: ForeignClient, sluice: Operator
) -> None:
    """A namespace with 40 EphemeralStreams goes, though the operator is killed midway."""
    count, app = 40, workload(locked, "app")
    locked.apply(*[ephemeral(locked, f"e{n:02}", locked_scope, app) for n in range(count)])

    def left() -> int:
        return len(guarded_java.streams(locked_scope) or [])

    began = time.monotonic()
    locked.until("all are there", lambda: left() == count)
    locked.say(f"  {count} streams made in {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    locked.run("delete", "secret", "login", "--wait=false")
    locked.run("delete", "sst", "store", "--wait=false")
    assert "deletionTimestamp" in (locked.get("secret", "login") or {})["metadata"]
    assert left() == count
    kube.kubectl("delete", "namespace", locked.namespace, "--wait=false")
    locked.until("some are gone", lambda: left() < count - 20)
    sluice.kill()
    locked.say(f"  the operator is killed with {left()} streams left")
    wait = ("--for=delete", PATIENTLY)
    kube.kubectl("wait", f"namespace/{locked.namespace}", *wait, timeout=190)
    locked.say(f"  namespace and streams gone {time.monotonic() - began:.0f} s after the Secret")
    assert guarded_java.streams(locked_scope) == []


@pytest.mark.exhaustive
@pytest.mark.crash
def test_operator_killed_between_seal_and_delete(
    locked: Tenant, locked_scope: str, guarded_java: ForeignClient, gate: Gate, sluice: Operator
) -> None:
    """The next operator deletes streams that a dead operator sealed but did not delete."""
    scope, streams = locked_scope, ["flow-a", "flow-b", "one"]
    for stream in streams[:2]:
        guarded_java.create(scope, stream)
    prefix = {"streamPrefix": "flow-", "claim": "ExistingAndNew"}
    locked.apply(ephemeral(locked, "one", scope), ephemeral(locked, "flow", scope, **prefix))
    for name in ("one", "flow"):
        until_reason(locked, name, "Claimed")
    gate.hold("deleteStream")
    locked.run("delete", "eps", "one", "flow", "--wait=false")
    locked.until(
        "the operator is about to delete each stream",
        lambda: gate.calls(scope).held == ["deleteStream"] * len(streams),
    )
    assert [guarded_java.info(scope, stream).sealed for stream in streams] == [True] * 3
    before = gate.calls(scope).passed
    assert "deleteStream" not in before
    sluice.crash()
    assert {"flow-a", "flow-b", "one"} <= set(guarded_java.streams(scope) or [])
    gate.open()
    for name in ("one", "flow"):
        locked.until_gone("eps", name)
    assert guarded_java.streams(scope) == []
    after = gate.calls(scope).passed[len(before) :]
    # The claim's marker goes as well. A slow store is asked again.
    assert after.count("deleteStream") >= len(streams) + 1


@pytest.fixture
def become(release: Callable[..., None]) -> Iterator[Callable[[str], None]]:
    """Yield a function that gives the operator a cluster's identity; "" is its own."""
    last = [""]

    def change(cluster: str) -> None:
        last[0] = cluster
        release(clusterID=cluster)

    yield change
    if last[0]:
        change("")


@pytest.mark.alone
@pytest.mark.exhaustive
def test_streams_of_another_cluster_are_left_alone(
    locked: Tenant,
    locked_scope: str,
    guarded_java: ForeignClient,
    sluice: Operator,
    become: Callable[[str], None],
) -> None:
    """Streams with another cluster's identity stay untouched, even under Sluice's tags."""
    scope = locked_scope
    guarded_java.create(scope, "flow-a")
    prefix = {"streamPrefix": "flow-", "claim": "ExistingAndNew"}
    become(_ELSEWHERE)
    locked.apply(ephemeral(locked, "theirs", scope), ephemeral(locked, "flow", scope, **prefix))
    for name in ("theirs", "flow"):
        until_reason(locked, name, "Claimed")
    there = guarded_java.streams(scope) or []
    assert {"flow-a", "theirs"} < set(there)  # and also the marker of the claim to the prefix

    become("")
    said = until_reason(locked, "theirs", "Conflict")
    assert "another cluster" in said["message"]
    until_reason(locked, "flow", "StreamExists")
    assert _stale(sluice, locked) == []
    locked.run("delete", "eps", "theirs", "flow", "--wait=false")
    locked.until_gone("eps", "theirs")
    # Another resource may not take them, either, even if it may adopt streams.
    locked.apply(ephemeral(locked, "ours", scope, stream="theirs", adopt="IfUnowned"))
    said = until_reason(locked, "ours", "Conflict")
    assert "another cluster" in said["message"]
    locked.run("delete", "eps", "ours")
    locked.until_gone("eps", "flow")
    assert _stale(sluice, locked, "--delete", "--yes") == []
    assert guarded_java.streams(scope) == there

    # An operator with the other cluster's identity finds them.
    found = _stale(sluice, locked, f"--cluster-id={_ELSEWHERE}", "--delete", "--yes")
    assert sorted(name for one in found for name in one["streams"]) == ["flow-a", "theirs"]
    assert guarded_java.streams(scope) == []


def _stale(sluice: Operator, tenant: Tenant, *words: str) -> list[Object]:
    """Return the output of `sluice streams stale` for the scope of a namespace."""
    pod = ("exec", "deployment/sluice-operator", "--", "sluice", "streams", "stale")
    where = (f"--namespace={tenant.namespace}", "--store=store", "--output=json")
    found = json.loads(sluice.run(*pod, *where, *words))
    return [one for one in found if one["scope"] == tenant.namespace]


@pytest.mark.exhaustive
def test_stream_is_deleted_when_the_store_is_back(
    outage: Outage, guarded_java: ForeignClient, say: Callable[[str], None]
) -> None:
    """The resource stays with a reason while the store is away, and then goes by itself."""
    tenant, gate = outage.tenant, outage.gate
    time.sleep(max(0.0, outage.began + _AWAY_SECONDS - time.monotonic()))
    said = outage.said()
    first = next(at for at, one in enumerate(said) if one["reason"] in _AWAY)
    assert {one["reason"] for one in said[first:]} <= _AWAY, [one["reason"] for one in said]
    assert [kind for kind, _ in outage.watch.events() if kind == "DELETED"] == []
    assert guarded_java.streams(outage.scope) == ["kept"]
    gate.open()
    began = time.monotonic()
    tenant.until_gone("eps", "kept")
    assert guarded_java.streams(outage.scope) == []
    say(f"  the stream is gone {time.monotonic() - began:.0f} s after the store is back")
