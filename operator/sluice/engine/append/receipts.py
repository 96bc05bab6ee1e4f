"""Receipts: small segments beside a stream that say that an append to it is complete.

The stream belongs to another user, so no mark on it is reliable. Its owner may replace its tags,
and retention may delete what was appended. A receipt is a segment of Sluice's own, so it stays. It
does not count any more once the stream was deleted and made again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core.copy import record_frames
from sluice.core.values import identity
from sluice.core.values.text import size
from sluice.engine.access.stream_age import made_at
from sluice.errors import JournalDamaged, NoSuchSegment, StoreBusy
from sluice.stores.reading import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.stores.base import Segments, Source, Store
    from sluice.stores.reading import SegmentReader
    from sluice.stores.writing import SegmentSink

MOST = 16
"""How many names the receipts of one copy have. They are used in turn, so a driver that is late
with the deletion of a former receipt does not find a later receipt under that name."""

_LONGEST: Final = 64 << 10
"""Most bytes of a receipt that is read. Sluice writes about 200."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was appended, and to which stream.

    Attributes:
        digest: digest of the appended bytes.
        bytes: number of bytes appended.
        events: number of events appended.
        at: creation time of the latest segment that the stream had then, as its store gives it.
        segment: id of a segment that the stream had then. A stream that is made again never gets
            this id. None in receipts of older versions, which are judged by `at` alone.
    """

    digest: str
    bytes: int
    events: int
    at: int
    segment: int | None = None


def find(copy_id: str, target: StreamName, store: Store) -> Receipt | None:
    """Return the receipt of a copy that has appended to the present stream of this name, or None.

    Raises:
        JournalDamaged: a segment of a receipt's name is no receipt.
    """
    current, _ = _sorted(_read_all(copy_id, target, store), target, store)
    return next((receipt for _, receipt in current), None)


def leave(copy_id: str, target: StreamName, store: Store, receipt: Receipt) -> Receipt:
    """Write a receipt, unless another driver has, and delete the receipts of earlier streams.

    Nothing is deleted before the present stream has a receipt: the place of the latest former one
    says which name the next receipt gets.

    Returns:
        The receipt that counts.

    Raises:
        StoreBusy: no name is free yet. The store frees the names of deleted receipts within
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
    infos = store.infos(names)  # before the look for another driver's receipt
    current, former = _sorted(_read_all(copy_id, target, store), target, store)
    if not current:
        places = deque(zip(names, infos, strict=True))
        places.rotate(-_after_latest(names, former))
        _write(places, record, store)
        current, former = _sorted(_read_all(copy_id, target, store), target, store)
        if not current:
            raise StoreBusy(f"there is no room for a receipt of this copy beside {target} yet")
    for name, _ in former:
        (info,) = store.infos([name])
        if info is not None:
            store.delete(name, length=info.length)
    return current[0][1]


def _after_latest(names: Sequence[str], former: Sequence[tuple[str, Receipt]]) -> int:
    """Return the index of the name after that of an earlier stream's latest receipt."""
    latest = max(former, key=lambda one: one[1].at, default=None)
    return 0 if latest is None else (names.index(latest[0]) + 1) % len(names)


def _write(
    places: Iterable[tuple[str, SegmentInfo | None]], record: dict[str, object], store: Segments
) -> None:
    """Write a receipt under the first name that is free, unless another driver has."""
    for name, info in places:
        if info is not None and info.length:
            continue  # the receipt of an earlier stream
        if info is None and not store.create(name) and store.infos([name]) == [None]:
            continue  # deleted, but the store has not freed the name yet
        # It has no effect if another driver was faster.
        store.append_at(name, 0, record_frames.frame(record))
        return


def _sorted(
    found: Sequence[tuple[str, Receipt]], target: StreamName, store: Source
) -> tuple[list[tuple[str, Receipt]], list[tuple[str, Receipt]]]:
    """Sort receipts into those of the present stream and those certainly of an earlier one."""
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


def _read_all(copy_id: str, target: StreamName, store: Segments) -> list[tuple[str, Receipt]]:
    names = _names(copy_id, target, store)
    return [
        (name, receipt)
        for name, info in zip(names, store.infos(names), strict=True)
        if info is not None and (receipt := _read(name, info.length, store)) is not None
    ]


def _names(copy_id: str, target: StreamName, store: SegmentSink) -> list[str]:
    return [
        store.staging_name(target, 0, identity.receipt_key(copy_id, number))
        for number in range(MOST)
    ]


def _read(name: str, length: int, store: SegmentReader) -> Receipt | None:
    if length > _LONGEST:
        raise JournalDamaged(f"{name} is no receipt: it is {size(length)} long")
    try:
        data = joined(store.read(name, 0, length))
    except NoSuchSegment:
        return None
    for record in record_frames.unframe(data):
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
