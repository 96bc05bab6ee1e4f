"""StreamStores of another namespace: which tenants see them, and for which they are kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.fields.common import StoreRef
from sluice.core.reconcile.shared.store_seen import StoreSeen
from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    NAMESPACE,
    SECRET,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_STORE,
)
from sluice.kube.api.objects import (
    IN_USE_FINALIZER,
    STAGING_FINALIZER,
    STREAMS_FINALIZER,
    goal_of,
    has_finalizer,
    origins_of,
    parse_copy,
)
from sluice.kube.copies.store_access import READS, look_at_store, writes_of
from sluice.kube.loop.queue import Key
from sluice.kube.loop.served import Served
from support.cases.resources import ARCHIVE, COPY, EPHEMERAL, changed
from support.kube.sharing import PLATFORM, REF, TENANT, Sharing, to

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.storeview import FoundStore

SHARED = StoreRef(name="main", namespace=PLATFORM)
KEY = Key(STREAM_STORE.name, PLATFORM, "main")
ADMITTED = {"admittedTime": "2026-11-21T10:00:00Z"}
PLANNED = {"planHash": "a"}


def look(sharing: Sharing, ref: StoreRef = SHARED, **how: Any) -> FoundStore | None:
    """Look up a StreamStore for a tenant's resource."""
    served = how.pop("served", None)
    return asyncio.run(sharing.view(served).look(ref, TENANT, **how))


def keep(sharing: Sharing) -> Object:
    """Let a new operator that has seen all reconcile the StreamStore, and return it."""
    sharing.sync()
    asyncio.run(sharing.keeper().reconcile(KEY))
    return sharing.store()


# -- look-ups


def test_a_store_is_found_by_the_namespace_that_it_is_shared_with() -> None:
    """The result has the grants that name the namespace, and no others."""
    found = look(Sharing(to("other"), to(TENANT, operations=["Read"]), to(TENANT)))
    assert found is not None
    assert (found.seen.namespace, found.seen.name) == (PLATFORM, "main")
    assert found.grants is not None
    assert [grant.operations for grant in found.grants] == [("Read",), None]


@pytest.mark.parametrize("grants", [[], [to("other")], [to(f"{TENANT}-a")], [to(PLATFORM)]])
def test_a_store_that_does_not_admit_is_as_one_that_is_not_there(grants: list[Object]) -> None:
    """The store is not probed either, since the time of a probe could tell."""
    sharing = Sharing(*grants)
    assert look(sharing) is None
    assert look(sharing, StoreRef(name="none", namespace=PLATFORM)) is None
    assert look(sharing, StoreRef(name="main", namespace="nowhere")) is None
    assert sharing.asked == []


def test_a_store_that_cannot_be_read_is_told_to_none_whom_it_never_admitted() -> None:
    """An admitted namespace waits until the store can be read."""
    sharing = Sharing(to(TENANT))
    body = changed(sharing.store(), "spec.pravega.controllerURI", "somewhere")
    sharing.server.put(STREAM_STORE, body)
    assert look(sharing) is None
    with pytest.raises(InvalidSpec):
        look(sharing, admitted=True)


def test_a_namespace_without_its_labels_is_not_admitted() -> None:
    """Without labels the operator cannot identify the namespace."""
    sharing = Sharing(to(TENANT))
    del sharing.server.objects[NAMESPACE.name, None, TENANT]
    assert look(sharing) is None


def test_a_store_of_a_namespace_that_is_not_served_is_not_shared() -> None:
    """Another operator protects it and does not know its users."""
    sharing = Sharing(to(TENANT))
    assert look(sharing, served=Served([TENANT])) is None
    assert look(sharing, served=Served([TENANT, PLATFORM])) is not None


def test_who_was_admitted_finds_the_store_for_its_end() -> None:
    """The result has no grants: no new work may begin there."""
    found = look(Sharing(), admitted=True)
    assert found is not None
    assert found.grants == ()


@pytest.mark.parametrize(
    ("name", "grant", "asked"),
    [
        ("main", TENANT, "Namespace"),
        ("main", "other", "Namespace"),
        ("none", TENANT, "StreamStore"),
    ],
)
def test_a_look_at_another_namespace_is_one_call(
    monkeypatch: pytest.MonkeyPatch, name: str, grant: str, asked: str
) -> None:
    """The StreamStore's existence changes neither load nor time, so neither reveals it."""
    sharing = Sharing(to(grant))
    sharing.sync()
    calls: list[str] = []
    get = sharing.server.get

    async def counted(kind: Any, *place: Any) -> Any:
        calls.append(kind.name)
        return await get(kind, *place)

    monkeypatch.setattr(sharing.server, "get", counted)
    look(sharing, StoreRef(name=name, namespace=PLATFORM))
    assert calls == [asked]


def test_a_namespace_of_ones_own_needs_no_grant() -> None:
    """The reference may name the namespace or leave it out."""
    sharing = Sharing()
    for ref in (SHARED, StoreRef(name="main")):
        found = asyncio.run(sharing.view().look(ref, PLATFORM))
        assert found is not None
        assert found.grants is None


# -- copies


