"""Deleting what is staged, and never what is being merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values import identity
from sluice.errors import NoSuchSegment, SegmentSealed
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sluice.stores.base import Store


def clear_names(copy_id: str, names: Sequence[Sequence[str]], store: Store) -> int:
    """Delete staging segments by name: the parts of each segment of a plan.

    What they would be published into must be shut. Merging parts is fenced off here, since a
    deletion must never meet a merge of the same segment.

    Returns:
        How many there were.
    """
    attribute = identity.stitch_attribute(copy_id)
    heads = [parts[0] for parts in names if parts]
    # All are looked for in one go: most are gone, and each that is would cost two calls.
    for first, info in zip(heads, store.infos(heads), strict=True):
        if info is not None:
            _fence(store, first, attribute)
    return _delete(store, [name for parts in names for name in parts])


def _fence(store: Store, name: str, attribute: UUID) -> None:
    """Let no more parts be merged into a segment. One that is gone or sealed takes none anyway."""
    while True:
        (value,) = store.attributes([(name, attribute)])
        try:
            if value == identity.ABORTED or store.set_attribute(
                name, CompareAndSet(attribute, value, identity.ABORTED)
            ):
                return
        except (NoSuchSegment, SegmentSealed):
            return


def _delete(store: Store, names: Sequence[str]) -> int:
    """Delete those of the segments that exist."""
    there = [name for name, info in zip(names, store.infos(names), strict=True) if info]
    for name in there:
        store.delete(name)
    return len(there)
