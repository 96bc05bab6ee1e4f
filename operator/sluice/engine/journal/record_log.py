"""Keep a log in a segment of its own, which all drivers append to and read.

Records are appended by compare-and-set on the log's length. So of two drivers that write at once,
each knows what stands before its own record.

A log that grows for long is truncated before a summary, a record that stands for all before it.
Readers begin where the log begins now. Offsets stay, so the compare-and-set does not change.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy import record_frames
from sluice.core.values.text import size
from sluice.core.values.weight import weight_of_json
from sluice.errors import (
    CopyAborted,
    JournalDamaged,
    NoSuchSegment,
    PlanTooLarge,
    SegmentTruncated,
    StoreBusy,
    StoreUnavailable,
)
from sluice.stores.allowance import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.stores.base import Segments

GENERATIONS = 16
"""How many names a log can have. A store blocks a deleted name for minutes, so a copy that is run
again after an abort takes another name. If segments of several names exist, see `Log._chosen`."""

MAX_RECORD = 7 << 20
"""Bytes of the longest record: stores take appends of up to 8 MiB."""


MOST_LOG: Final = 64 << 20
"""Bytes of the longest log, which holds the digests of 8 TiB. The store tells a log's length, and
is not trusted with it: logs are read into the memory of processes that serve other copies too.
Truncated bytes do not count."""

_TRIES: Final = 3
"""Tries to read a log that is truncated meanwhile, which is done once in some MiB."""

_AHEAD: Final = 1 << 20
"""Bytes to read ahead."""


class RecordTrail(ABC):
    """A row of records that several drivers append to, and that all read in the same order.

    One subclass says where the records lie, another what they mean.
    """

    name: str

    def delete(self) -> bool:
        """Delete the log if it is as it was last read. Return False if it is gone or changed."""
        return self._delete()

    @abstractmethod
    def discard(self) -> None:
        """Delete the log, whatever is in it."""

    @abstractmethod
    def _delete(self) -> bool:
        """Delete the log as `delete` does."""

    @abstractmethod
    def _read_on(self) -> None:
        """Take in the records that were written since the last call."""

    @abstractmethod
    def _append(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """Write records behind those that were read. Return False if the log has changed since.

        Raises:
            NoSuchSegment: the log was deleted.
        """

    @abstractmethod
    def _follow(self) -> None:
        """Read the records that another driver was faster to write.

        Raises:
            NoSuchSegment: the log was deleted.
            CopyAborted: the log was deleted, and another one was begun.
        """

    @abstractmethod
    def _make(self) -> None:
        """Make an empty log if there is none.

        Raises:
            StoreBusy: a log cannot be made for now.
        """

    def _drop_rivals(self) -> None:
        """Delete other logs that were begun at the same time, if there can be any."""
        return

    @abstractmethod
    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take in the next records."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget all records."""


