"""Bounds on the length of logs and records, which are read into memory as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from sluice.core.copy import journal, record_frames
from sluice.core.values import identity
from sluice.core.values.model import SegmentInfo
from sluice.core.values.trouble import Trouble
from sluice.engine.append import receipts
from sluice.engine.journal import record_log
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import JournalDamaged, PlanTooLarge, StoreBusy
from support.engine.plans import COPY, TARGET, segment_plan, stream_plan
from support.model import ModelStore, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.stores.base import Store
    from sluice.stores.reading import Block

_TEN_GIGABYTES = 10_000_000_000


class Boastful(ModelStore):
    """A store that reports a great length for each existing segment, and gives no bytes."""

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """See Segments."""
        return [
            None if one is None else SegmentInfo(start=0, length=_TEN_GIGABYTES, sealed=False)
            for one in super().infos(names)
        ]

    def read(self, name: str, start: int, end: int) -> Iterator[Block]:
        """See Segments."""
        raise AssertionError(f"{name} was read from {start} to {end}")


def test_a_journal_that_is_no_journal_by_its_length_is_not_read() -> None:
    """A reported length of 10 GB takes no memory."""
    world = World()
    CopyJournal(ModelStore(world), COPY, TARGET).begin(stream_plan(segment_plan(100)))
    with pytest.raises(JournalDamaged, match=r"10 GB long"):
        CopyJournal(cast("Store", Boastful(world)), COPY, TARGET).load()


def test_nor_is_one_of_several() -> None:
    """This holds if a segment exists under each name of a journal. None of them is read."""
    world = World()
    mine = CopyJournal(cast("Store", Boastful(world)), COPY, TARGET)
    for name in mine._names:
        ModelStore(world).create(name)
    with pytest.raises(JournalDamaged, match=r"10 GB long"):
        mine.load()


def test_a_receipt_that_is_none_by_its_length_is_not_read() -> None:
    """A receipt lies beside a stream of another owner, so its length is checked first."""
    world = World()
    store = ModelStore(world)
    store.create(store.staging_name(TARGET, 0, identity.receipt_key(COPY, 0)))
    with pytest.raises(JournalDamaged, match=r"is no receipt: it is 10 GB long"):
        receipts.find(COPY, TARGET, cast("Store", Boastful(world)))


def test_a_journal_is_written_no_longer_than_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that would make the journal unreadable are refused, with a remedy."""
    mine = CopyJournal(ModelStore(World()), COPY, TARGET)
    mine.begin(stream_plan(segment_plan(100)))
    monkeypatch.setattr(record_log.Log, "most", 2_000)
    many = [journal.digest_record(0, n, [b"d" * 32]) for n in range(100)]
    with pytest.raises(PlanTooLarge, match="longer than") as raised:
        mine.write(many)
    assert "ranges" in (raised.value.remedy or "")
    assert mine.load() is not None


def test_a_record_that_is_none_by_its_length_is_not_read() -> None:
    """Parsing such a record would take thirty times its length in memory."""
    said = record_frames.frame({"record": "events", "segment": "0" * (9 << 20)})
    with pytest.raises(JournalDamaged, match="damaged at offset"):
        record_frames.unframe(said)


def test_a_record_that_nobody_knows_is_told_in_short() -> None:
    """Texts of foreign servers are cut, since they get into a status, an event and a log."""
    with pytest.raises(JournalDamaged) as raised:
        journal.fold([{"record": "made up", "words": "w" * 100_000}])
    assert len(raised.value.message) < 500
    assert len(Trouble.of(StoreBusy("x" * 1_000_000)).message) == 4096
