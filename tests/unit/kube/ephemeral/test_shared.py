"""EphemeralStreams in StreamStores of another namespace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.core.claims.claim import Holding, Ownership
from sluice.core.reconcile.ephemeral.decide import reconcile_ephemeral
from sluice.core.reconcile.ephemeral.world import Make, OwnerSeen, Protect, Release
from sluice.engine.claims import claims
from sluice.errors import StoreNotFound
from sluice.kube.api.kinds import EPHEMERAL_STREAM, STREAM_STORE
from sluice.kube.api.objects import STREAMS_FINALIZER
from sluice.kube.ephemeral.observer import EphemeralObserver
from support.cases.resources import EPHEMERAL, changed
from support.kube.sharing import PLATFORM, REF, TENANT, Sharing, to
from support.reconcile.ephemerals import message, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.kinds.ephemeralstream import Owner
    from sluice.core.reconcile.ephemeral.world import EphemeralDecision
    from sluice.core.values.model import StoreAddress
    from sluice.kube.api.kinds import Object
    from sluice.kube.ephemeral.observer import EphemeralSituation
    from sluice.kube.ephemeral.owners import Owners
    from sluice.kube.stores.connections import Connections

ADMITTED = {"admittedTime": "2026-11-21T10:00:00Z", "createdMilliseconds": 5, "streams": ["helper"]}
DELETED = {"deletionTimestamp": "2026-11-21T10:00:00Z"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}


class Looking:
    """An observer of EphemeralStreams, its connections and its owners.

    Attributes:
        sharing: the cluster.
        opened: the namespaces and addresses of connections.
        watched: the namespaces of watched owners.
    """

    def __init__(self, sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sharing = sharing
        self.opened: list[tuple[str, StoreAddress]] = []
        self.watched: list[str] = []
        self._observer = EphemeralObserver(
            sharing.server.api,
            sharing.mirror,
            cast("Owners", self),
            sharing.view(),
            cast("Connections", self),
            cluster="c",
            threads=cast("Any", None),
        )
        self._observer.blocking = cast("Any", _at_once)
        held = Holding(scope=True, ownership=Ownership.OURS, streams=("helper",), created=5)
        monkeypatch.setattr(claims, "look", lambda *_: held)

    async def get(self, namespace: str, address: StoreAddress) -> object:
        """See Connections.get."""
        self.opened.append((namespace, address))
        return object()

    async def look(self, _: Owner, namespace: str) -> OwnerSeen:
        """See Owners.look."""
        self.watched.append(namespace)
        return OwnerSeen(uid="owner")

    confirm = look

    def at(self, **given: Any) -> EphemeralSituation:
        """Put the tenant's EphemeralStream with these fields, and look at it."""
        body = changed(EPHEMERAL, "spec.storeRef", REF)
        meta = {"creationTimestamp": "2026-11-21T10:00:00Z", "uid": "u", **given.pop("meta", {})}
        body = body | {"status": given.pop("status", {})}
        for path, value in given.items():
            body = changed(body, f"spec.{path}", value)
        body = self.sharing.put(EPHEMERAL_STREAM, body, **meta)
        self.sharing.sync()
        return asyncio.run(self._observer.look(body))

    def store(self, situation: EphemeralSituation) -> object:
        """Connect to the store of the EphemeralStream."""
        return asyncio.run(self._observer.store(situation))


async def _at_once(call: Callable[[], object]) -> object:
    return call()


def decided(situation: EphemeralSituation) -> EphemeralDecision:
    """Return the decision about an EphemeralStream."""
    return reconcile_ephemeral(situation.seen, situation.world)


def older() -> Object:
    """Return an older EphemeralStream of the platform, which has the stream."""
    meta = {
        "name": "older",
        "namespace": PLATFORM,
        "uid": "a",
        "creationTimestamp": "2026-11-20T10:00:00Z",
        "finalizers": [STREAMS_FINALIZER],
    }
    body = changed(EPHEMERAL, "spec.storeRef", {"name": "main"})
    return body | {"metadata": meta, "status": {"streams": ["helper"]}}