class Log(RecordTrail):
    """One log in a segment, for reading and writing. It remembers how far it has read.

    A subclass says what the records mean.

    Args:
        store: the store that holds the log.
        beside: the stream next to which the log lies. It need not exist.
        key: gives the key of the log's segment for a number from 0 to GENERATIONS - 1.

    Attributes:
        most: bytes of the longest log of this kind; see `MOST_LOG`.
    """

    most: int = MOST_LOG

    def __init__(self, store: Segments, beside: StreamName, key: Callable[[int], str]) -> None:
        self._names = [
            store.staging_name(beside, 0, key(generation)) for generation in range(GENERATIONS)
        ]
        self.name = self._names[0]
        self._store = store
        self._first: bytes | None = None
        self._start = 0
        self._length = 0
        self._count = 0

    @property
    def size(self) -> int:
        """The bytes of all records that were read and written, and were not replaced by another."""
        return self._length - self._start

    @property
    def end(self) -> int:
        """The offset in the log's segment up to which it was read and written."""
        return self._length

    def is_there(self) -> bool:
        """Tell whether there is a log, maybe an empty one."""
        known = self._length > 0 and any(self._store.infos([self.name]))
        return known or any(self._store.infos(self._names))

    def discard(self) -> None:
        """Delete the log, whatever is in it, under each name that it can have."""
        for name, info in zip(self._names, self._store.infos(self._names), strict=True):
            if info is not None:
                self._store.delete(name)
        self._reset()

    def _delete(self) -> bool:
        deleted = self._store.delete(self.name, length=self._length)
        self._reset()
        return deleted

    def _read_on(self) -> None:
        for _ in range(_TRIES):
            try:
                self._read_once()
            except SegmentTruncated:  # meanwhile; nothing is left of what was read
                continue
            return
        raise StoreBusy(f"{self.name} is truncated again and again while it is read")

    def _read_once(self) -> None:
        info = self._own()
        name = self.name
        if info is None:
            there = self._there(self._names)
            name = self._chosen(there)
            info = there.get(name)
        known = info is not None and name == self.name and self._start <= info.start
        if info is None or not known or not info.start <= self._length <= info.length:
            self._reset()
        self.name = name
        if info is None or info.length == self._length:
            return
        if not self._length and info.start:
            # What was truncated counts as one record: a log gets a summary behind others only.
            self._length, self._count = info.start, 1
        self._start = info.start
        try:
            self._add(self._read(name, self._length, info.length), info.length)
        except NoSuchSegment:  # deleted meanwhile
            self._reset()
        except BaseException:  # some of these were taken in, and must not be taken in twice
            self._reset()
            raise

    def _own(self) -> SegmentInfo | None:
        """Return the segment of the log that was read; None if all names have to be searched.

        A log with more than its first record is the log as long as it exists (see `_chosen`), so
        the other names need not be searched. Before that it may have to give way.
        """
        if self._count < 2:  # noqa: PLR2004 - one more than the first
            return None
        info = self._there([self.name]).get(self.name)
        return None if info is None or info.length < self._length else info

    def _there(self, names: Sequence[str]) -> dict[str, SegmentInfo]:
        """Return the segments that exist under these names, in the order of the names.

        Raises:
            JournalDamaged: a segment is longer than a log gets; it is not read.
        """
        infos = zip(names, self._store.infos(names), strict=True)
        there = {name: info for name, info in infos if info is not None}
        for name, info in there.items():
            length = info.length - info.start
            if length > self.most:
                raise JournalDamaged(
                    f"{name} is {size(length)} long, and no journal gets longer than"
                    f" {size(self.most)}"
                )
        return there

    def _chosen(self, there: Mapping[str, SegmentInfo]) -> str:
        """Choose the name that has the log. All drivers that look at the same time choose the same.

        Two drivers may begin a log at once. And a driver that was held up before making the log may
        make one minutes later, when others use another name. So an empty segment does not count
        beside one with records. A segment with only its first record gives way to one with more: no
        driver has acted on it, since its writer looks again before the next record
        (`_drop_rivals`).

        Raises:
            JournalDamaged: two segments have more than their first record.
        """
        full = [name for name, info in there.items() if info.length]
        if len(full) > 1:
            begun = [name for name in full if self._records_of(name, there[name]) > 1]
            if len(begun) > 1:
                raise JournalDamaged(f"{begun[0]} and {begun[1]} are journals of one copy")
            full = begun or full
        return next(iter((*full, *there)), self.name)

    def _records_of(self, name: str, info: SegmentInfo) -> int:
        """Count a log's records. Those that were truncated count as one."""
        try:
            left = sum(1 for _ in self._read(name, info.start, info.length))
        except NoSuchSegment:  # deleted meanwhile
            return 0
        return left + (1 if info.start else 0)

    def _read(self, name: str, start: int, end: int) -> Iterator[Mapping[str, Any]]:
        """Yield the records between two offsets, with one in memory at a time."""
        blocks = self._store.read(name, start, end, ahead=_AHEAD)
        for at, body in record_frames.bodies(block.data for block in blocks):
            with held(len(body) + weight_of_json(body)):
                yield record_frames.parsed(body, start + at)

    def _drop_rivals(self) -> None:
        """Delete other logs that have only their first record, once ours has its own.

        The driver that began such a log finds out by its next record, and has done nothing before.
        """
        there = self._there(self._names)
        for name, info in there.items():
            if name != self.name and info.length and self._records_of(name, info) == 1:
                self._store.delete(name, length=info.length)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> bool:
        data = b"".join(record_frames.frame(record) for record in records)
        if self._length - self._start + len(data) > self.most:
            raise PlanTooLarge(
                f"{self.name} would be longer than {size(self.most)}",
                remedy="Delete the copy, which drops what is staged; copy ranges of the stream, or"
                " fewer streams.",
            )
        if not self._store.append_at(self.name, self._length, data):
            return False
        self._add(records, self._length + len(data))
        return True

    def compact(self, summary: Mapping[str, Any]) -> bool:
        """Write a record that stands for all before it, and drop these.

        The record must say all that matters of the others, and whose log it is. If the process ends
        between the two, the log stays as long as it was, until the next time.

        Returns:
            Whether that was done; False if another driver wrote a record meanwhile.

        Raises:
            NoSuchSegment: the log was deleted.
        """
        at = self._length
        if not self._append([summary]):
            return False
        self._store.truncate_segment(self.name, at)
        self._start = at
        return True

    def _follow(self) -> None:
        before, first, name = self._length, self._first, self.name
        begin = self._start
        self._read_on()
        if self._first is None:  # deleted: the next look tells if the copy was finished or aborted
            raise NoSuchSegment("the copy's journal is gone", segment=self.name)
        # Once a log is truncated, its first record may be another one, which says whose log it is.
        other = self._start < begin or (self._start == begin and self._first != first)
        if self.name != name or self._length < before or other:
            raise CopyAborted(f"the copy that {self.name} belongs to was aborted")
        if self._length == before:
            raise StoreUnavailable(f"{self.name} is {before} bytes long, and yet it is not")

    def _make(self) -> None:
        """Make the log's segment under the first name that the store accepts, if there is none."""
        if there := self._there(self._names):
            self.name = self._chosen(there)
            return
        for name in self._names:
            if self._store.create(name) or self._store.infos([name]) != [None]:
                self.name = name
                return
        raise StoreBusy(f"the store has not let go of the names of {GENERATIONS} deleted journals")

    def _add(self, records: Iterable[Mapping[str, Any]], length: int) -> None:
        self._take(self._seen(records))
        self._length = length

    def _seen(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the records, and remember the digest of the log's first record."""
        for record in records:
            if self._first is None:
                self._first = hashlib.sha256(record_frames.frame(record)).digest()
            self._count += 1
            yield record

    def _reset(self) -> None:
        self._first, self._start, self._length, self._count = None, 0, 0, 0
        self._forget()
