"""Chain digests: digests of a segment's bytes, which go on from any offset."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events import digest
from sluice.core.events.chain import Chain, Link, linked

CHUNK = 16


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce chunks to 16 bytes."""
    monkeypatch.setattr(digest, "CHUNK", CHUNK)


def chained(data: bytes, start: int) -> Link:
    """Return the link of bytes that begin at `start`, calculated by the definition."""
    end, chain, at = start + len(data), b"", start
    while (edge := (at // CHUNK + 1) * CHUNK) <= end:
        whole = hashlib.sha256(data[at - start : edge - start]).digest()
        chain, at = hashlib.sha256(chain + whole).digest(), edge
    rest = hashlib.sha256(data[at - start :]).digest() if at < end else b""
    return Link(end, chain, rest, end - at)


def fed(chain: Chain, data: bytes, cuts: list[int]) -> Link:
    """Return the link after these bytes, which are fed in pieces."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        chain.feed(memoryview(data)[begin:end])
    return chain.link


@given(st.binary(max_size=80), st.integers(0, 40), st.lists(st.integers(0, 80), max_size=5))
def test_pieces_make_no_difference(data: bytes, start: int, cuts: list[int]) -> None:
    """A link depends on the bytes and their offsets, not on the pieces in which they are fed."""
    assert fed(Chain(Link(start)), data, cuts) == chained(data, start)


@given(st.binary(max_size=80), st.integers(0, 40), st.integers(0, 80))
def test_a_chain_goes_on_from_its_link(data: bytes, start: int, at: int) -> None:
    """A second chain continues from a link and the bytes of its last, incomplete chunk."""
    first = data[: at % (len(data) + 1)]
    link = fed(Chain(Link(start)), first, [])
    held = memoryview(first)[len(first) - link.held :]
    assert fed(Chain(link, [held]), data[len(first) :], []) == chained(data, start)


@given(st.binary(min_size=1, max_size=80), st.integers(0, 40))
def test_other_bytes_are_not_those_of_a_link(data: bytes, start: int) -> None:
    """A chain raises ValueError if the bytes of the incomplete chunk have changed."""
    link = chained(data, start)
    if link.held:
        with pytest.raises(ValueError, match="not the bytes"):
            Chain(link, [memoryview(bytes(link.held - 1) + b"\x01\x02")])


@given(st.binary(max_size=80), st.integers(0, 40))
def test_digests_of_chunks_make_a_link(data: bytes, start: int) -> None:
    """The chunks' digests that a bounded copy recorded make the same link.

    Without the first of them there is no link.
    """
    end = start + len(data)
    known = {
        chunk: hashlib.sha256(
            data[digest.chunk_start(chunk, start) - start : digest.chunk_end(chunk, end) - start]
        ).digest()
        for chunk in digest.chunks(start, end)
    }
    assert linked(start, end, known) == chained(data, start)
    if known:
        assert linked(start, end, dict(list(known.items())[1:])) is None


@pytest.mark.parametrize(
    ("first", "to", "second", "whole"),
    [
        pytest.param(b"a" * 4, 8, b"b" * 8, [b"a" * 4 + b"b" * 8], id="within a chunk"),
        pytest.param(b"a" * 4, 20, b"b" * 12, [b"a" * 4, b"b" * 12], id="into the next one"),
        pytest.param(b"a" * 16, 40, b"b" * 8, [b"a" * 16, b"b" * 8], id="from edge to middle"),
        pytest.param(b"a" * 16, 64, b"b" * 16, [b"a" * 16, b"b" * 16], id="over whole chunks"),
    ],
)
def test_a_chunk_with_a_gap_is_what_it_has(
    first: bytes, to: int, second: bytes, whole: list[bytes]
) -> None:
    """A chunk's digest leaves lost bytes out, and a chunk that is lost as a whole adds nothing."""
    chain = Chain(Link(0))
    chain.feed(memoryview(first))
    chain.leap(to)
    chain.feed(memoryview(second))
    expected = b""
    for chunk in whole:
        expected = hashlib.sha256(expected + hashlib.sha256(chunk).digest()).digest()
    assert chain.link == Link(to + len(second), expected)
