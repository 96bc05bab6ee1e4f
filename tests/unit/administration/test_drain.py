"""The drain of a cluster's resources before its operator is removed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluice.administration.cleanup import drain
from sluice.administration.cleanup.drain import Drainer, DrainPolicy
from sluice.administration.cleanup.holders import Holder
from sluice.errors import ApiUnavailable
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    OWN,
    SCOPE_COPY,
    SECRET,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_QUERY,
    STREAM_STORE,
)
from sluice.kube.api.objects import (
    FORCE_ORPHAN,
    IN_USE_FINALIZER,
    QUERY_FINALIZER,
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
)
from sluice.kube.api.responses import Refused
from sluice.kube.loop.served import Served
from support.cases import resources
from support.kube.finalizing import FinalizingServer
from support.reconcile.scope_archives import ARCHIVED, FOLDER

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "StoreUnavailable",
    "message": "No answer.",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
DONE = {"completionTime": "2026-01-01T00:00:00Z"}


@pytest.fixture(autouse=True)
def _no_time_to_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "POLL_SECONDS", 0.001)


@pytest.fixture
def server() -> FinalizingServer:
    """Yield a cluster with two streams, copies of all ages, and a store with its Secrets."""
    made = FinalizingServer()
    put(made, EPHEMERAL_STREAM, "helper", STREAMS_FINALIZER, status={"conditions": [CONDITION]})
    put(made, EPHEMERAL_STREAM, "waiting")
    put(made, STREAM_COPY, "running", STAGING_FINALIZER)
    put(made, STREAM_COPY, "new")
    put(made, STREAM_COPY, "done", status=DONE)
    put(made, SECRET, "login", IN_USE_FINALIZER, "other.example/kept")
    put(made, SECRET, "old-login", IN_USE_FINALIZER)
    put(made, SECRET, "unrelated", IN_USE_FINALIZER)
    store = put(made, STREAM_STORE, "local", IN_USE_FINALIZER)
    store["status"] = {"heldSecrets": ["login", "old-login"]}
    store["spec"]["pravega"]["auth"] = {"basic": {"secretRef": {"name": "login"}}}
    return made


def put(server: FinalizingServer, kind: Kind, name: str, *finalizers: str, **more: Any) -> Object:
    """Put a resource with its finalizers."""
    templates = {
        EPHEMERAL_STREAM: resources.EPHEMERAL,
        STREAM_COPY: resources.COPY,
        SCOPE_COPY: resources.SCOPE,
        STREAM_QUERY: resources.QUERY,
        STREAM_STORE: resources.STORE,
    }
    body = resources.changed(templates.get(kind, {"kind": kind.name}), "metadata.name", name)
    meta = {"finalizers": [*finalizers], "namespace": more.pop("namespace", "default")}
    body["metadata"] |= meta
    return server.put(kind, body | more)


def run(
    server: FinalizingServer,
    policy: DrainPolicy,
    *namespaces: str,
    excluded: tuple[str, ...] = (),
    timeout: float = 5,
) -> tuple[list[Holder], list[str]]:
    """Drain the cluster; return the resources that are left, and the messages."""
    said: list[str] = []
    work = Drainer(server.api, Served(namespaces, excluded), timeout=timeout, say=said.append)
    return asyncio.run(work.run(policy)), said


def operator(server: FinalizingServer) -> None:
    """Play an operator that cleans up after deleted resources, then releases the store."""

    def work() -> None:
        users = False
        for kind, finalizer in (
            (EPHEMERAL_STREAM, STREAMS_FINALIZER),
            (STREAM_COPY, STAGING_FINALIZER),
            (SCOPE_COPY, STAGING_FINALIZER),
        ):
            for own, namespace, name in list(server.objects):
                if own == kind.name and finalizer in (server.finalizers(kind, name) or []):
                    users = True
                    if "deletionTimestamp" in server.objects[own, namespace, name]["metadata"]:
                        server.free(kind, name, finalizer)
        if not users and IN_USE_FINALIZER in (server.finalizers(STREAM_STORE, "local") or []):
            server.free(STREAM_STORE, "local", IN_USE_FINALIZER)

    server.meanwhile = work


def titles(left: list[Holder]) -> list[str]:
    """Return the titles of the remaining resources."""
    return [one.title for one in left]


def test_refusing_tells_what_is_held_and_touches_nothing(server: FinalizingServer) -> None:
    """Refusing names each resource with Sluice's finalizer, its contents, place and status."""
    left, said = run(server, DrainPolicy.REFUSE)
    assert titles(left) == ["EphemeralStream default/helper", "StreamCopy default/running"]
    assert left[0].where == "StreamStore local, scope in: helper"
    assert left[0].says == "StoreUnavailable: No answer."
    assert left[1].where == "StreamStore local, scope out: what is staged for orders"
    assert left[1].says == ""
    assert (said, server.changes) == ([], [])


