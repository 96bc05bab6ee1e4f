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

USUAL_BLOCK: Final = 7 << 20
"""Bytes of the largest block of a new batch. In a repeated one, numbers may have more digits."""


class ResultRow(NamedTuple):
    """A row of a result.

    Attributes:
        key: the text of its keys, by which it is routed.
        text: the row as JSON.
    """

    key: str
    text: str


class RowBlock(NamedTuple):
    """Rows of a batch that go to one segment, and are appended at once.

    Attributes:
        data: their events, with headers.
        events: their number.
    """

    data: bytes
    events: int


def in_order(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return the rows by key, and by text within a key."""
    return sorted(rows)


def digest(rows: Iterable[ResultRow]) -> str:
    """Return the SHA-256 of the rows' events, in hexadecimal digits."""
    whole = hashlib.sha256()
    for row in rows:
        whole.update(encoded(row.text.encode()))
    return whole.hexdigest()


def keys_digest(rows: Iterable[ResultRow]) -> str:
    """Return the SHA-256 of the rows' keys, in hexadecimal digits.

    Rows with equal keys in equal order go to the same segments in the same order, even if sums of
    floating-point numbers in them differ in their last digits.
    """
    whole = hashlib.sha256()
    for row in rows:
        whole.update(encoded(row.key.encode()))
    return whole.hexdigest()


def part_rows(
    rows: Sequence[ResultRow], segments: Sequence[Segment], place_of: Callable[[str], float]
) -> int:
    """Return the most rows of a segment that are appended at once.

    Args:
        rows: the rows of a batch, in their order.
        segments: the segments of a stream, by key range.
        place_of: gives the place of a routing key in [0, 1).

    Raises:
        ResultTooLarge: a row is larger than a store takes at once.
    """
    routed = _routed(rows, segments, place_of).values()
    most = max((len(events) for events in routed), default=1)
    while any(
        sum(map(len, events[at : at + most])) > USUAL_BLOCK
        for events in routed
        for at in range(0, len(events), most)
    ):
        if most == 1:
            longest = max(len(event) for events in routed for event in events)
            raise ResultTooLarge(
                f"a row has {size(longest)}, and a store takes {size(MOST_BLOCK)} at once"
            )
        most = (most + 1) // 2
    return most


def blocks(
    rows: Sequence[ResultRow],
    segments: Sequence[Segment],
    place_of: Callable[[str], float],
    most: int,
) -> dict[int, list[RowBlock]]:
    """Return the blocks of each segment that gets rows, by the segment's id.

    Args:
        rows: the rows of a batch, in their order.
        segments: the segments of a stream, by key range.
        place_of: gives the place of a routing key in [0, 1).
        most: the most rows in a block.
    """
    return {
        number: [
            RowBlock(b"".join(events[at : at + most]), len(events[at : at + most]))
            for at in range(0, len(events), most)
        ]
        for number, events in _routed(rows, segments, place_of).items()
    }


def _routed(
    rows: Sequence[ResultRow], segments: Sequence[Segment], place_of: Callable[[str], float]
) -> dict[int, list[bytes]]:
    """Return the events of each segment, by its id."""
    edges = [segment.keys.low for segment in segments]
    routed: defaultdict[int, list[bytes]] = defaultdict(list)
    for row in rows:
        at = bisect_right(edges, place_of(row.key)) - 1
        routed[segments[max(at, 0)].id].append(encoded(row.text.encode()))
    return routed
