"""Protect StreamStores and their Secrets from deletion while data in the store needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.errors import StoreNotReady
from sluice.kube.api import finalizers
from sluice.kube.api.kinds import SECRET, STREAM_STORE
from sluice.kube.api.objects import IN_USE_FINALIZER
from sluice.kube.stores.keys import secret_names

if TYPE_CHECKING:
    from sluice.core.reconcile.shared.store_seen import StoreSeen
    from sluice.kube.api.client import Api


async def hold(api: Api, store: StoreSeen, *, field: str, hold_secrets: bool) -> None:
    """Put the in-use finalizer on a StreamStore and its Secrets.

    Args:
        api: the API server.
        store: the StreamStore. Its Secrets are in its namespace.
        field: the field of the spec that names the store, for the error.
        hold_secrets: whether the operator may hold Secrets.

    Raises:
        StoreNotReady: one of them is gone or being deleted.
    """
    namespace = store.namespace
    if not await finalizers.add(api, STREAM_STORE, namespace, store.name, IN_USE_FINALIZER):
        raise StoreNotReady(f"StreamStore {store.name!r} is being deleted", field=field)
    for name in sorted(secret_names(store.address) if hold_secrets else ()):
        if not await finalizers.add(api, SECRET, namespace, name, IN_USE_FINALIZER):
            raise StoreNotReady(
                f"the Secret {name!r} of StreamStore {store.name!r} is being deleted", field=field
            )
