"""The walk in C equals the walk in Python, and both equal a walk that is easy to read."""

import struct
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.core.events.counting import Counted, StretchCounter
from sluice.core.events.framing import EventCounter, Walk, walk_in_python
from sluice.errors import EventsDamaged
from support.extension import walk_in_c

LARGE = 1 << 17  # the bytes from which on the walk in C releases the GIL


@pytest.fixture(scope="session")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """Return the walk in C, compiled from the present source."""
    return walk_in_c(tmp_path_factory.mktemp("extension"))


def naive(block: bytes, at: int) -> tuple[int, int, int]:
    """Walk from header to header, and return what `walk_in_python` returns."""
    events, begun = 0, -1
    while at + 8 <= len(block):
        kind, length = struct.unpack_from(">ii", block, at)
        if kind != 0 or length < 0:
            break
        events, begun, at = events + 1, at, at + 8 + length
    return events, begun, at


def framed(body: bytes) -> bytes:
    """Return an event with its header."""
    return struct.pack(">ii", 0, len(body)) + body


bodies = st.one_of(st.binary(max_size=40), st.integers(0, 40).map(bytes))
events = bodies.map(framed)
rows = st.builds(lambda body, times: framed(body) * times, bodies, st.integers(10, 300))
numbers = st.sampled_from([0, 1, -1, 255, 1 << 24, 2**31 - 1, -(2**31)])
headers = st.builds(lambda kind, length: struct.pack(">ii", kind, length), numbers, numbers)
pieces = st.one_of(events, events, rows, headers, st.binary(max_size=12))
segments = st.lists(pieces, max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 20_000), max_size=20)
places = st.just(0) | st.integers(0, 20_000)


@given(segments, places, st.integers(0, 10))
@example(b"", 0, 0)
@example(framed(b"v") + struct.pack(">ii", 0, 2**31 - 1), 0, 0)
@example(framed(b"v") + struct.pack(">ii", 0, -1), 0, 0)
@example(framed(b"v") + struct.pack(">ii", 0, -(2**31)), 0, 0)
@example(framed(b"v") + struct.pack(">ii", 1 << 24, 0), 0, 0)
@example(framed(b"v") * 20_000, 0, 0)
def test_walks_agree_on_any_bytes(in_c: Walk, data: bytes, at: int, behind: int) -> None:
    """The walks have the same result for any bytes and any index, in the block or behind it."""
    at %= len(data) + behind + 1
    assert in_c(memoryview(data), at) == walk_in_python(memoryview(data), at) == naive(data, at)


@given(st.binary(max_size=200), st.integers(0, 2), st.integers(-20, 20))
def test_walks_agree_on_blocks_large_enough_to_release_the_gil(
    in_c: Walk, tail: bytes, length: int, more: int
) -> None:
    """The result does not depend on whether the walk releases the GIL."""
    data = (framed(bytes(length)) * (LARGE // 8))[: LARGE + more] + tail
    assert in_c(memoryview(data), 0) == naive(data, 0)


def test_walks_begin_far_behind_the_block_or_not_before_it(in_c: Walk) -> None:
    """An index far behind the block has no events. A negative one raises ValueError."""
    block = memoryview(framed(b"event"))
    for walk in (in_c, walk_in_python):
        assert walk(block, 2**63 - 1) == (0, -1, 2**63 - 1)
        with pytest.raises(ValueError, match="before the block"):
            walk(block, -1)


def counts(walk: Walk, data: bytes, edges: list[int]) -> Iterator[object]:
    """Yield the counter's values after each block, and at last the error if there is one."""
    counter = EventCounter(walk)
    for start, end in pairwise(edges):
        try:
            counter.feed(memoryview(data)[start:end])
        except EventsDamaged as error:
            yield counter.events, counter.last, str(error)
            return
        yield counter.events, counter.last, counter.following, counter.header, counter.unfinished


@given(segments, st.none() | cuts)
def test_counters_agree_block_by_block(in_c: Walk, data: bytes, cuts: list[int] | None) -> None:
    """Counts, positions and errors are the same for any blocks, also for blocks of one byte."""
    inner = range(len(data)) if cuts is None else (cut % (len(data) + 1) for cut in cuts)
    edges = sorted([0, *inner, len(data)])
    assert list(counts(in_c, data, edges)) == list(counts(walk_in_python, data, edges))


def stretch(
    walk: Walk, data: bytes, bounds: tuple[int, int], first: int | None, block: int
) -> tuple[Counted | None, str | None]:
    """Return the count of a stretch without an error, or no count and the error's text."""
    counter = StretchCounter(*bounds, len(data), first)
    counter._counter = EventCounter(walk)
    try:
        for at in range(min(counter.begin, counter.reach), counter.reach, block):
            counter.feed(memoryview(data)[at : min(at + block, counter.reach)])
        return counter.finish(), None
    except EventsDamaged as error:
        return None, str(error)


@given(segments, places, places, st.none() | places, st.integers(1, 3000))
def test_stretches_agree(
    in_c: Walk, data: bytes, one: int, other: int, first: int | None, block: int
) -> None:
    """Counts and errors are the same whether the first event is known, wrong or guessed."""
    start, end = sorted((one % (len(data) + 1), other % (len(data) + 1)))
    known = None if first is None else start + first % (end - start + 10)
    of_c, of_python = (
        stretch(walk, data, (start, end), known, block) for walk in (in_c, walk_in_python)
    )
    assert of_c == of_python


def test_the_walk_in_c_lets_other_threads_run(in_c: Walk) -> None:
    """During the walk through a large block, another thread gets the GIL."""
    if in_c is walk_in_python:
        pytest.skip("this machine has no C compiler")
    woken, ran = threading.Event(), threading.Event()

    def run() -> None:
        woken.wait()
        ran.set()

    thread = threading.Thread(target=run)
    thread.start()
    block = memoryview(bytes(1 << 24))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # so a thread runs only if another one releases the GIL
    try:
        woken.set()
        for _ in range(1000):
            in_c(block, 0)
            if ran.is_set():
                return
        pytest.fail("no other thread ran")
    finally:
        sys.setswitchinterval(interval)
        thread.join()
