import json
import struct
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.copy.journal import (
    Journal,
    _without,
    digest_record,
    digest_records,
    drain_record,
    events_record,
    fold,
    plan_record,
    target_record,
)
from sluice.core.copy.record_frames import bodies, frame, parsed, unframe
from sluice.errors import JournalDamaged
from support.engine.plans import segment_plan, stream_plan

PLAN = stream_plan(segment_plan(100, cuts=(64,)), segment_plan(0, number=1, events=None))
OTHER = stream_plan(segment_plan(7))
GAP = OTHER.of([segment_plan(7).model_copy(update={"generation": 1 << 60})])
D1, D2, D3 = (bytes([n]) * 32 for n in (1, 2, 3))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
digest_maps = st.dictionaries(st.integers(0, 60), st.binary(min_size=32, max_size=32))


def written(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the bytes of a journal with these records."""
    return b"".join(frame(record) for record in records)


@given(st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=4), max_size=5))
def test_records_survive_their_frames(records: list[dict[str, object]]) -> None:
    """Framed records are read back equal and in order."""
    assert unframe(written(records)) == records


def test_a_journal_reads_back_what_was_written() -> None:
    """Records of plan, target, digests and events become the journal's values."""
    records = [
        plan_record(PLAN),
        target_record((10, 11)),
        digest_record(0, 4, [D1, D2]),
        events_record(1, 9),
    ]
    expected = Journal(PLAN, (10, 11), {0: ((4, D1 + D2),)}, {1: 9})
    assert fold(unframe(written(records))) == expected


def test_an_empty_journal_is_none() -> None:
    """A journal's segment without bytes has no records and no journal."""
    assert unframe(b"") == []
    assert fold([]) is None


def test_the_first_target_holds() -> None:
    """If two drivers bind the target, the first record counts."""
    folded = fold([plan_record(PLAN), target_record([1, 2]), target_record([3, 4])])
    assert folded is not None
    assert folded.target == (1, 2)


def test_digests_of_several_records_add_up() -> None:
    """Later records of digests add chunks to the same segment."""
    folded = fold(
        [
            plan_record(PLAN),
            digest_record(0, 0, [D1]),
            digest_record(1, 0, [D2]),
            digest_record(0, 1, [D3]),
        ]
    )
    assert folded is not None
    assert (folded.known(0), folded.known(1)) == ({0: D1, 1: D3}, {0: D2})


@given(digest_maps, st.integers(0, 60))
def test_a_chunk_that_a_drain_made_longer_is_unknown(digests: dict[int, bytes], gone: int) -> None:
    """`_without` removes the digest of one chunk, and keeps all other digests."""
    runs = [
        (record["first"], bytes.fromhex(record["sha256"])) for record in digest_records(0, digests)
    ]
    left = Journal(PLAN, digests={0: tuple(_without(runs, gone))})
    assert left.known(0) == {at: one for at, one in digests.items() if at != gone}


@given(st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=4)), st.data())
def test_records_are_the_same_however_the_bytes_come(
    records: list[dict[str, object]], data: st.DataObject
) -> None:
    """Bytes in pieces of any length give the same records, at the same offsets."""
    whole = written(records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in pairwise([0, *cuts, len(whole)])]
    found = list(bodies(map(memoryview, pieces)))
    assert [parsed(body, at) for at, body in found] == records
    assert [at for at, _ in found] == [
        len(written(records[:number])) for number in range(len(records))
    ]


@given(digest_maps)
def test_digest_records_merge_back_to_the_same_map(digests: dict[int, bytes]) -> None:
    """Each row of consecutive chunks makes one record, and the records restore the map."""
    records = digest_records(3, digests)
    folded = fold([plan_record(PLAN), *records])
    assert folded is not None
    assert folded.known(3) == digests
    gaps = sum(1 for chunk in digests if chunk - 1 not in digests)
    assert len(records) == gaps


