"""A StreamStore that a resource names, as the operator saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.values.trouble import Trouble
from sluice.errors import AccessDenied, StoreNotFound, StoreNotReady

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSeen:
    """A StreamStore that a resource names.

    Attributes:
        namespace: its namespace, which may be another one than the resource's.
        name: its name.
        address: the address in its spec.
        ready: whether it was reached lately.
        why: why it is not ready, for people.
        denied: why the operator may not open it, if so: the administrator does not allow its
            address, or its Secret does not consent.
        held: whether it and its Secret have the in-use finalizer.
        deleting: whether it was deleted; it stays until no resource uses it any more.
        hosts: whether the copy's drivers have to run in its namespace, which is not the copy's:
            they mount its login or its certificates, and a grant allows that.
        refused: why the copy may not use the store. Set only for a copy that is being deleted,
            which still clears away what it began there.
    """

    namespace: str
    name: str
    address: StoreAddress
    ready: bool = False
    why: str = "It was not looked at yet."
    denied: Trouble | None = None
    held: bool = False
    deleting: bool = False
    hosts: bool = False
    refused: Trouble | None = None


def store_trouble(
    field: str, name: str, store: StoreSeen | Trouble | None, *, begun: bool
) -> Trouble | None:
    """Tell why a StreamStore cannot be used; None if it can.

    Args:
        field: the field that names it.
        name: its name, with its namespace if that is given.
        store: how it was seen; None if there is none, a Trouble if the resource may not use it.
        begun: whether the resource has something in it, and so may use it while it is deleted.
    """
    if store is None:
        return Trouble.of(StoreNotFound(f"there is no StreamStore {name!r}", field=field))
    if isinstance(store, Trouble):
        return store
    if store.deleting and not begun:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r} is being deleted", field=field))
    if store.denied is not None:
        why, remedy = store.denied.message, store.denied.remedy
        return Trouble.of(AccessDenied(f"StreamStore {name!r}: {why}", field=field, remedy=remedy))
    if not store.ready:
        return Trouble.of(StoreNotReady(f"StreamStore {name!r}: {store.why}", field=field))
    return None
