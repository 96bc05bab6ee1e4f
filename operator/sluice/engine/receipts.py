"""Receipts: what says that an append is done, beside the stream that it was done to.

The stream is somebody else's, so nothing on it can be relied on: whoever has it may replace its
tags, and retention may drop what was appended. A receipt is a small segment of our own that stays.
It is worth nothing once the stream was deleted and made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluice.core import identity, journal
from sluice.core.text import size
from sluice.engine.whose import made_at
from sluice.errors import JournalDamaged, NoSuchSegment, StoreBusy
from sluice.stores.base import joined

if TYPE_CHECKING:
    from sluice.core.model import StreamName
    from sluice.stores.base import Store

MOST = 4
"""Receipts that one copy can have: one more each time its target is made again."""

_LONGEST: Final = 64 << 10
"""Bytes of the longest receipt that is read; ours have some two hundred."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was appended, and when: `at` is the age of the stream's latest segment by then."""

    digest: str
    bytes: int
    events: int
    at: int


def find(copy_id: str, target: StreamName, store: Store) -> Receipt | None:
    """The receipt of a copy that has appended to the stream that is there now."""
    names = _names(copy_id, target, store)
    found = [
        receipt
        for name, info in zip(names, store.infos(names), strict=True)
        if info is not None and (receipt := _read(name, info.length, store)) is not None
    ]
    if not found:
        return None
    stream = store.describe(target)
    if stream is None:
        return None
    born = made_at(target, stream, store)
    return next((one for one in found if born is None or one.at >= born), None)


def leave(copy_id: str, target: StreamName, store: Store, receipt: Receipt) -> None:
    """Leave a receipt, unless another driver of the copy has."""
    record = {
        "record": "receipt",
        "digest": receipt.digest,
        "bytes": receipt.bytes,
        "events": receipt.events,
        "at": receipt.at,
    }
    names = _names(copy_id, target, store)
    infos = store.infos(names)
    if find(copy_id, target, store) is not None:
        return
    for name, info in zip(names, infos, strict=True):
        if info is not None and info.length:
            continue  # of a stream that is gone
        store.create(name)
        store.append_at(name, 0, journal.frame(record))
        return
    raise StoreBusy(f"{target} has {MOST} receipts of this copy already")


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
                return Receipt(digest, count, events, at)
            case _:
                raise JournalDamaged(f"{name} is no receipt")
    return None
