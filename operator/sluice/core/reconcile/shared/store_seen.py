"""A StreamStore that a resource names, as the operator saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.core.values.trouble import Trouble


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
