"""Any corruption of a target is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segment_hash import Events
from sluice.core.verify.pairing import Alignment
from sluice.core.verify.verification import Result, What
from sluice.engine.verify.compare import compare, match_copy, match_streams
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import copy_all, planned, put_scaled_source
from support.engine.verifying import (
    chunk_digests,
    of,
    subject,
)
from support.model import ModelStore, World


@st.composite
def corruptions(draw: st.DrawFn) -> tuple[str, int, int, bytes]:
    """Draw a corruption of a segment: its kind, its place, a number of bytes, and other bytes."""
    how = draw(st.sampled_from(["flip", "insert", "delete", "cut", "append"]))
    return how, draw(st.integers(0, 10_000)), draw(st.integers(1, 40)), draw(st.binary(min_size=1))


def corrupt(data: bytearray, how: str, place: int, count: int, other: bytes) -> None:
    """Corrupt a segment's bytes."""
    at = place % (len(data) + 1)
    if how == "flip" and data:
        data[place % len(data)] ^= count
    elif how == "insert":
        data[at:at] = other
    elif how == "delete":
        del data[at : at + count]
    elif how == "cut":
        del data[at:]
    elif how == "append":
        data += other


@given(
    shapes=st.lists(st.lists(st.integers(0, 60), max_size=4), min_size=2, max_size=4),
    moves=st.lists(
        st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)), max_size=4
    ),
    index=st.integers(0, 30),
    corruption=corruptions(),
    blocks=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    of_copy=st.booleans(),
)
def test_any_corruption_is_found_and_located(
    shapes: list[list[int]],
    moves: list[tuple[str, int]],
    index: int,
    corruption: tuple[str, int, int, bytes],
    blocks: tuple[int, int],
    *,
    of_copy: bool,
) -> None:
    """Bytes are changed, inserted, deleted, cut off or appended; the first place is reported."""
    world = World()
    put_scaled_source(world, shapes, moves)
    store = ModelStore(world)
    copy_all(store, planned(store))
    index %= len(world.streams[TARGET].readable)
    target = of(world, TARGET, index)
    original = bytes(target.data)
    corrupt(target.data, *corruption)
    sides = [
        subject(world, name, block=block)
        for name, block in zip((SOURCE, TARGET), blocks, strict=True)
    ]
    if of_copy:
        matched = match_copy(COPY, "orders", sides[:1], sides[1], whole=[0])
    else:
        matched = match_streams(*sides, Alignment.BEGINNINGS)
    found = compare(matched, exact=True)
    changed = bytes(target.data)
    if changed == original:
        assert found.result is Result.EQUAL
        return
    first = found.differences[0]
    both = enumerate(zip(original, changed, strict=False))
    place = next((i for i, (a, b) in both if a != b), None)
    if place is not None:
        what = What.BYTES
    else:
        place = min(len(original), len(changed))
        what = What.MISSING if len(changed) < len(original) else What.EXTRA
    assert (first.what, first.target_offset) == (what, place)
    assert first.target_segment == world.streams[TARGET].readable[index].id
    assert first.segment == world.streams[SOURCE].readable[index].id
    pair = found.segments[index]
    wanted = changed[: pair.end - pair.start]
    assert list(pair.target.chunks) == chunk_digests(wanted, pair.start)
    assert list(pair.source.chunks) == chunk_digests(original, pair.start)
    events = Events(next_header=0)
    events.update(0, wanted)
    events.finish(len(wanted))
    assert pair.target.no_event_at == events.broken_at
    assert pair.target.events == (events.count if events.broken_at is None else None)
