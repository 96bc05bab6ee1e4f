"""Delete staging segments, but never while they are being merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values import identity
from sluice.errors import NoSuchSegment, SegmentSealed
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from sluice.stores.base import Segments


def clear_names(copy_id: str, names: Sequence[Sequence[str]], store: Segments) -> int:
    """Delete staging segments by name.

    The segments that they would be published into must be shut to publishing. Merges of parts are
    fenced off here, since a deletion must never meet a merge of the same segment.

    Args:
        copy_id: the copy.
        names: for each segment of a plan, the names of its parts, the first part first.
        store: the target store.

    Returns:
        How many staging segments were deleted.
    """
    attribute = identity.stitch_attribute(copy_id)
    heads = [parts[0] for parts in names if parts]
    # Look for all of them at once: most are gone, and fencing a missing one would cost two calls.
    for first, info in zip(heads, store.infos(heads), strict=True):
        if info is not None:
            _fence(store, first, attribute)
    return _delete(store, [name for parts in names for name in parts])


def _fence(store: Segments, name: str, attribute: UUID) -> None:
    """Fence off merges of parts into a segment. If it is gone or sealed, it takes none anyway."""
    while True:
        (value,) = store.attributes([(name, attribute)])
        try:
            if value == identity.ABORTED or store.set_attribute(
                name, CompareAndSet(attribute, value, identity.ABORTED)
            ):
                return
        except (NoSuchSegment, SegmentSealed):
            return


def _delete(store: Segments, names: Sequence[str]) -> int:
    """Delete the segments that exist, and return how many there were."""
    there = [name for name, info in zip(names, store.infos(names), strict=True) if info]
    for name in there:
        store.delete(name)
    return len(there)
