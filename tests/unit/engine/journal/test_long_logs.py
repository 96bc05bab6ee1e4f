"""What is read into memory as a whole is no longer than what Sluice writes."""

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
    """Says of each segment that is there that it is very long, and gives none of its bytes."""

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
    """A store that says 10 GB costs nobody the memory."""
    world = World()
    CopyJournal(ModelStore(world), COPY, TARGET).begin(stream_plan(segment_plan(100)))
    with pytest.raises(JournalDamaged, match=r"10 GB long"):
        CopyJournal(cast("Store", Boastful(world)), COPY, TARGET).load()


def test_nor_is_one_of_several() -> None:
    """A store that has journals under all names a copy may give them is asked for none."""
    world = World()
    mine = CopyJournal(cast("Store", Boastful(world)), COPY, TARGET)
    for name in mine._names:
        ModelStore(world).create(name)
    with pytest.raises(JournalDamaged, match=r"10 GB long"):
        mine.load()


def test_a_receipt_that_is_none_by_its_length_is_not_read() -> None:
    """It lies beside a stream of somebody else's."""
    world = World()
    store = ModelStore(world)
    store.create(store.staging_name(TARGET, 0, identity.receipt_key(COPY, 0)))
    with pytest.raises(JournalDamaged, match=r"is no receipt: it is 10 GB long"):
        receipts.find(COPY, TARGET, cast("Store", Boastful(world)))


def test_a_journal_is_written_no_longer_than_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would make it unreadable is refused, and says what can be done."""
    mine = CopyJournal(ModelStore(World()), COPY, TARGET)
    mine.begin(stream_plan(segment_plan(100)))
    monkeypatch.setattr(record_log.Log, "most", 2_000)
    many = [journal.digest_record(0, n, [b"d" * 32]) for n in range(100)]
    with pytest.raises(PlanTooLarge, match="longer than") as raised:
        mine.write(many)
    assert "ranges" in (raised.value.remedy or "")
    assert mine.load() is not None


def test_a_record_that_is_none_by_its_length_is_not_read() -> None:
    """It would be read as a whole, and take thirty times as much memory as it is long."""
    said = record_frames.frame({"record": "events", "segment": "0" * (9 << 20)})
    with pytest.raises(JournalDamaged, match="damaged at offset"):
        record_frames.unframe(said)


def test_a_record_that_nobody_knows_is_told_in_short() -> None:
    """What somebody else's server says gets into a status, an event and a log."""
    with pytest.raises(JournalDamaged) as raised:
        journal.fold([{"record": "made up", "words": "w" * 100_000}])
    assert len(raised.value.message) < 500
    assert len(Trouble.of(StoreBusy("x" * 1_000_000)).message) == 4096
