from __future__ import annotations

from collections.abc import Iterable, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from kopf import Resource

from sluice.api.registry import KINDS
from sluice.handlers.watches import Watches, registry, settings
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import EPHEMERAL_STREAM, JOB, POD, SCOPE_COPY, STREAM_COPY, STREAM_STORE
from sluice.kube.api.names import COPY_ANNOTATION, MANAGED, UID_LABEL
from sluice.kube.loop.queue import Key, Lane, WorkQueue
from support.cases.resources import COPY, EPHEMERAL, SCOPE, STORE, changed

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

ORDERS = Key("StreamCopy", "team", "orders")
SHOP = Key("ScopeCopy", "team", "shop")
LOCAL = Key("StreamStore", "team", "local")


class Bench:
    """Watches, and the keys that they have put into the queue."""

    def __init__(self) -> None:
        self.queue, self.mirror = WorkQueue(), Mirror()
        self.watches = Watches(self.queue, self.mirror)

    def see(self, kind: Kind, body: Object, *, gone: bool = False) -> dict[Key, Lane]:
        """Show an object, and return the woken keys with their lanes."""
        for lane in Lane:
            self.queue._lanes[lane].at.clear()
            self.queue._lanes[lane].due.clear()
        if kind in {STREAM_COPY, SCOPE_COPY, STREAM_STORE}:
            self.watches.resource(kind, body, gone=gone)
        else:
            self.watches.child(kind, body, gone=gone)
        return {key: lane for lane in Lane for key in self.queue._lanes[lane].at}


def copy(**meta: Any) -> Object:
    """Return a StreamCopy with this metadata."""
    own = {"name": "orders", "namespace": "team", "uid": "u", "generation": 1} | meta
    return COPY | {"metadata": own}


def scope(**meta: Any) -> Object:
    """Return a ScopeCopy with this metadata."""
    own = {"name": "shop", "namespace": "team", "uid": "v", "generation": 1} | meta
    return SCOPE | {"metadata": own}


def hosted(**meta: Any) -> Object:
    """Return a pod of the copy in the namespace of a StreamStore."""
    own = {"name": "pod", "namespace": "platform", "labels": {UID_LABEL: "u"}}
    return {"metadata": own | {"annotations": {COPY_ANNOTATION: "StreamCopy/team/orders"}} | meta}


def test_a_driver_in_the_namespace_of_a_store_wakes_its_copy() -> None:
    """The operator must have recorded that it runs there: pods of strangers cause no work."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    assert bench.see(POD, hosted()) == {}
    bench.see(STREAM_COPY, copy() | {"status": {"driverNamespace": "platform"}})
    assert bench.see(POD, hosted()) == {ORDERS: Lane.NORMAL}
    assert bench.see(POD, hosted(), gone=True) == {ORDERS: Lane.NORMAL}
    forged = {COPY_ANNOTATION: "ScopeCopy/team/orders"}
    for meta in ({"namespace": "evil"}, {"labels": {UID_LABEL: "v"}}, {"annotations": forged}):
        assert bench.see(POD, hosted(**meta)) == {}


def store() -> Object:
    """Return a StreamStore."""
    return STORE | {"metadata": {"name": "local", "namespace": "team", "uid": "s"}}


def child(uid: str | None) -> Object:
    """Return a Job or a pod with this label."""
    meta: Object = {"name": "x", "namespace": "team", "uid": "c"}
    return {"metadata": meta | ({} if uid is None else {"labels": {UID_LABEL: uid}})}


def test_a_new_copy_is_looked_at_and_its_stores_with_it() -> None:
    """A store has to know the resources for which it is held."""
    assert Bench().see(STREAM_COPY, copy()) == {ORDERS: Lane.NORMAL, LOCAL: Lane.NORMAL}


@pytest.mark.parametrize(
    ("access", "admitted", "woken"),
    [
        ({"sharedWith": [{"selector": {"matchLabels": {"a": "b"}}}]}, False, True),
        ({}, True, True),
        ({}, False, False),
        ({"scopes": ["a"]}, False, False),
        (None, False, False),
    ],
)
def test_a_store_of_another_namespace_is_looked_at_if_it_is_shared(
    access: Object | None, *, admitted: bool, woken: bool
) -> None:
    """A resource that names a stranger's or a missing StreamStore causes no work for it."""
    bench = Bench()
    far = changed(copy(), "spec.target.storeRef", {"name": "main", "namespace": "platform"})
    far |= {"status": {"planHash": "h"}} if admitted else {}
    meta = {"name": "main", "namespace": "platform", "uid": "s"}
    meta |= {"finalizers": ["sluice.dev/in-use"]}
    if access is not None:
        bench.see(STREAM_STORE, changed(STORE, "spec.access", access) | {"metadata": meta})
    main = Key("StreamStore", "platform", "main")
    assert (main in bench.see(STREAM_COPY, far)) is woken


def test_a_store_is_looked_at_alone() -> None:
    """The look at the store decides whether its copies are woken."""
    assert Bench().see(STREAM_STORE, store()) == {LOCAL: Lane.NORMAL}


