"""What the operator saw of a StreamStore that a resource names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.values.model import StoreAddress
    from sluice.core.values.trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSeen:
    """A StreamStore that a copy names.

    Attributes:
        name: its name.
        address: where it is, from its spec.
        ready: whether it was reached lately.
        why: why it is not ready, for people.
        held: whether it and its Secret have the in-use finalizer.
        deleting: whether somebody has deleted it; it goes when nobody uses it any more.
        refused: why what the copy wants must not be done there; only of a copy that is deleted,
            which clears away what was begun in any case.
    """

    name: str
    address: StoreAddress
    ready: bool = False
    why: str = "It was not looked at yet."
    held: bool = False
    deleting: bool = False
    refused: Trouble | None = None