def copied(sharing: Sharing, body: Object = COPY, **meta: Any) -> StoreSeen | Trouble | None:
    """Look at the store of a copy's source, which is the shared one."""
    body = changed(body, "spec.source.storeRef", REF)
    body = body | {"metadata": {"name": "orders", "namespace": TENANT, "uid": "u"} | meta}
    ((field, source),) = origins_of(parse_copy(body))
    how = look_at_store(sharing.view(), body, field, source, READS, eager=False)
    return asyncio.run(how)


def test_a_copy_uses_a_shared_store_from_which_its_driver_mounts_nothing() -> None:
    """The driver runs in the copy's namespace, as any driver."""
    found = copied(Sharing(to(TENANT), login=False))
    assert isinstance(found, StoreSeen)
    assert found.namespace == PLATFORM


@pytest.mark.parametrize("kind", ["StreamCopy", "StreamArchive"])
def test_a_copy_is_refused_where_its_driver_would_need_the_login(kind: str) -> None:
    """A Secret is mounted in its own namespace only, and is not copied."""
    found = copied(Sharing(to(TENANT)), COPY if kind == "StreamCopy" else ARCHIVE)
    assert isinstance(found, Trouble)
    assert (found.reason, found.field) == ("LoginNotShared", "spec.source.storeRef.name")
    assert "login" not in found.message, "the Secret's name is the platform's"


def test_a_grant_may_have_drivers_run_beside_the_login() -> None:
    """Drivers that need no mount run in the namespace of the copy all the same."""
    found = copied(Sharing(to(TENANT, driverNamespace="Store")))
    assert isinstance(found, StoreSeen)
    assert found.hosts
    open_store = copied(Sharing(to(TENANT, driverNamespace="Store"), login=False))
    assert isinstance(open_store, StoreSeen)
    assert not open_store.hosts


@pytest.mark.parametrize(
    "limits",
    [{"operations": ["Create"]}, {"scopes": ["other"]}, {"scopes": ["other-*"]}],
    ids=str,
)
def test_the_grant_that_has_drivers_run_has_to_allow_all_else(limits: dict[str, Any]) -> None:
    """A second grant that allows the rest does not extend to the login."""
    sharing = Sharing(to(TENANT), to(TENANT, driverNamespace="Store", **limits))
    found = copied(sharing)
    assert isinstance(found, Trouble)
    assert found.reason == "LoginNotShared"


def test_no_driver_of_strangers_runs_in_a_volume() -> None:
    """A volume has no borders inside, so the grant does not matter."""
    sharing = Sharing(to(TENANT, driverNamespace="Store"))
    body = changed(sharing.store(), "spec", {"volume": {"claimName": "archives"}})
    body["spec"]["access"] = {"sharedWith": [to(TENANT, driverNamespace="Store")]}
    sharing.server.put(STREAM_STORE, body)
    restore = changed(COPY, "spec.source", {"archive": {"storeRef": REF, "path": "orders"}})
    ((field, source),) = origins_of(parse_copy(restore))
    meta = {"metadata": {"name": "orders", "namespace": TENANT, "uid": "u"}}
    found = asyncio.run(
        look_at_store(sharing.view(), restore | meta, field, source, READS, eager=False)
    )
    assert isinstance(found, Trouble)
    assert found.reason == "LoginNotShared"
    assert "volume" in found.message


def test_a_copy_does_what_its_grant_allows() -> None:
    """The grant's own limits hold beside those of the store."""
    found = copied(Sharing(to(TENANT, operations=["Create"]), login=False))
    assert isinstance(found, Trouble)
    assert found.reason == "AccessDenied"


@pytest.mark.parametrize(
    ("own", "operations", "refused"),
    [
        (False, ["Create", "Append"], True),
        (False, ["Create", "Append", "Delete"], False),
        (False, None, False),
        (True, ["Create", "Append"], False),
    ],
)
def test_only_a_grant_to_delete_lets_retention_remove_runs_of_another_namespace(
    operations: list[str] | None, *, own: bool, refused: bool
) -> None:
    """An archive at a path of the platform's would otherwise drop the platform's runs."""
    sharing = Sharing()
    limits = {} if operations is None else {"operations": operations}
    body = changed(sharing.store(), "spec", {"s3": {"bucket": "archives"}})
    body["spec"]["access"] = limits if own else {"sharedWith": [to(TENANT, **limits)]}
    sharing.server.put(STREAM_STORE, body)
    archive = changed(ARCHIVE, "spec.destination.storeRef", REF)
    meta = {"name": "orders", "namespace": PLATFORM if own else TENANT, "uid": "u"}
    for spec, denied in (({}, False), ({"retention": {"keepLast": 1}}, refused)):
        wanted = archive | {"metadata": meta, "spec": archive["spec"] | spec}
        resource = parse_copy(wanted)
        field, goal = goal_of(resource)
        writes = writes_of(resource, goal, keeps=False, deleted=False)
        how = look_at_store(sharing.view(), wanted, field, goal, writes, eager=False)
        found = asyncio.run(how)
        assert isinstance(found, Trouble) == denied
        if isinstance(found, Trouble):
            assert (found.reason, found.field) == ("AccessDenied", "spec.destination.storeRef.name")
            assert "Delete" in found.message


