"""The rows of a batch as events, in an order that does not depend on how Spark ran it."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.events.decoding import encoded
from sluice.core.values.text import size
from sluice.errors import ResultTooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluice.core.values.model import Segment

MOST_BLOCK: Final = 8 << 20
"""Bytes that a store takes in one append."""


class Row(NamedTuple):
    """A row of a result.

    Attributes:
        key: the text of its keys, by which it is routed.
        text: the row as JSON.
    """

    key: str
    text: str


class Block(NamedTuple):
    """The rows of a batch that go to one segment.

    Attributes:
        data: their events, with headers.
        events: their number.
    """

    data: bytes
    events: int


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows by key, and by text within a key."""
    return sorted(rows)


def digest(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of the rows' events, in hexadecimal digits."""
    whole = hashlib.sha256()
    for row in rows:
        whole.update(encoded(row.text.encode()))
    return whole.hexdigest()


def blocks(
    rows: Sequence[Row], segments: Sequence[Segment], place_of: Callable[[str], float]
) -> dict[int, Block]:
    """Return the block of each segment that gets rows, by the segment's id.

    Args:
        rows: the rows of a batch, in their order.
        segments: the segments of a stream, by key range.
        place_of: gives the place of a routing key in [0, 1).

    Raises:
        ResultTooLarge: a block is larger than a store takes at once.
    """
    edges = [one.keys.low for one in segments]
    parts: defaultdict[int, list[bytes]] = defaultdict(list)
    for row in rows:
        at = bisect_right(edges, place_of(row.key)) - 1
        parts[segments[max(at, 0)].id].append(encoded(row.text.encode()))
    found = {number: Block(b"".join(part), len(part)) for number, part in parts.items()}
    largest = max((len(block.data) for block in found.values()), default=0)
    if largest > MOST_BLOCK:
        raise ResultTooLarge(
            f"a batch has {size(largest)} for one segment, and a store takes {size(MOST_BLOCK)}"
            " at once",
            field="spec.limits.batchBytes",
        )
    return found
