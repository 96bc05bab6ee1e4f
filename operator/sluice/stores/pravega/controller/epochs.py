"""A stream's epochs: each scale event ends an epoch and replaces segments by others.

A segment's id has the epoch that made it in the high bits, and a number that counts on through all
epochs in the low ones. A transaction that is committed after a scale event makes two epochs, whose
segments keep their numbers.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Final

from sluice.errors import ProtocolError, StreamNotFound
from sluice.stores.pravega import names
from sluice.stores.pravega.bounds import MOST_EPOCHS, MOST_MADE
from sluice.stores.reading import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.values.model import KeyRange, Segment, StreamConfig, StreamName
    from sluice.stores.pravega.controller.controller import ControllerClient

_AT_ONCE: Final = 32
"""Epochs that are asked for side by side."""


def following(segments: Sequence[int], made: Sequence[Sequence[KeyRange]]) -> list[tuple[int, ...]]:
    """Return the ids that requested scale events will give to the segments that they make.

    Args:
        segments: the ids of the stream's latest segments, all made by one epoch.
        made: for each of the next epochs, the key ranges in the order of the request.

    Returns:
        For each of these epochs the ids, in the order of its key ranges.
    """
    epoch = max(map(names.epoch_of, segments))
    number = max(map(names.number_of, segments))
    ids = []
    for ranges in made:
        epoch += 1
        places = _numbered([one.low for one in ranges])
        ids.append(tuple(names.segment_id(epoch, number + 1 + place) for place in places))
        number += len(ranges)
    return ids


def _numbered(edges: Sequence[float]) -> list[int]:
    """Return the place, from 0, at which the controller numbers the segment of each lower edge.

    The controller puts the requested ranges into a Java HashMap by their lower edges, and numbers
    the segments in the map's order. (When it scales by itself, it numbers them by their keys.) With
    more than 48 segments this can be wrong, since the map may then turn buckets into trees.
    """
    size = 16
    while 4 * len(edges) > 3 * size:
        size *= 2

    def bucket(edge: float) -> int:
        high, low = struct.unpack(">II", struct.pack(">d", edge))
        mixed: int = high ^ low
        return (mixed ^ mixed >> 16) % size

    order = sorted(range(len(edges)), key=lambda i: bucket(edges[i]))
    return [order.index(i) for i in range(len(edges))]


def since(
    head: Sequence[Segment], made: Iterable[Sequence[Segment]]
) -> tuple[tuple[Segment, ...], ...]:
    """Return the head, then the segments that each later epoch made from it.

    A head may have segments of several epochs, where some keys are truncated further than others.
    Segments that are older than the head at their keys are left out.

    Args:
        head: the segments that hold the oldest readable bytes.
        made: the segments that each epoch after the head's oldest one made, in order.
    """
    now, found = list(head), [tuple(head)]
    for segments in made:
        new = [
            segment
            for segment in segments
            if not any(
                names.epoch_of(other.id) >= names.epoch_of(segment.id)
                and other.keys.overlaps(segment.keys)
                for other in now
            )
        ]
        if not new:
            continue
        now = [one for one in now if not any(one.keys.overlaps(other.keys) for other in new)]
        now += new
        found.append(tuple(sorted(new, key=lambda segment: segment.id)))
    return tuple(found)


async def generations(
    controller: ControllerClient, name: StreamName, begin: Sequence[Segment] = ()
) -> tuple[tuple[Segment, ...], ...]:
    """Return the segments from head to tail, by scale events. StreamNotFound.

    Epochs also list segments that are truncated away, so `begin` may lie before the head.
    """
    stream = await describe(controller, name)
    if stream is None:
        raise StreamNotFound(f"there is no stream {name}")
    head = begin or stream.head
    first = min(names.epoch_of(segment.id) for segment in head)
    last = max(names.epoch_of(segment.id) for segment in stream.tail)
    if last - first > MOST_EPOCHS:
        raise _too_many(name, last - first)

    async def made(epoch: int) -> list[Segment]:
        segments = await controller.epoch_segments(name, epoch)
        return [segment for segment in segments if names.epoch_of(segment.id) == epoch]

    later: list[list[Segment]] = []
    count = 0
    for begun in range(first + 1, last + 1, _AT_ONCE):
        some = range(begun, min(begun + _AT_ONCE, last + 1))
        later += await asyncio.gather(*map(made, some))
        count += sum(map(len, later[-len(some) :]))
        if count > MOST_MADE:
            raise ProtocolError(f"the controller told more than {MOST_MADE} segments of {name}")
    return since(head, later)


def _too_many(name: StreamName, epochs: int) -> ProtocolError:
    return ProtocolError(f"the controller told {epochs} epochs of {name}, more than streams have")


async def had(controller: ControllerClient, name: StreamName, segment: int) -> bool:
    """Tell whether a stream has or had a segment. Epochs also list truncated segments."""
    try:
        made = await controller.epoch_segments(name, names.epoch_of(segment))
    except StreamNotFound:
        return False
    return any(one.id == segment for one in made)


async def configuration(controller: ControllerClient, name: StreamName) -> StreamConfig | None:
    """Return a stream's configuration; None if there is no stream."""
    # A stream has a configuration before it is made. That it has segments shows that it is made.
    try:
        config, _ = await asyncio.gather(
            controller.configuration(name), controller.current_segments(name)
        )
    except StreamNotFound:
        return None
    return config


async def describe(controller: ControllerClient, name: StreamName) -> Stream | None:
    """Return the stream as it is now; None if it or its scope does not exist."""
    try:
        config, tail = await asyncio.gather(
            controller.configuration(name), controller.current_segments(name)
        )
        sealed = not tail
        # A stream that was never scaled has only its first segments: no further call is needed.
        if not sealed and not any(names.epoch_of(segment.id) for segment in tail):
            return Stream(config=config, head=tail, tail=tail, sealed=False)
        oldest = await controller.head_segments(name)
        head = await _with_keys(controller, name, oldest)
        if sealed:
            tail = await _last_epoch(controller, name, max(map(names.epoch_of, oldest)))
    except StreamNotFound:
        return None
    return Stream(config=config, head=head, tail=tail, sealed=sealed)


async def _with_keys(
    controller: ControllerClient, name: StreamName, wanted: frozenset[int]
) -> tuple[Segment, ...]:
    """Return these segments with their key ranges, which only the epochs that made them list."""
    epochs = sorted({names.epoch_of(segment) for segment in wanted})
    found = [await controller.epoch_segments(name, epoch) for epoch in epochs]
    segments = {s.id: s for epoch in found for s in epoch if s.id in wanted}
    return tuple(sorted(segments.values(), key=lambda segment: segment.keys.low))


async def _last_epoch(
    controller: ControllerClient, name: StreamName, epoch: int
) -> tuple[Segment, ...]:
    """Find the segments of a sealed stream's last epoch, which the controller does not tell.

    Epochs are numbered without gaps, so leaps that double and then halve find the last one with
    few calls. `epoch` is one that the stream has.
    """
    last = await controller.epoch_segments(name, epoch)
    leap, growing = 1, True
    while leap:
        if leap > MOST_EPOCHS:
            raise _too_many(name, leap)
        try:
            last = await controller.epoch_segments(name, epoch + leap)
        except StreamNotFound:
            growing = False
        else:
            epoch += leap
        leap = leap * 2 if growing else leap // 2
    return last