def test_a_query_holds_its_driver_and_the_streams_for_viewers(server: FinalizingServer) -> None:
    """The operator deletes live sinks with the query, and lets no driver outlive it."""
    put(server, STREAM_QUERY, "counts", QUERY_FINALIZER)
    live = {"storeRef": {"name": "local"}, "scope": "in", "stream": "viewers"}
    shown = put(server, STREAM_QUERY, "shown", QUERY_FINALIZER)
    shown["spec"]["sinks"].append({"live": live})
    left, _ = run(server, DrainPolicy.REFUSE)
    held = {one.title: one.where for one in left if one.kind == STREAM_QUERY}
    assert held == {
        "StreamQuery default/counts": "its driver",
        "StreamQuery default/shown": "its driver; StreamStore local, scope in: viewers",
    }


@pytest.mark.parametrize("kind", OWN.values(), ids=lambda kind: kind.name)
def test_each_kind_tells_what_it_holds(kind: Kind) -> None:
    """No kind is left out, also of a resource without a spec."""
    assert Holder(kind, {"metadata": {"name": "one", "namespace": "default"}}).where


def test_copies_of_scopes_hold_as_others_do(server: FinalizingServer) -> None:
    """A finished copy with failed streams holds their staged bytes until it is deleted."""
    put(server, SCOPE_COPY, "half", STAGING_FINALIZER, status=DONE)
    put(server, SCOPE_COPY, "fresh")
    put(server, SCOPE_COPY, "whole", status=DONE)
    left, _ = run(server, DrainPolicy.REFUSE)
    (half,) = [one for one in left if one.kind == SCOPE_COPY]
    assert half.title == "ScopeCopy default/half"
    assert half.where == "StreamStore local, scope out: what is staged for its streams"
    operator(server)
    assert run(server, DrainPolicy.DELETE)[0] == []
    kept = [server.body(SCOPE_COPY, name) is not None for name in ("half", "fresh", "whole")]
    assert kept == [False, False, True]


@pytest.mark.parametrize(
    ("kind", "spec", "where"),
    [
        (SCOPE_COPY, ARCHIVED, "archives in backup/in: what is not recorded"),
        (STREAM_ARCHIVE, {"destination": FOLDER}, "archive backup/in: what is not recorded"),
        (
            STREAM_ARCHIVE,
            {"destination": FOLDER, "onDelete": "Delete"},
            "archive backup/in: all runs",
        ),
    ],
)
def test_refusing_tells_of_archives(
    server: FinalizingServer, kind: Kind, spec: dict[str, Any], where: str
) -> None:
    """The message names the archive's place and the part that goes with the resource."""
    put(server, kind, "a", STAGING_FINALIZER, spec=spec)
    (left,) = [one for one in run(server, DrainPolicy.REFUSE)[0] if one.kind == kind]
    assert left.where == f"StreamStore archives, {where}"


SCHEDULED = {
    "source": {"storeRef": {"name": "local"}, "scope": "in", "stream": "orders"},
    "destination": FOLDER,
    "schedule": {"cron": "0 3 * * *"},
}


def test_refusing_tells_of_schedules(server: FinalizingServer) -> None:
    """A schedule at rest has nothing in a store, but its stores are held until it is deleted."""
    put(server, STREAM_ARCHIVE, "nightly", spec=SCHEDULED)
    (left,) = [one for one in run(server, DrainPolicy.REFUSE)[0] if one.kind == STREAM_ARCHIVE]
    assert left.where == "its schedule needs StreamStore archives, local"


def test_orphaning_deletes_schedules(server: FinalizingServer) -> None:
    """Otherwise the operator would hold the schedules' stores again."""
    put(server, STREAM_ARCHIVE, "nightly", spec=SCHEDULED)
    operator(server)
    _, said = run(server, DrainPolicy.ORPHAN, timeout=0.05)
    assert server.body(STREAM_ARCHIVE, "nightly") is None
    assert (
        "DELETED: StreamArchive default/nightly, its schedule needs StreamStore archives, local"
    ) in said


