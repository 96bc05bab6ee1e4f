"""Protect StreamStores and their Secrets from deletion while data in the store needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.errors import StoreNotReady
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import SECRET, STREAM_STORE
from sluice.kube.api.objects import IN_USE_FINALIZER

if TYPE_CHECKING:
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.kube.api.client import Api


async def hold(api: Api, store: StoreSeen, *, field: str, secret: bool) -> None:
    """Put the in-use finalizer on a StreamStore and its Secret.

    Args:
        api: the API server.
        store: the StreamStore. Its Secret is in its namespace.
        field: the field of the spec that names the store, for the error.
        secret: whether the operator may hold Secrets.

    Raises:
        StoreNotReady: one of the two is gone or being deleted.
    """
    namespace = store.namespace
    if not await finalizers.add(api, STREAM_STORE, namespace, store.name, IN_USE_FINALIZER):
        raise StoreNotReady(f"StreamStore {store.name!r} is being deleted", field=field)
    name = store.address.secret if secret else None
    if name is not None and not await finalizers.add(
        api, SECRET, namespace, name, IN_USE_FINALIZER
    ):
        raise StoreNotReady(
            f"the Secret {name!r} of StreamStore {store.name!r} is being deleted", field=field
        )
