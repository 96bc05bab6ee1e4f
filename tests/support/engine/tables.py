"""Groups of events, for decoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.events.decoding import encoded
from sluice.core.events.grouping import Group
from sluice.core.tables.decoding import Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

ORIGIN = Origin(7, "shop/clicks/7.#epoch.0")


def group_of(events: Sequence[bytes], start: int = 0) -> Group:
    """Return these events as a group that begins at an offset."""
    data = b"".join(map(encoded, events))
    edges = [0]
    for event in events:
        edges.append(edges[-1] + len(encoded(event)))
    return Group(start, data, edges)
