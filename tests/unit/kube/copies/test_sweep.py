"""The sweep of Jobs and ConfigMaps in the namespaces of StreamStores."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from sluice.core.reconcile.shared.jobs import job_name
from sluice.errors import ApiUnavailable
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import CONFIG_MAP, JOB, NAMESPACE, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import COPY_ANNOTATION, Child, controls_name, owned, run_name
from sluice.kube.copies.sweep import CopySweep
from sluice.kube.loop.served import ALL, Served
from support.kube.api_server import ApiServer
from support.reconcile.copies import UID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluice.kube.api.kinds import Kind, Object

PLATFORM: Final = "platform"
LABELS: Final = {"team": "yes"}
CHILD: Final = Child(kind=STREAM_COPY, namespace="team", name="orders", uid=UID, host=PLATFORM)
AUTH: Final = {"auth": {"basic": {"secretRef": {"name": "login"}}}}
ENDED: Final = {"conditions": [{"type": "Complete", "status": "True"}]}


def put_job(server: ApiServer, name: str = job_name(UID, 1), **parts: Any) -> None:
    """Put the Job of a driver beside the login."""
    meta = CHILD.metadata(name, "driver") | parts.pop("metadata", {})
    server.put(JOB, {"metadata": meta, **parts})


def put_copy(server: ApiServer, uid: str = UID, **spec: Any) -> None:
    """Put the copy."""
    ref = {"scope": "s", "stream": "s", "storeRef": {"name": "main", "namespace": PLATFORM}}
    meta = {"name": "orders", "namespace": "team", "uid": uid}
    server.put(STREAM_COPY, {"metadata": meta, "spec": {"source": ref, "target": ref} | spec})


def put_store(server: ApiServer, *, login: bool = True, **grant: str) -> None:
    """Put the StreamStore, with one grant."""
    found: Object = {"selector": {"matchLabels": LABELS}} | grant
    pravega = {"controllerURI": "tcp://p:9090"} | (AUTH if login else {})
    spec = {"pravega": pravega, "access": {"sharedWith": [found]}}
    meta = {"name": "main", "namespace": PLATFORM}
    kind = {"apiVersion": STREAM_STORE.api_version, "kind": STREAM_STORE.name}
    server.put(STREAM_STORE, kind | {"metadata": meta, "spec": spec})


@pytest.fixture
def server() -> ApiServer:
    """Return a server with a copy, its grant, and all objects that work for it."""
    found = ApiServer()
    meta = {"name": "team", "uid": "team", "labels": LABELS}
    found.objects[NAMESPACE.name, None, "team"] = {"metadata": meta}
    put_store(found, driverNamespace="Store")
    put_copy(found)
    put_job(found)
    (job,) = found.all(JOB)
    for name in (run_name(job_name(UID, 1)), controls_name("orders", UID)):
        found.put(CONFIG_MAP, owned({"metadata": CHILD.metadata(name, "run")}, job))
    return found


def sweep(server: ApiServer, served: Served = ALL, *, lag: bool = False) -> int:
    """Make one round of the sweep. With `lag`, its mirror has only the Jobs."""
    mirror = Mirror()
    for kind in (JOB,) if lag else (JOB, STREAM_COPY, STREAM_STORE):
        for body in server.all(kind):
            mirror.see(kind, body, gone=False)
    return asyncio.run(CopySweep(server.api, mirror, served).round())


def left(server: ApiServer) -> list[str]:
    """Return the names of the Jobs and ConfigMaps that stay."""
    server.collect()
    return [body["metadata"]["name"] for kind in (JOB, CONFIG_MAP) for body in server.all(kind)]


@pytest.mark.parametrize("lag", [False, True])
def test_a_copy_with_its_grant_keeps_its_driver(server: ApiServer, *, lag: bool) -> None:
    """This holds even if only the API server shows copy and grant yet."""
    assert sweep(server, lag=lag) == 0
    assert len(left(server)) == 3


def test_a_sweep_deletes_what_works_for_a_copy_that_is_gone(server: ApiServer) -> None:
    """This holds even if another copy has the name now."""
    put_copy(server, "another")
    assert sweep(server) == 1
    assert left(server) == []


@pytest.mark.parametrize("lag", [False, True])
@pytest.mark.parametrize(
    "grant",
    [
        {},
        {"driverNamespace": "Copy"},
        {"driverNamespace": "Nowhere"},
        {"login": False},
    ],
    ids=["none for drivers", "for drivers at home", "not readable", "no login any more"],
)
def test_a_sweep_ends_a_driver_whose_grant_is_gone(
    server: ApiServer, grant: dict[str, Any], *, lag: bool
) -> None:
    """The copy's content does not matter, nor whether the operator can read the copy."""
    put_store(server, **grant)
    assert sweep(server, lag=lag) == 1
    assert left(server) == []


