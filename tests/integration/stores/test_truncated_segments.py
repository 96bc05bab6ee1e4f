"""Truncated staging segments, and logs that go on after a truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.core.values.model import SegmentInfo, StreamName
from sluice.errors import NoSuchSegment, SegmentTruncated, StoreRejected
from support.engine.notes import Notes
from support.store.blocks import content, write

if TYPE_CHECKING:
    from sluice.stores.pravega.store import PravegaStore


def test_a_segment_begins_where_it_was_truncated(store: PravegaStore, staging: str) -> None:
    """A repeated or older truncation changes nothing. Offsets after it stay."""
    write(store, staging, b"0123456789")
    for offset in (4, 4, 2, 0):
        store.truncate_segment(staging, offset)
        assert store.infos([staging]) == [SegmentInfo(start=4, length=10, sealed=False)]
    assert content(store, staging, 4, 10) == b"456789"
    with pytest.raises(SegmentTruncated):
        content(store, staging, 3, 10)
    assert store.append_at(staging, 10, b"ab")
    store.truncate_segment(staging, 12)
    assert store.infos([staging]) == [SegmentInfo(start=12, length=12, sealed=False)]
    assert store.append_at(staging, 12, b"c")
    assert content(store, staging, 12, 13) == b"c"
    assert store.delete(staging, length=13)


def test_a_cut_behind_the_end_is_refused(store: PravegaStore, staging: str) -> None:
    """A truncation beyond the end changes nothing. A missing segment is named."""
    write(store, staging, b"abc")
    with pytest.raises(StoreRejected, match="ends before byte 4"):
        store.truncate_segment(staging, 4)
    assert store.infos([staging]) == [SegmentInfo(start=0, length=3, sealed=False)]
    missing = staging[:-32] + uuid4().hex
    with pytest.raises(NoSuchSegment, match=missing):
        store.truncate_segment(missing, 1)


def test_a_log_goes_on_behind_its_summary(store: PravegaStore, stream: StreamName) -> None:
    """New drivers read the summary, and so do those that were behind or had read all records."""
    log, with_it, behind = (Notes(store, stream) for _ in range(3))
    log.begin()
    log.write(1, 2, 3)
    behind.load()
    log.write(4)
    with_it.load()
    assert log.sum_up()
    assert not with_it.sum_up()
    log.write(5)
    assert with_it.load() == [1, 2, 3, 4, 10, 5]
    behind.write(6)
    assert behind.load() == [10, 5, 6]
    assert Notes(store, stream).load() == [10, 5, 6]
    assert log.load()[-3:] == [10, 5, 6]
    (info,) = store.infos([log.name])
    assert info is not None
    assert 0 < info.start < info.length
    assert log.delete()
    assert Notes(store, stream).load() == []
