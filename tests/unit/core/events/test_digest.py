import hashlib
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events import digest
from sluice.core.events.digest import ChunkDigester, chunk_end, chunk_start, chunks, combine

CHUNK = 16


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    """Reduce chunks to 16 bytes, so that a small range has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "CHUNK", CHUNK)
        yield


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return the data in pieces, some of which may be empty."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(edges)] + [b""]


@given(st.binary(max_size=120), st.integers(0, 100), st.lists(st.integers(0, 1_000), max_size=8))
def test_digests_do_not_depend_on_how_bytes_arrive(
    data: bytes, start: int, cuts: list[int]
) -> None:
    """Chunks lie at absolute offsets, whatever the pieces and the range's start."""
    end = start + len(data)
    digester = ChunkDigester(start, end)
    for piece in pieces(data, cuts):
        digester.feed(memoryview(piece))
    expected = {}
    for chunk in range(end // CHUNK + 1):
        held = data[max(0, chunk * CHUNK - start) : max(0, (chunk + 1) * CHUNK - start)]
        if held:
            expected[chunk] = hashlib.sha256(held).digest()
    assert digester.done == expected
    assert digester.offset == end


@given(st.integers(0, 40), st.integers(1, 80))
def test_feeding_says_when_a_chunk_is_whole(start: int, size: int) -> None:
    """`feed` returns True exactly if the bytes end where a chunk or the range ends."""
    end = start + size
    digester = ChunkDigester(start, end)
    said = [digester.feed(memoryview(b"x")) for _ in range(size)]
    assert said == [at % CHUNK == 0 or at == end for at in range(start + 1, end + 1)]


def test_a_chunk_that_is_not_whole_has_no_digest() -> None:
    """Bytes after the last chunk's end add no digest yet."""
    digester = ChunkDigester(0, 100)
    assert digester.feed(memoryview(b"x" * 20)) is False
    assert list(digester.done) == [0]


@given(st.integers(0, 200), st.integers(0, 200))
def test_chunks_cover_the_range_exactly(start: int, size: int) -> None:
    """The chunks of a range, cut at its bounds, have no gap, overlap or empty chunk."""
    end = start + size
    bounds = [(chunk_start(c, start), chunk_end(c, end)) for c in chunks(start, end)]
    assert all(a < b for a, b in bounds)
    covered = [offset for a, b in bounds for offset in range(a, b)]
    assert covered == list(range(start, end))


def test_digests_made_apart_combine_to_that_of_the_whole() -> None:
    """Two tasks that divide a range at a chunk's boundary get the digests of a single task."""
    data = bytes(range(50))
    whole = ChunkDigester(5, 55)
    whole.feed(memoryview(data))
    left, right = ChunkDigester(5, 55), ChunkDigester(32, 55)
    left.feed(memoryview(data[:27]))
    right.feed(memoryview(data[27:]))
    assert left.done | right.done == whole.done


def test_the_digest_of_a_list_is_over_its_digests_in_order() -> None:
    """The digest is over the concatenated digests. For no digests it is SHA-256 of no bytes."""
    one, two = hashlib.sha256(b"1").digest(), hashlib.sha256(b"2").digest()
    assert combine([one, two]) == hashlib.sha256(one + two).digest()
    assert combine([two, one]) != combine([one, two])
    assert combine([]).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 40))
def test_a_fork_goes_on_by_itself(data: bytes, one: bytes, other: bytes, start: int) -> None:
    """After the fork, each digester has the digests of its own bytes only."""
    size = min(len(one), len(other))
    end = start + len(data) + size
    first = ChunkDigester(start, end)
    first.feed(memoryview(data))
    second = first.fork()
    for digester, rest in ((first, one), (second, other)):
        digester.feed(memoryview(rest[:size]))
        alone = ChunkDigester(start, end)
        alone.feed(memoryview(data + rest[:size]))
        assert (digester.done, digester.offset) == (alone.done, alone.offset)