@given(st.data())
def test_a_truncated_journal_is_damaged(data: st.DataObject) -> None:
    """Bytes that end inside a record raise JournalDamaged, at any offset."""
    records = [plan_record(PLAN), target_record([1, 2])]
    whole = written(records)
    at = data.draw(st.integers(1, len(whole) - 1))
    ends = {len(frame(records[0]))}
    if at in ends:
        assert unframe(whole[:at]) == records[:1]
    else:
        with pytest.raises(JournalDamaged, match="damaged at offset"):
            unframe(whole[:at])


def outcome(data: bytes) -> str:
    """Return the outcome of reading these bytes; only Sluice's own errors are caught."""
    try:
        fold(unframe(data))
    except JournalDamaged:
        return "refused"
    return "read"


@given(st.binary(max_size=200))
def test_foreign_bytes_are_refused(data: bytes) -> None:
    """Bytes without a valid frame raise JournalDamaged and no other error."""
    assert outcome(data + b"x") == "refused"


@given(st.binary(max_size=60))
def test_foreign_bytes_in_a_frame_are_refused(body: bytes) -> None:
    """A frame whose content is no record raises JournalDamaged and no other error."""
    assert outcome(struct.pack(">ii", 0, len(body)) + body) == "refused"


@given(st.sampled_from(["plan", "target", "digests", "events"]), st.data())
def test_records_with_foreign_values_are_refused_or_read(kind: str, data: st.DataObject) -> None:
    """A record of a known kind with arbitrary values raises no error but JournalDamaged."""
    keys = ["plan", "segments", "segment", "first", "sha256", "events"]
    record: dict[str, Any] = {key: data.draw(json_values | st.lists(st.integers())) for key in keys}
    body = written([plan_record(PLAN), record | {"record": kind}])
    assert outcome(body) in {"refused", "read"}


@given(st.data())
def test_a_flipped_byte_is_refused_or_read(data: st.DataObject) -> None:
    """A journal with one wrong byte raises no error but JournalDamaged."""
    whole = bytearray(
        written([plan_record(PLAN), target_record([1, 2]), digest_record(0, 0, [D1, D2])])
    )
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    assert outcome(bytes(whole)) in {"refused", "read"}


@pytest.mark.parametrize(
    "records",
    [
        [target_record([1])],
        [digest_record(0, 0, [D1])],
        [events_record(0, 1)],
        [plan_record(PLAN), plan_record(OTHER)],
        [plan_record(PLAN), {"record": "cutover"}],
        [plan_record(PLAN), {}],
        [{"record": "plan", "plan": {"copyId": "x"}}],
        [{"record": "plan", "plan": 3}],
        [plan_record(PLAN), {"record": "target", "segments": 3}],
        [plan_record(PLAN), {"record": "target", "segments": ["a", 1]}],
        [plan_record(PLAN), target_record([1])],
        [plan_record(GAP)],
        [plan_record(PLAN), target_record([1, 2]), drain_record([], GAP.segments, [3])],
        [plan_record(PLAN), target_record([1, 2]), drain_record([], OTHER.segments, [])],
        [plan_record(PLAN), digest_record(0, 0, [D1[:31]])],
        [plan_record(PLAN), digest_record(0, 0, [D1]) | {"sha256": "zz"}],
        [plan_record(PLAN), digest_record(0, 0, [D1]) | {"first": "0"}],
        [plan_record(PLAN), events_record(0, 1) | {"segment": []}],
        [plan_record(PLAN), events_record(0, 1) | {"events": -1}],
    ],
    ids=lambda records: json.dumps(records[-1])[:40],
)
def test_a_journal_that_makes_no_sense_is_refused(records: list[dict[str, object]]) -> None:
    """The journal needs its plan first and only once, and no record that is unknown or damaged."""
    with pytest.raises(JournalDamaged, match="journal"):
        fold(records)


def test_deep_nesting_is_refused() -> None:
    """Deeply nested JSON raises JournalDamaged, and no RecursionError."""
    body = b"[" * 200_000
    assert outcome(struct.pack(">ii", 0, len(body)) + body) == "refused"
