"""A batch's rows make the same blocks in whatever order Spark gives them."""

from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.events.decoding import decoded
from sluice.core.query import rows as room
from sluice.core.query.rows import ResultRow, blocks, digest, in_order, keys_digest, part_rows
from sluice.core.values.model import KeyRange, Segment
from sluice.errors import ResultTooLarge

SEGMENTS = [Segment(id=at, keys=KeyRange(low=at / 3, high=(at + 1) / 3)) for at in range(3)]
ROWS = st.lists(st.builds(ResultRow, st.text(max_size=3), st.text(max_size=9)), max_size=20)


def place_of(key: str) -> float:
    """Return the place of a key in [0, 1)."""
    return crc32(key.encode("utf-8", "replace")) / 2**32


@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_blocks_have_each_row_once_and_do_not_depend_on_the_order(
    rows: list[ResultRow], random: Random, most: int
) -> None:
    """Each row is in the segment that takes its key. Blocks and digests ignore the rows' order."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    rows = [row for row in rows if _is_text(row)]
    shuffled = [row for row in shuffled if _is_text(row)]
    made = blocks(in_order(rows), SEGMENTS, place_of, most)
    assert made == blocks(in_order(shuffled), SEGMENTS, place_of, most)
    assert digest(in_order(rows)) == digest(in_order(shuffled))
    assert keys_digest(in_order(rows)) == keys_digest(in_order(shuffled))
    assert all(0 < block.events <= most for parts in made.values() for block in parts)
    events = {
        number: [event for part in parts for _, event in decoded([memoryview(part.data)], 0)]
        for number, parts in made.items()
    }
    expected: dict[int, list[bytes]] = {}
    for row in in_order(rows):
        expected.setdefault(int(place_of(row.key) * 3), []).append(row.text.encode())
    assert events == expected


def _is_text(row: ResultRow) -> bool:
    """Tell whether UTF-8 has the row, as it has all that Spark gives."""
    try:
        f"{row.key}{row.text}".encode()
    except UnicodeEncodeError:
        return False
    return True


def test_a_batch_is_divided_into_blocks_that_a_store_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows in a block is reduced until each block fits."""
    monkeypatch.setattr(room, "USUAL_BLOCK", 100)
    rows = in_order(ResultRow("", f"{number:02}" * 4) for number in range(50))
    most = part_rows(rows, SEGMENTS, place_of)
    (parts,) = blocks(rows, SEGMENTS, place_of, most).values()
    assert max(len(part.data) for part in parts) <= 100
    assert sum(part.events for part in parts) == 50
    assert part_rows([], SEGMENTS, place_of) == 1


def test_a_row_that_no_store_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """ResultTooLarge tells the size of the longest row."""
    monkeypatch.setattr(room, "USUAL_BLOCK", 20)
    with pytest.raises(ResultTooLarge, match="a row has 24 B"):
        part_rows([ResultRow("", "x" * 16)], SEGMENTS, place_of)
