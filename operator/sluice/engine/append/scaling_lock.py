"""Let copies take turns to scale a stream that they append to.

Two copies that append to one stream would take each other's key ranges and policy for the stream's
own. So each waits for its turn, which is a record at the end of a small log beside the stream. A
copy that has a turn and no journal any more is done or aborted, and has restored the stream.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sluice.core.copy import record_frames
from sluice.core.values import identity
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import JournalDamaged, NoSuchSegment

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Segments
    from sluice.stores.writing import SegmentSink

_NOBODY: Final = "0" * 32
_ID: Final = re.compile("[0-9a-f]{32}")


def holder(target: StreamName, store: Segments) -> str | None:
    """Return the id of the copy whose turn it is; None if the turn is free."""
    return _holder(_last(target, store)[1], target, store)


def take(copy_id: str, target: StreamName, store: Segments) -> None:
    """Take the turn, if it is free."""
    store.create(_name(target, store))
    length, last = _last(target, store)
    if _holder(last, target, store) is None:
        store.append_at(_name(target, store), length, _record(copy_id))


def give(copy_id: str, target: StreamName, store: Segments) -> None:
    """Release the turn, if this copy has it."""
    length, last = _last(target, store)
    if last == copy_id:
        store.append_at(_name(target, store), length, _record(_NOBODY))


def _holder(last: str, target: StreamName, store: Segments) -> str | None:
    """Return the last id in the log, if this copy has a journal. Another client may have put it."""
    if not _ID.fullmatch(last):
        raise JournalDamaged(f"{_name(target, store)} is no log of turns")
    return last if last != _NOBODY and CopyJournal(store, last, target).is_there() else None


def _last(target: StreamName, store: Segments) -> tuple[int, str]:
    """Return the length of the log in bytes, and the last id in it."""
    name = _name(target, store)
    (info,) = store.infos([name])
    if info is None or info.length == 0:
        return 0, _NOBODY
    start = info.length - len(_record(_NOBODY))
    if start < 0:
        raise JournalDamaged(f"{name} is no log of turns")
    try:
        data = b"".join(bytes(block.data) for block in store.read(name, start, info.length))
    except NoSuchSegment:
        return 0, _NOBODY
    match record_frames.unframe(data):
        case [{"record": "turn", "copy": str(copy_id)}]:
            return info.length, copy_id
        case _:
            raise JournalDamaged(f"{name} is no log of turns")


def _name(target: StreamName, store: SegmentSink) -> str:
    return store.staging_name(target, 0, identity.turns_key())


def _record(copy_id: str) -> bytes:
    """Return a record. All records have the same length, so the last one can be read alone."""
    return record_frames.frame({"record": "turn", "copy": copy_id})
