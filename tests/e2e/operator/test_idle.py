"""The operator's view of whole copies after the store has evicted them from its memory."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sluice.config import StoreTimeouts
from sluice.core.values.identity import publish_attribute
from sluice.core.values.model import StreamName
from sluice.stores.pravega.names import segment_name
from sluice.stores.pravega.store import PravegaStore
from support.store.idle import in_memory, wait_until_evicted

if TYPE_CHECKING:
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Object, Tenant

EVENTS = 1000
SEALED = "sealed"
ASKED, APPLIED = ("asked", SEALED), ("applied", "sealed-applied")


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_whole_copies_stay_whole_when_the_store_has_forgotten_them(
    tenant: Tenant, scope: str, java: ForeignClient, store: ClusterStore
) -> None:
    """Requested or applied again, whole copies have the same numbers and positions."""
    java.create(scope, "source", segments=2)
    java.write(scope, "source", events=EVENTS, keys=16)
    copies = {name: _copy(tenant, scope, name) for name in ASKED + APPLIED}
    tenant.apply(*copies.values())
    before = {name: _told(tenant, name) for name in copies}
    ids = {name: tenant.status(name)["copyID"] for name in copies}
    for name in APPLIED:
        tenant.run("delete", "scopy", name)
    streams = [StreamName(scope=scope, stream=name) for name in copies]
    with closing(
        PravegaStore(store.host_uri, credentials=None, timeouts=StoreTimeouts())
    ) as client:
        wait_until_evicted(client, [(stream, 0) for stream in streams])
        for stream in streams:
            mark = publish_attribute(ids[stream.stream])
            assert not in_memory(client, segment_name(stream, 0), mark)
    for name in ASKED:
        tenant.annotate(name, "sluice.dev/requestedAt=now")
    tenant.apply(*(copies[name] for name in APPLIED))
    for name in ASKED:
        tenant.until("the request was heard", partial(_was_heard, tenant, name))
    after = {name: _told(tenant, name) for name in copies}
    assert after == before
    assert [tenant.status(name)["attempts"] for name in APPLIED] == [0, 0]


def _copy(tenant: Tenant, scope: str, name: str) -> Object:
    found = tenant.copy_resource(name, f"{scope}/source", f"{scope}/{name}")
    found["spec"]["target"]["sealWhenDone"] = name.startswith(SEALED)
    return found


def _was_heard(tenant: Tenant, name: str) -> bool:
    return bool(tenant.status(name).get("lastHandledRequestedAt") == "now")


def _told(tenant: Tenant, name: str) -> tuple[Object, Object]:
    """Return the facts about a whole target in a copy's status, and its map of positions."""
    status = tenant.until_ready(name)
    assert status["verification"]["events"] == EVENTS
    positions = tenant.get("configmap", status["positionMapRef"]["name"])
    assert positions is not None
    verified = {key: status["verification"][key] for key in ("events", "bytes", "digest")}
    return verified, positions["data"]