@pytest.mark.parametrize(
    "spec",
    [{"source": [], "target": 7}, {"source": {}, "target": {}}],
    ids=["not readable", "of no StreamStore"],
)
def test_no_spec_keeps_a_driver_alive(server: ApiServer, spec: dict[str, Any]) -> None:
    """The operator refuses such a copy, and therefore checks no grant."""
    put_copy(server, **spec)
    assert sweep(server) == 1


def test_a_label_withdraws_a_grant_as_well(server: ApiServer) -> None:
    """The end of the namespace or of the StreamStore withdraws the grant, too."""
    server.objects[NAMESPACE.name, None, "team"]["metadata"]["labels"] = {}
    assert sweep(server) == 1


def test_a_job_that_has_ended_may_stay_without_a_grant(server: ApiServer) -> None:
    """The Job keeps its log for as long as its profile says."""
    put_job(server, status=ENDED)
    put_store(server)
    assert sweep(server) == 0


def test_an_api_server_that_is_away_ends_no_driver(server: ApiServer) -> None:
    """The sweep then knows nothing of copies and grants."""

    async def away(*_: object) -> None:
        raise ApiUnavailable("no connection")

    put_store(server)
    server.get = away  # type: ignore[assignment]
    with pytest.raises(ApiUnavailable):
        sweep(server)
    assert len(left(server)) == 3


@pytest.mark.parametrize("names", [["team"], [PLATFORM], ["other"]])
def test_a_sweep_leaves_what_another_operator_may_know(server: ApiServer, names: list[str]) -> None:
    """The sweep does not know whether the copy exists."""
    server.destroy(STREAM_COPY, "orders", "team")
    assert sweep(server, Served(names)) == 0
    assert sweep(server, Served(["team", PLATFORM])) == 1


@pytest.mark.parametrize(
    "said",
    [
        "StreamCopy/../orders",
        "StreamCopy/team/..",
        "StreamCopy/team/A_B",
        "Secret/team/orders",
        "x",
    ],
)
def test_a_forged_name_stops_no_sweep(server: ApiServer, said: str) -> None:
    """The Jobs before and behind it are swept."""
    put_store(server)
    forged = {"annotations": {COPY_ANNOTATION: said}, "namespace": "anyone"}
    server.objects = {
        ("Job", "anyone", "forged"): {
            "metadata": CHILD.metadata("forged", "driver") | forged | {"uid": "forged"}
        }
    } | server.objects
    assert sweep(server) == 1
    assert left(server) == ["forged"]


def test_jobs_that_cannot_be_listed_stop_no_sweep(server: ApiServer) -> None:
    """A user may make so many or such large Jobs that the API server takes too long."""
    put_store(server)
    listed: list[str | None] = []

    async def pages(kind: Kind, namespace: str | None, **rest: Any) -> AsyncIterator[list[Object]]:
        listed.append(namespace)
        if namespace == "anyone":
            raise ApiUnavailable("too slow")
        for one in await server.list(kind, namespace, **rest):
            yield [one]

    server.pages = pages  # type: ignore[method-assign]
    for uid in ("1", "2"):
        one = replace(CHILD, name=f"no-{uid}", uid=uid, host="anyone")
        put_job(server, metadata=one.metadata(f"forged-{uid}", "driver"))
    assert sweep(server) == 1
    assert listed.count("anyone") == 1


def test_a_copy_is_looked_at_once_however_many_jobs_it_has(server: ApiServer) -> None:
    """Users may forge Jobs. The other copies get their turn in time."""
    for number in range(2, 50):
        put_job(server, job_name(UID, number))
    put_store(server)
    asked: list[str] = []
    get = server.get

    async def counted(kind: Kind, namespace: str | None, name: str) -> Object | None:
        asked.append(kind.name)
        return await get(kind, namespace, name)

    server.get = counted  # type: ignore[method-assign]
    assert sweep(server) == 1
    assert left(server) == []
    assert asked.count(STREAM_COPY.name) == 1


def test_a_forged_job_with_an_owner_is_not_the_operators(server: ApiServer) -> None:
    """The Job does not count as swept."""
    for body in [*server.all(JOB)]:
        server.destroy(JOB, body["metadata"]["name"], PLATFORM)
    server.destroy(STREAM_COPY, "orders", "team")
    owner = {"kind": "CronJob", "name": "x", "uid": "x"}
    put_job(server, "forged", metadata={"ownerReferences": [owner]})
    assert sweep(server) == 0
    assert server.body(JOB, "forged", PLATFORM) is not None


def test_what_works_for_a_copy_goes_as_soon_as_the_copy_is_gone(server: ApiServer) -> None:
    """A user has removed its finalizer. A copy without a driver elsewhere causes no work."""

    async def gone(body: Object) -> None:
        found = CopySweep(server.api, Mirror())
        found.gone(STREAM_COPY, body)
        task = asyncio.create_task(found.follow())
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()

    body = server.objects[STREAM_COPY.name, "team", "orders"]
    asyncio.run(gone(body))
    assert len(left(server)) == 3
    asyncio.run(gone(body | {"status": {"driverNamespace": PLATFORM}}))
    assert left(server) == []
