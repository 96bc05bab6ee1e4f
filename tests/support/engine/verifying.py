"""Streams of a store in memory, compared."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

from sluice.core.copy.planner import CopyRequest, Range
from sluice.core.verify.pairing import Alignment
from sluice.core.verify.verification import Difference, Result, Verification
from sluice.engine.verify.compare import Subject, compare, match_copy, match_streams
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import CHUNK, REQUEST, copy_all, planned, put_scaled_source
from support.model import ModelSegment, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName

EPOCH = 1 << 32
WHOLE = Range()
SHAPES = [[5, 90, 3], [40], [17, 2]]
MOVES = [("split", 0), ("merge", 1)]


def subject(world: World, name: StreamName, range_: Range = WHOLE, *, block: int = 32) -> Subject:
    """Return a stream of a world, read in blocks of `block` bytes."""
    return Subject(ModelStore(world, block=block), "tcp://model:1", name, range_)


def verified(
    world: World,
    *,
    alignment: Alignment = Alignment.BEGINNINGS,
    exact: bool = False,
    source: Range = WHOLE,
    target: Range = WHOLE,
    block: int = 7,
) -> Verification:
    """Compare the two streams of a world, in blocks that fit neither each other nor chunks."""
    first = subject(world, SOURCE, source)
    matched = match_streams(first, subject(world, TARGET, target, block=block), alignment)
    return compare(matched, exact=exact)


def copy_verified(
    world: World, *, request: CopyRequest = REQUEST, exact: bool = False
) -> Verification:
    """Compare a copy's target with its sources."""
    sources = [subject(world, source.stream) for source in request.sources]
    target = subject(world, TARGET, block=7)
    whole = [i for i, source in enumerate(request.sources) if source.ranges == (WHOLE,)]
    return compare(match_copy(COPY, "orders", sources, target, whole=whole), exact=exact)


def copied(*moves: tuple[str, int], request: CopyRequest = REQUEST) -> World:
    """Return a world with a source that was scaled by these moves, and its copy."""
    world = World()
    put_scaled_source(world, SHAPES, moves)
    store = ModelStore(world)
    copy_all(store, planned(store, request))
    return world


def of(world: World, name: StreamName, index: int) -> ModelSegment:
    """Return the segment at a place among all segments of a stream."""
    return world.segments[segment_name(name, world.streams[name].readable[index].id)]


def only(found: Verification) -> Difference:
    """Return the only difference."""
    assert found.result is Result.DIFFERENT
    (difference,) = found.differences
    return difference


def chunk_digests(data: bytes, start: int) -> list[str]:
    """Return the SHA-256 of each chunk of bytes that begin at this offset."""
    end = start + len(data)
    edges = sorted({start, end, *range(-(-start // CHUNK) * CHUNK, end, CHUNK)})
    return [hashlib.sha256(data[a - start : b - start]).hexdigest() for a, b in pairwise(edges)]