def test_a_shared_store_is_used_with_the_keys_of_its_own_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator opens it. The status then records that the resource was admitted."""
    looking = Looking(Sharing(to(TENANT)), monkeypatch)
    found = looking.at()
    assert [(namespace, one.secret) for namespace, one in looking.opened] == [(PLATFORM, "login")]
    decision = decided(found)
    assert said(decision) == ("True", "Claimed")
    assert decision.actions == (Protect(),)
    assert decision.status.admitted_time is not None
    assert found.world.store is not None
    assert found.world.store.namespace == PLATFORM


def test_one_that_does_more_than_its_grant_is_denied_and_not_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator opens no connection.

    The status records no admission, which would hold the store.
    """
    looking = Looking(Sharing(to(TENANT, scopes=["out"])), monkeypatch)
    decision = decided(looking.at())
    assert said(decision) == ("False", "AccessDenied")
    assert decision.status.admitted_time is None
    assert looking.opened == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"owners": [OWNER]},
        {"maxAgeSeconds": 1},
        {"meta": {"finalizers": [STREAMS_FINALIZER]}},
        {"meta": {"finalizers": [STREAMS_FINALIZER], **DELETED}},
        {"meta": {"finalizers": [STREAMS_FINALIZER], **DELETED}, "onRelease": "Retain"},
        {"owners": [{**OWNER, "namespace": PLATFORM}], "tracking": "Observe"},
    ],
)
def test_a_stranger_is_told_the_same_whether_a_store_is_there(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds if the platform has the wanted stream, and for a forged finalizer."""
    told = set()
    for there in (True, False):
        looking = Looking(Sharing(to("other")), monkeypatch)
        looking.sharing.server.put(EPHEMERAL_STREAM, older())
        if not there:
            looking.sharing.server.destroy(STREAM_STORE, "main", PLATFORM)
        found = looking.at(**given)
        decision = decided(found)
        status = decision.status.model_copy(update={"conditions": ()})
        conditions = [
            (one.type, one.status, one.reason, one.message) for one in decision.status.conditions
        ]
        words = (conditions, status.model_dump_json(exclude={"release"}), decision.again)
        told.add(str((words, [type(one) for one in decision.actions])))
        with pytest.raises(StoreNotFound):
            looking.store(found)
        assert looking.opened == []
        assert PLATFORM not in looking.watched
    assert len(told) == 1, told


def test_what_was_made_stays_when_the_grant_is_withdrawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No stream is made, changed or deleted any more."""
    looking = Looking(Sharing(), monkeypatch)
    decision = decided(looking.at(status=ADMITTED, meta={"finalizers": [STREAMS_FINALIZER]}))
    assert said(decision) == ("Unknown", "StoreNotShared")
    assert message(decision).startswith(
        "spec.storeRef.name: no StreamStore 'platform/main' is shared with this namespace. "
    )
    assert decision.actions == ()
    assert decision.status.streams == ("helper",)


@pytest.mark.parametrize("status", [ADMITTED, {}])
def test_who_was_admitted_once_lets_go_of_his_streams_when_he_is_deleted(
    status: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is reachable for this, though the grant is withdrawn.

    Other tenants do not reach it.
    """
    looking = Looking(Sharing(), monkeypatch)
    found = looking.at(status=status, meta={"finalizers": [STREAMS_FINALIZER], **DELETED})
    assert Release(delete=True) in decided(found).actions
    if status:
        looking.store(found)
        assert [namespace for namespace, _ in looking.opened] == [PLATFORM]
    else:
        with pytest.raises(StoreNotFound):
            looking.store(found)


def test_a_release_goes_on_when_the_grant_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners that are gone do not need the streams, with or without a grant."""
    release = {"reason": "OwnersDeleted", "time": "2026-11-21T10:00:00Z"}
    looking = Looking(Sharing(), monkeypatch)
    found = looking.at(
        status=ADMITTED | {"release": release}, meta={"finalizers": [STREAMS_FINALIZER]}
    )
    assert decided(found).actions == (Release(delete=True),)


def test_nothing_is_made_in_the_name_of_an_earlier_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that was deleted meanwhile is not made again."""
    looking = Looking(Sharing(), monkeypatch)
    monkeypatch.setattr(claims, "look", lambda *_: Holding(scope=True))
    found = looking.at(status=ADMITTED, meta={"finalizers": [STREAMS_FINALIZER]})
    assert Make() not in decided(found).actions


def test_without_a_store_no_owner_of_another_namespace_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resource was not admitted. An owner that existed counts as present."""
    looking = Looking(Sharing(), monkeypatch)
    owners = [{**OWNER, "namespace": "other"}, OWNER]
    for ref in ({"name": "none"}, REF):
        found = looking.at(owners=owners, tracking="Observe", storeRef=ref)
        assert looking.watched == [TENANT]
        assert found.world.owners[0].trouble is not None
        assert found.world.owners[1].uid == "owner"
        looking.watched.clear()
