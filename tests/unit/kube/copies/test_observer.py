"""The look at a copy's surroundings, with an API server in memory and without stores."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.api.kinds.streamcopy import StreamCopy
from sluice.core.reconcile.copies.decide import reconcile
from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.core.workloads.answers import Complete
from sluice.core.workloads.request import copy_request
from sluice.errors import StoreNotFound, StoreNotReady, StoreUnavailable
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import CONFIG_MAP, POD, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import Child, child_labels
from sluice.kube.api.objects import parse
from sluice.kube.copies.observer import CopyObserver
from sluice.kube.jobs.manifests import plan_config_map, positions_config_map
from sluice.kube.loop.settings import OperatorSettings
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storeview import StoreView
from sluice.stores.allowance import Allowance
from support.cases.resources import COPY, STORE, changed
from support.engine.sources import copy_all, planned, put_source
from support.kube.api_server import ApiServer
from support.model import ModelStore, World
from support.reconcile.copies import PLAN, message, plan_seen, reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.copies.situation import Situation
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probes
    from sluice.stores.base import Store

UID = "6e1f1a52-7f0b-4b52-9a57-0c7d6ad3d9a1"


class Away:
    """Stores that answered a moment ago and cannot be connected to now."""

    async def look(self, *_: Object, **__: Any) -> Probed:
        """See Probes.look."""
        return Probed(StoreHealth(latency=0.0, protocol=1), datetime.now(UTC), 0.0, "u", 1)

    async def place(self, *_: Any) -> Store:
        """See Connections.place."""
        raise StoreUnavailable("no connection")


class Here(Away):
    """A store that answers."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    async def place(self, *_: Any) -> Store:
        """See Connections.place."""
        return self._store


def cluster(*, spec: dict[str, Any] | None = None, meta: dict[str, Any] | None = None) -> ApiServer:
    """Make the StreamStore `local` and a copy that names it."""
    server = ApiServer()
    server.put(STREAM_STORE, changed(STORE, "metadata.uid", "store"))
    body = changed(COPY, "metadata", {"name": "orders", "uid": UID, "generation": 1} | (meta or {}))
    server.put(STREAM_COPY, body | {"spec": body["spec"] | (spec or {})})
    return server


def observer(
    server: ApiServer,
    threads: ThreadPoolExecutor,
    stores: Away | None = None,
    shown: Iterable[tuple[Kind, Object]] = (),
) -> CopyObserver:
    """Make an observer of that cluster that remembers nothing. Watches have shown `shown`."""
    away = stores or Away()
    mirror = Mirror()
    for kind, body in shown:
        mirror.see(kind, body, gone=False)
    return CopyObserver(
        server.api,
        mirror,
        cast("Connections", away),
        StoreView(server.api, mirror, cast("Probes", away)),
        settings=OperatorSettings(image="i"),
        cluster="c",
        threads=threads,
        allowance=Allowance(),
    )


def look(
    server: ApiServer, stores: Away | None = None, shown: Iterable[tuple[Kind, Object]] = ()
) -> Situation:
    """Look at the copy with the observer that `observer` makes."""

    async def at_once() -> Situation:
        with ThreadPoolExecutor() as threads:
            body = await server.get(STREAM_COPY, "default", "orders")
            assert body is not None
            return await observer(server, threads, stores, shown).look(body)

    return asyncio.run(at_once())


# -- stores


def test_a_store_is_seen_as_its_probe_says() -> None:
    """The store is found by its name in the copy's namespace."""
    (found,) = look(cluster()).world.sources
    assert isinstance(found, StoreSeen)
    assert (found.name, found.ready, found.held) == ("local", True, False)


@pytest.mark.parametrize("suspend", [False, True])
def test_a_store_whose_spec_is_invalid_is_said_to_be_so(*, suspend: bool) -> None:
    """The message names the store's invalid field and the remedy."""
    server = cluster(spec={"suspend": suspend})
    server.put(STREAM_STORE, changed(STORE, "spec.pravega.controllerURI", "somewhere"))
    found = look(server)
    decision = reconcile(found.seen, found.world)
    assert reason(decision) == "StoreNotReady"
    words = message(decision)
    assert words.startswith("spec.source.storeRef.name: the spec of StreamStore 'local' is invalid")
    assert "spec.pravega.controllerURI" in words
    assert words.endswith("Correct the StreamStore and apply it again; the copy goes on then.")


def test_a_store_that_cannot_be_read_is_not_gone_for_good() -> None:
    """The deletion of a copy waits until the spec is corrected: staged bytes would leak."""
    server = cluster()
    server.put(STREAM_STORE, changed(STORE, "spec.pravega.controllerURI", "somewhere"))
    found = look(server)
    assert isinstance(found.world.target, Trouble)
    with (
        ThreadPoolExecutor() as threads,
        pytest.raises(StoreNotReady, match="is invalid"),
    ):
        asyncio.run(observer(server, threads).stores(found))


# -- the plan


@pytest.mark.parametrize("data", [None, {}, {"plan.json": "{"}, {"plan.json": "{}"}])
def test_a_config_map_without_a_plan_is_damaged(data: dict[str, str] | None) -> None:
    """The ConfigMap counts as no plan, and prevents the writing of another."""
    server = cluster()
    assert not look(server).world.damaged
    server.put(CONFIG_MAP, {"metadata": {"name": plan_name("orders", UID)}, "data": data})
    world = look(server).world
    assert (world.plan, world.damaged) == (None, True)


def put_plan(*, digest: str | None = PLAN.digest) -> tuple[ApiServer, Object]:
    """Put a copy with its plan as the operator writes both. Return the ConfigMap, to be forged."""
    server = cluster()
    server.objects[STREAM_COPY.name, "default", "orders"]["status"] = {"planDigest": digest}
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
    return server, server.put(CONFIG_MAP, plan_config_map(child, PLAN))