def test_our_own_status_wakes_nobody() -> None:
    """Otherwise each write would cause a look, for ever."""
    bench = Bench()
    bench.see(STREAM_COPY, copy(resourceVersion="1"))
    conditions = [{"type": "Ready", "status": "True", "message": "long"}]
    status = {"attempts": 1, "planHash": "h", "conditions": conditions}
    written = copy(resourceVersion="2", managedFields=[{}]) | {"status": status}
    assert bench.see(STREAM_COPY, written) == {}
    kept = {"planHash": "h", "conditions": [{"type": "Ready", "status": "True"}]}
    assert bench.mirror.get(STREAM_COPY, "team", "orders") == (
        copy(resourceVersion="2") | {"status": kept}
    )


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 2},
        {"uid": "another"},
        {"finalizers": ["sluice.dev/staging"]},
        {"annotations": {"sluice.dev/requestedAt": "now"}},
    ],
)
def test_what_can_change_a_decision_wakes(change: dict[str, Any]) -> None:
    """These are the spec, annotations and finalizers."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    assert ORDERS in bench.see(STREAM_COPY, copy(**change))


def test_a_deletion_goes_to_its_own_lane() -> None:
    """This holds for any amount of other work."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    leaving = copy(deletionTimestamp="2026-01-02T03:04:05Z")
    assert bench.see(STREAM_COPY, leaving)[ORDERS] is Lane.DELETION


def test_a_copy_that_is_gone_wakes_its_stores() -> None:
    """The stores may be deleted now."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    assert LOCAL in bench.see(STREAM_COPY, copy(), gone=True)
    assert bench.mirror.get(STREAM_COPY, "team", "orders") is None


OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}


@pytest.mark.parametrize(
    ("spec", "references", "later"),
    [
        ({}, [], False),
        ({}, [OWNER | {"uid": "o"}], True),
        ({}, [OWNER | {"uid": "o", "name": "another"}], False),
        ({"tracking": "Observe"}, [OWNER | {"uid": "o"}], False),
        ({"releaseWhen": "OwnersFinished"}, [OWNER | {"uid": "o"}], False),
    ],
)
def test_an_owner_wakes_what_names_it(
    spec: dict[str, Any], references: list[Object], *, later: bool
) -> None:
    """It does so at once, or later if the garbage collector may delete the resource first."""
    bench = Bench()
    meta = {"name": "eps", "namespace": "team", "uid": "e", "ownerReferences": references}
    body = EPHEMERAL | {"metadata": meta, "spec": EPHEMERAL["spec"] | {"owners": [OWNER]} | spec}
    bench.mirror.see(EPHEMERAL_STREAM, body, gone=False)
    bench.watches.owner("apps/v1", "Deployment", "team", "app")
    assert len(bench.queue._lanes[Lane.NORMAL].at) == 1
    assert bench.queue.depth(Lane.NORMAL) == (0 if later else 1)


def test_a_job_or_a_pod_wakes_its_copy() -> None:
    """The label has the copy's uid. Other Jobs and pods wake no resource."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    for kind in (JOB, POD):
        assert bench.see(kind, child("u")) == {ORDERS: Lane.NORMAL}
        assert bench.see(kind, child("u"), gone=True) == {ORDERS: Lane.NORMAL}
        assert bench.see(kind, child("former")) == {}
        assert bench.see(kind, child(None)) == {}


def test_a_copy_of_a_scope_is_looked_at_as_any_other() -> None:
    """Its own Job and pods wake it, and so do changes of it. Its stores are checked, too."""
    bench = Bench()
    bench.see(STREAM_COPY, copy())
    assert bench.see(SCOPE_COPY, scope()) == {SHOP: Lane.NORMAL, LOCAL: Lane.NORMAL}
    for kind in (JOB, POD):
        assert bench.see(kind, child("v")) == {SHOP: Lane.NORMAL}
        assert bench.see(kind, child("u")) == {ORDERS: Lane.NORMAL}
    asked = scope(annotations={"sluice.dev/requestedAt": "now"})
    assert SHOP in bench.see(SCOPE_COPY, asked)
    leaving = scope(deletionTimestamp="2026-01-02T03:04:05Z")
    assert bench.see(SCOPE_COPY, leaving)[SHOP] is Lane.DELETION


def test_the_watches_write_nothing() -> None:
    """The operator itself writes finalizers, annotations and events."""
    handlers = registry(Bench().watches)
    selectors = [handler.selector for handler in handlers._watching.get_all_handlers()]
    watched = {str(selector.any_name) for selector in selectors if selector is not None}
    ours = {kind.plural for kind in KINDS}
    assert watched == {*ours, "jobs", "pods"}
    assert len(ours) == 6
    assert not [*handlers._changing.get_all_handlers(), *handlers._spawning.get_all_handlers()]
    found = settings()
    assert found.posting.enabled is False
    assert found.scanning.disabled is True


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(JOB, [MANAGED]), (POD, [MANAGED]), (STREAM_COPY, []), (STREAM_STORE, [])],
)
def test_the_server_leaves_out_what_others_run(kind: Kind, expected: list[str]) -> None:
    """The operator hears only of its own pods and Jobs."""
    resource = Resource(kind.group, kind.version, kind.plural, preferred=True)
    assert list(settings().watching.label_selectors.collect(resource)) == expected


def test_a_watch_that_hangs_is_ended() -> None:
    """Each wait for the API server has an end."""
    found = settings()
    watching, networking = found.watching, found.networking
    assert watching.server_timeout is not None
    assert watching.client_timeout is not None
    assert watching.server_timeout < watching.client_timeout < 600
    assert networking.request_timeout is not None
    assert networking.request_timeout <= 30


def test_watching_is_never_given_up() -> None:
    """There is always another try, and a soon one, for an API server that is away for long."""
    backoffs = settings().networking.error_backoffs
    assert isinstance(backoffs, Iterable)
    assert not isinstance(backoffs, Sized)
    waits = [*islice(backoffs, 10_000)]
    assert len(waits) == 10_000
    assert max(waits) <= 15
