"""Receipts: what says that an append is done, beside the stream that it was done to.

The stream is somebody else's, so nothing on it can be relied on: whoever has it may replace its
tags, and retention may drop what was appended. A receipt is a small segment of our own that stays.
It is worth nothing once the stream was deleted and made again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.copy import journal
from sluice.core.values import identity
from sluice.core.values.text import size
from sluice.engine.access.stream_age import made_at
from sluice.errors import JournalDamaged, NoSuchSegment, StoreBusy
from sluice.stores.reading import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.stores.base import Store

MOST = 16
"""Names for the receipts of one copy, which are used in turn. So a driver that was held up at the
deletion of a former receipt does not meet a later one under its name."""

_LONGEST: Final = 64 << 10
"""Bytes of the longest receipt that is read; ours have some two hundred."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was appended, and to which stream.

    Attributes:
        digest: of what was appended.
        bytes: of it.
        events: in it.
        at: the age of the stream's latest segment by then.
        segment: the id of a segment that the stream had then. A stream that was made again never
            gets it. None in receipts of before, which go by `at` alone.
    """

    digest: str
    bytes: int
    events: int
    at: int
    segment: int | None = None


def find(copy_id: str, target: StreamName, store: Store) -> Receipt | None:
    """Find the receipt of a copy that has appended to the stream that is there now."""
    current, _ = _sorted(_read_all(copy_id, target, store), target, store)
    return next((receipt for _, receipt in current), None)


def drop_former(copy_id: str, target: StreamName, store: Store) -> None:
    """Delete the receipts that are certainly of an earlier stream of this name.

    Done once there is one of the stream that is there now: the name that follows on the latest
    former one is that of the next.
    """
    current, former = _sorted(_read_all(copy_id, target, store), target, store)
    if not current:
        return
    for name, _ in former:
        (info,) = store.infos([name])
        if info is not None:
            store.delete(name, length=info.length)


def leave(copy_id: str, target: StreamName, store: Store, receipt: Receipt) -> None:
    """Leave a receipt, unless another driver of the copy has, and delete those of earlier streams.

    Raises:
        StoreBusy: the store has not let go of the names of those of earlier streams. It does within
            minutes.
    """
    record = {
        "record": "receipt",
        "digest": receipt.digest,
        "bytes": receipt.bytes,
        "events": receipt.events,
        "at": receipt.at,
    }
    if receipt.segment is not None:
        record["segment"] = receipt.segment
    names = _names(copy_id, target, store)
    infos = store.infos(names)  # before it is looked whether another driver has left one
    current, former = _sorted(_read_all(copy_id, target, store), target, store)
    if not current:
        places = deque(zip(names, infos, strict=True))
        places.rotate(-_after_latest(names, former))
        _write(places, record, store)
        if find(copy_id, target, store) is None:
            raise StoreBusy(f"there is no room for a receipt of this copy beside {target} yet")
    drop_former(copy_id, target, store)


def _after_latest(names: Sequence[str], former: Sequence[tuple[str, Receipt]]) -> int:
    """Say which name follows on that of the latest receipt of an earlier stream."""
    latest = max(former, key=lambda one: one[1].at, default=None)
    return 0 if latest is None else (names.index(latest[0]) + 1) % len(names)


def _write(
    places: Iterable[tuple[str, SegmentInfo | None]], record: dict[str, object], store: Store
) -> None:
    """Write a receipt under the first name that the store gives, unless another driver has."""
    for name, info in places:
        if info is not None and info.length:
            continue  # of a stream that is gone
        if info is None and not store.create(name) and store.infos([name]) == [None]:
            continue  # deleted, and the store has not let go of the name
        store.append_at(name, 0, journal.frame(record))  # or another driver was faster
        return


def _sorted(
    found: Sequence[tuple[str, Receipt]], target: StreamName, store: Store
) -> tuple[list[tuple[str, Receipt]], list[tuple[str, Receipt]]]:
    """Tell receipts of the stream that is there from those that are certainly of an earlier one."""
    stream = store.describe(target) if found else None
    if stream is None:
        return [], []
    born = made_at(target, stream, store)
    current: list[tuple[str, Receipt]] = []
    former: list[tuple[str, Receipt]] = []
    for name, receipt in found:
        if receipt.segment is not None:
            is_current = store.had(target, receipt.segment)
        else:
            is_current = born is None or receipt.at >= born
        (current if is_current else former).append((name, receipt))
    return current, former


def _read_all(copy_id: str, target: StreamName, store: Store) -> list[tuple[str, Receipt]]:
    names = _names(copy_id, target, store)
    return [
        (name, receipt)
        for name, info in zip(names, store.infos(names), strict=True)
        if info is not None and (receipt := _read(name, info.length, store)) is not None
    ]


def _names(copy_id: str, target: StreamName, store: Store) -> list[str]:
    return [
        store.staging_name(target, 0, identity.receipt_key(copy_id, number))
        for number in range(MOST)
    ]


def _read(name: str, length: int, store: Store) -> Receipt | None:
    if length > _LONGEST:
        raise JournalDamaged(f"{name} is no receipt: it is {size(length)} long")
    try:
        data = joined(store.read(name, 0, length))
    except NoSuchSegment:
        return None
    for record in journal.unframe(data):
        match record:
            case {
                "record": "receipt",
                "digest": str(digest),
                "bytes": int(count),
                "events": int(events),
                "at": int(at),
            }:
                segment = record.get("segment")
                return Receipt(
                    digest, count, events, at, segment if isinstance(segment, int) else None
                )
            case _:
                raise JournalDamaged(f"{name} is no receipt")
    return None