def test_a_config_map_with_a_plan_is_read() -> None:
    """The plan is read as it was written."""
    server, _ = put_plan()
    world = look(server).world
    assert (world.plan, world.damaged) == (plan_seen(), False)


ELSEWHERE = PLAN.model_copy(
    update={"target": PLAN.target.model_copy(update={"uri": "tcp://attacker:9090"})}
)
OTHER_LOGIN = PLAN.model_copy(
    update={"target": PLAN.target.model_copy(update={"secret": "others-login"})}
)
FORGED: dict[str, dict[str, Any]] = {
    "another address": {"data": {"plan.json": ELSEWHERE.model_dump_json()}},
    "another Secret": {"data": {"plan.json": OTHER_LOGIN.model_dump_json()}},
    "not immutable": {"immutable": False},
    "without an owner": {"ownerReferences": []},
    "another's": {"ownerReferences": [{"uid": "another", "controller": True}]},
    "not controlled": {"ownerReferences": [{"uid": UID}]},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_a_plan_that_the_operator_has_not_written_is_not_believed(forged: dict[str, Any]) -> None:
    """A forged plan could choose the address to connect to, and the login that is sent there."""
    server, body = put_plan()
    owners = forged.get("ownerReferences", body["metadata"]["ownerReferences"])
    body |= {key: value for key, value in forged.items() if key != "ownerReferences"}
    body["metadata"]["ownerReferences"] = owners
    world = look(server).world
    assert (world.plan, world.damaged) == (None, True)


def test_a_plan_that_no_status_names_is_not_believed() -> None:
    """Tenants can make ConfigMaps but cannot write statuses."""
    server, _ = put_plan(digest=None)
    world = look(server).world
    assert (world.plan, world.damaged) == (None, True)


# -- the access to a target whose StreamStore is gone


@pytest.mark.parametrize(
    ("secret", "namespace", "error"),
    [(None, "default", None), ("login", "default", None), ("login", "platform", StoreNotFound)],
    ids=["no login", "a login of its own", "a lent login"],
)
def test_a_lent_login_goes_with_its_stream_store(
    secret: str | None, namespace: str, error: type[StoreNotFound] | None
) -> None:
    """The plan's Secret is looked for neither in the copy's namespace nor in the plan's own.

    A deleted copy is then released after a while, as with any StreamStore that is gone.
    """
    server = cluster()
    body = server.objects[STREAM_COPY.name, "default", "orders"]
    target = body["spec"]["target"] | {"storeRef": {"name": "gone", "namespace": namespace}}
    plan = PLAN.model_copy(update={"target": PLAN.target.model_copy(update={"secret": secret})})
    server.put(
        STREAM_COPY,
        body
        | {"spec": body["spec"] | {"target": target}, "status": {"planDigest": plan.digest}}
        | {"metadata": body["metadata"] | {"deletionTimestamp": "2026-11-21T10:00:00Z"}},
    )
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
    server.put(CONFIG_MAP, plan_config_map(child, plan))
    found = look(server)
    with ThreadPoolExecutor() as threads:
        way = observer(server, threads)._target_address
        if error is None:
            assert way(found) == ("default", plan.target)
        else:
            with pytest.raises(error):
                way(found)


# -- the map of positions


def test_the_map_of_a_whole_target_is_looked_for() -> None:
    """The map comes from the target's marks and its published bytes."""
    server, stores = cluster(), World()
    body = server.objects[STREAM_COPY.name, "default", "orders"]
    request = copy_request(parse(body, StreamCopy), cluster="c")
    stores.scopes.add(request.target.scope)
    put_source(stores, [40, 40], [9], name=request.sources[0].stream)
    store = ModelStore(stores)
    copy_all(store, planned(store, request))
    found = look(server, Here(store)).world
    assert isinstance(found.answer, Complete)
    assert found.answer.positions is not None
    assert found.positions is None
    child = Child(kind=STREAM_COPY, namespace="default", name="orders", uid=UID)
    server.put(CONFIG_MAP, positions_config_map(child, found.answer.positions))
    found = look(server, Here(store)).world
    assert isinstance(found.answer, Complete)
    assert found.positions == found.answer.positions


# -- pods


@pytest.mark.parametrize(
    ("spec", "meta", "pods"),
    [
        ({}, {}, 0),
        ({"suspend": True}, {}, 2),
        ({}, {"deletionTimestamp": "2026-01-02T03:04:05Z"}, 2),
    ],
)
def test_pods_that_run_are_counted_where_that_is_waited_for(
    spec: dict[str, Any], meta: dict[str, Any], pods: int
) -> None:
    """Drivers and executors of this copy count until their containers have ended.

    A pod that only has the copy's label, as a cloned one does, holds nothing up.
    """
    server = cluster(spec=spec, meta=meta)
    job, driver = ("Job", job_name(UID, 1)), ("Pod", f"{job_name(UID, 1)}-x7k2p")
    for name, uid, owner, phase in (
        ("driver", UID, job, "Running"),
        ("executor", UID, driver, "Pending"),
        ("ended", UID, job, "Succeeded"),
        ("other", "another", ("Job", job_name("another", 1)), "Running"),
        ("cloned", UID, None, "Running"),
        ("labelled", UID, ("Job", "mine"), "Running"),
    ):
        meta = {"name": name, "labels": child_labels(uid, "driver")}
        if owner is not None:
            reference = {"kind": owner[0], "name": owner[1], "uid": "u", "controller": True}
            meta["ownerReferences"] = [reference]
        server.put(POD, {"metadata": meta, "status": {"phase": phase}})
    assert look(server).world.pods == pods