def test_a_copy_is_told_the_same_of_a_store_that_is_not_there() -> None:
    """The message is the same whether the store exists or not."""
    hidden = copied(Sharing(to("other")))
    sharing = Sharing(to(TENANT))
    sharing.server.destroy(STREAM_STORE, "main", PLATFORM)
    assert isinstance(hidden, Trouble)
    assert hidden == copied(sharing)
    assert hidden.reason == "StoreNotShared"


@pytest.mark.parametrize(("status", "found"), [(PLANNED, True), ({}, False)])
def test_a_deleted_copy_clears_away_what_it_began_while_it_was_admitted(
    status: Object, *, found: bool
) -> None:
    """No other copy finds the store, whatever finalizers it has."""
    body = COPY | {"status": status}
    meta = {"finalizers": [STAGING_FINALIZER], "deletionTimestamp": "2026-11-21T10:00:00Z"}
    seen = copied(Sharing(), body, **meta)
    if not found:
        assert isinstance(seen, Trouble)
        return
    assert isinstance(seen, StoreSeen)
    assert seen.refused is not None
    assert seen.refused.reason == "StoreNotShared"


# -- the protection of stores


def put_user(sharing: Sharing, **status: Any) -> None:
    """Have the tenant make an EphemeralStream with a finalizer."""
    body = changed(EPHEMERAL, "spec.storeRef", REF) | {"status": status}
    sharing.put(EPHEMERAL_STREAM, body, finalizers=[STREAMS_FINALIZER])


def test_a_store_is_held_for_users_in_other_namespaces() -> None:
    """The Secret is held, too. The store's owner sees the namespace of the users."""
    sharing = Sharing(to(TENANT))
    put_user(sharing, **ADMITTED)
    sharing.server.edit(
        STREAM_STORE, "main", PLATFORM, metadata={"finalizers": ["another.example/one"]}
    )
    sharing.server.remove(STREAM_STORE, "main", PLATFORM)
    body = sharing.store()
    assert "deletionTimestamp" in body["metadata"]
    body = keep(sharing)
    assert (body["status"]["inUseBy"], body["status"]["sharedUsers"]) == (1, 1)
    assert f"EphemeralStream {TENANT}/helper" in str(body["status"]["conditions"])


def test_a_user_in_another_namespace_holds_store_and_secret() -> None:
    """This lasts until it has nothing there any more, even without its grant."""
    sharing = Sharing(to(TENANT))
    put_user(sharing, **ADMITTED)
    assert has_finalizer(keep(sharing), IN_USE_FINALIZER)
    sharing.share()
    assert has_finalizer(keep(sharing), IN_USE_FINALIZER), "the grant was withdrawn"
    secret = sharing.server.body(SECRET, "login", PLATFORM)
    assert secret is not None
    assert has_finalizer(secret, IN_USE_FINALIZER)
    sharing.server.destroy(EPHEMERAL_STREAM, "helper", TENANT)
    sharing.mirror.__init__()  # type: ignore[misc]
    body = keep(sharing)
    assert not has_finalizer(body, IN_USE_FINALIZER)
    assert "sharedUsers" not in body["status"]


def test_no_finalizer_of_a_strangers_holds_a_store() -> None:
    """A tenant that was never admitted has nothing in the store."""
    sharing = Sharing(to("other"))
    put_user(sharing)
    body = keep(sharing)
    assert not has_finalizer(body, IN_USE_FINALIZER)
    assert body["status"]["inUseBy"] == 0


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_user_that_the_watches_have_not_shown_keeps_its_store(*, withdrawn: bool) -> None:
    """The operator lists users of all namespaces before it releases a shared store."""
    sharing = Sharing(to(TENANT))
    put_user(sharing, **ADMITTED)
    assert has_finalizer(keep(sharing), IN_USE_FINALIZER)
    if withdrawn:
        sharing.share()
    for _ in range(3):
        sharing.mirror.__init__()  # type: ignore[misc]
        asyncio.run(sharing.keeper().reconcile(KEY))
        assert has_finalizer(sharing.store(), IN_USE_FINALIZER)


def test_a_changed_grant_wakes_those_who_name_the_store() -> None:
    """Users in every namespace are woken, each once, so a withdrawal takes effect at once."""
    sharing = Sharing(to(TENANT))
    put_user(sharing, **ADMITTED)
    archive = changed(ARCHIVE, "spec.destination.storeRef", REF)
    sharing.put(STREAM_ARCHIVE, archive, name="far", namespace="other")
    sharing.put(STREAM_COPY, COPY, name="own")
    users = {
        Key(EPHEMERAL_STREAM.name, TENANT, "helper"),
        Key(STREAM_ARCHIVE.name, "other", "far"),
    }
    sharing.sync()
    keeper = sharing.keeper()
    for share, woken in ((False, users), (False, set()), (True, users), (False, set())):
        if share:
            sharing.share()
        asyncio.run(keeper.reconcile(KEY))
        assert sharing.woken() == woken