def test_refusing_tells_of_a_prefixs_streams(server: FinalizingServer) -> None:
    """The streams that its status names are listed."""
    spec = {"storeRef": {"name": "local"}, "scope": "in", "streamPrefix": "app-"}
    put(server, EPHEMERAL_STREAM, "a", STREAMS_FINALIZER, spec=spec)
    status = {"streams": ["app-x", "app-y"]}
    put(server, EPHEMERAL_STREAM, "b", STREAMS_FINALIZER, spec=spec, status=status)
    found = {one.name: one.where.partition(": ")[2] for one in run(server, DrainPolicy.REFUSE)[0]}
    assert (found["a"], found["b"]) == ("app-*", "app-x, app-y")


def test_a_store_that_is_held_is_no_news_while_its_users_are(server: FinalizingServer) -> None:
    """A held store is listed alone: without an operator it could never be deleted."""
    for kind, name, finalizer in (
        (EPHEMERAL_STREAM, "helper", STREAMS_FINALIZER),
        (STREAM_COPY, "running", STAGING_FINALIZER),
    ):
        server.free(kind, name, finalizer)
    left, said = run(server, DrainPolicy.REFUSE, timeout=0.01)
    assert titles(left) == ["StreamStore default/local"]
    assert said == ["Still there: 1"]
    operator(server)
    assert run(server, DrainPolicy.REFUSE)[0] == [], "it gets the time to let go"


@pytest.mark.parametrize(
    ("namespaces", "found"), [((), 3), (("other",), 1), (("default", "other"), 3), (("no",), 0)]
)
def test_namespaces_bound_what_is_looked_at(
    server: FinalizingServer, namespaces: tuple[str, ...], found: int
) -> None:
    """None stands for all namespaces."""
    put(server, EPHEMERAL_STREAM, "far", STREAMS_FINALIZER, namespace="other")
    assert len(run(server, DrainPolicy.REFUSE, *namespaces)[0]) == found


def test_what_another_operator_serves_is_its_business(server: FinalizingServer) -> None:
    """A drain neither lists nor deletes another operator's resources."""
    put(server, EPHEMERAL_STREAM, "far", STREAMS_FINALIZER, namespace="other")
    assert len(run(server, DrainPolicy.REFUSE, excluded=("oth*",))[0]) == 2
    assert run(server, DrainPolicy.DELETE, excluded=("oth*", "def*"), timeout=0)[0] == []
    assert server.body(EPHEMERAL_STREAM, "far", "other") is not None


def test_without_definitions_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without the CRDs holds nothing. Any other refusal is an error."""
    server = FinalizingServer()

    async def refuse(*_: object) -> list[Object]:
        raise Refused("no", status=status, why="")

    monkeypatch.setattr(server, "list", refuse)
    status = 404
    assert run(server, DrainPolicy.REFUSE) == ([], [])
    status = 403
    with pytest.raises(ApiUnavailable):
        run(server, DrainPolicy.REFUSE)


def test_deleting_waits_for_the_operator(server: FinalizingServer) -> None:
    """Streams and unfinished copies go, finished copies and stores stay; then all is free."""
    operator(server)
    left, said = run(server, DrainPolicy.DELETE)
    assert left == []
    assert {name for _, _, name in server.objects if not name.endswith(("login", "ated"))} == {
        "done",
        "local",
    }
    assert said[0] == "Still there: 4"
    assert {what for what in server.changes if what[0] == "patch"} == set()


def test_deleting_tells_what_is_left_and_why(server: FinalizingServer) -> None:
    """Without an operator no finalizer is removed: held data must not leak."""
    left, _ = run(server, DrainPolicy.DELETE, timeout=0.05)
    assert titles(left) == ["EphemeralStream default/helper", "StreamCopy default/running"]
    assert all(one.deleting for one in left)
    assert left[0].says == "StoreUnavailable: No answer."
    assert server.finalizers(EPHEMERAL_STREAM, "helper") == [STREAMS_FINALIZER]
    deletes = [name for what, _, name in server.changes if what == "delete"]
    assert sorted(deletes) == ["helper", "new", "running", "waiting"]


def test_deleting_follows_what_is_made_anew(server: FinalizingServer) -> None:
    """A GitOps controller may make a resource again once; the drain deletes it again."""
    operator(server)
    work, again = server.meanwhile, [True]

    def bring_back() -> None:
        work()
        if server.body(EPHEMERAL_STREAM, "helper") is None and again.pop(0) if again else False:
            put(server, EPHEMERAL_STREAM, "helper", STREAMS_FINALIZER)

    server.meanwhile = bring_back
    assert run(server, DrainPolicy.DELETE)[0] == []
    assert not again
    assert server.body(EPHEMERAL_STREAM, "helper") is None


def test_orphaning_goes_through_the_operator(server: FinalizingServer) -> None:
    """The annotation makes the operator release the resource; the drain names the remains."""
    operator(server)
    left, said = run(server, DrainPolicy.ORPHAN)
    assert left == []
    assert [line for line in said if line.startswith("LEFT BEHIND")] == [
        "LEFT BEHIND by EphemeralStream default/helper in StreamStore local, scope in: helper",
        (
            "LEFT BEHIND by StreamCopy default/running in StreamStore local, scope out: "
            "what is staged for orders"
        ),
    ]
    assert server.body(EPHEMERAL_STREAM, "helper") is None
    assert server.body(EPHEMERAL_STREAM, "waiting"), "it holds nothing"
    assert server.body(STREAM_COPY, "new"), "it holds nothing"
    assert [name for what, _, name in server.changes if what == "patch"] == ["helper", "running"]


@pytest.mark.parametrize(("timeout", "quiet"), [(0.0, 30.0), (60.0, 0.01)])
def test_orphaning_needs_no_operator(
    server: FinalizingServer, monkeypatch: pytest.MonkeyPatch, timeout: float, quiet: float
) -> None:
    """If no operator answers, the drain removes the finalizers, of stores and Secrets as well."""
    monkeypatch.setattr(drain, "QUIET_SECONDS", quiet)
    left, said = run(server, DrainPolicy.ORPHAN, timeout=timeout)
    assert left == []
    assert server.body(EPHEMERAL_STREAM, "helper") is None
    assert server.body(STREAM_COPY, "running") is None
    assert server.finalizers(STREAM_STORE, "local") == []
    assert server.finalizers(SECRET, "login") == ["other.example/kept"]
    assert server.finalizers(SECRET, "old-login") == []
    assert server.finalizers(SECRET, "unrelated") == [IN_USE_FINALIZER], "no store names it"
    assert len([line for line in said if line.startswith("LEFT BEHIND")]) == 2
    assert "Secret default/login: sluice.dev/in-use is taken off" in said


def test_orphaning_frees_stores_that_nothing_needs(
    server: FinalizingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the operator ended before it released the store."""
    monkeypatch.setattr(drain, "QUIET_SECONDS", 0.01)
    for kind, name, finalizer in (
        (EPHEMERAL_STREAM, "helper", STREAMS_FINALIZER),
        (STREAM_COPY, "running", STAGING_FINALIZER),
    ):
        server.free(kind, name, finalizer)
    assert run(server, DrainPolicy.ORPHAN)[0] == []
    assert server.finalizers(STREAM_STORE, "local") == []


def test_nothing_is_deleted_before_it_may_leave_things_behind(
    server: FinalizingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the operator would clean up. An annotation that fails is tried again."""
    operator(server)
    patch, busy = server.patch, ["helper", "helper"]

    async def conflict(kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        if name in busy:
            busy.remove(name)
            return None
        return await patch(kind, namespace, name, body)

    monkeypatch.setattr(server, "patch", conflict)
    assert run(server, DrainPolicy.ORPHAN)[0] == []
    assert busy == []
    done = [what for what, _, name in server.changes if name == "helper"]
    assert done == ["patch", "delete"]


def test_what_took_a_name_meanwhile_is_spared(server: FinalizingServer) -> None:
    """Deletions and annotations apply only to the object that was listed."""
    (helper,) = [one for one in run(server, DrainPolicy.REFUSE)[0] if one.name == "helper"]
    put(server, EPHEMERAL_STREAM, "helper", STREAMS_FINALIZER)
    work = Drainer(server.api, Served(), timeout=0, say=print)
    asyncio.run(work._force(helper))
    asyncio.run(work._free(helper))
    body = server.body(EPHEMERAL_STREAM, "helper") or {}
    assert "deletionTimestamp" not in body["metadata"]
    assert FORCE_ORPHAN not in body["metadata"].get("annotations", {})
    assert body["metadata"]["finalizers"] == [STREAMS_FINALIZER]
