"""A log in a segment of our own: what drivers write down, and any of them reads.

Records are appended by compare-and-set on the log's length, so that of two who write at once each
knows what stands before its own record.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from sluice.core.copy import journal
from sluice.core.values.text import size
from sluice.core.values.weight import weight_of_json
from sluice.errors import (
    CopyAborted,
    JournalDamaged,
    NoSuchSegment,
    PlanTooLarge,
    StoreBusy,
    StoreUnavailable,
)
from sluice.stores.allowance import held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sluice.core.values.model import SegmentInfo, StreamName
    from sluice.stores.base import Store

GENERATIONS = 16
"""Names a log can have. A store keeps a deleted name for minutes, so a copy that is aborted and run
again takes another one. Where several are there, see `Log._chosen`."""

MAX_RECORD = 7 << 20
"""Bytes of the longest record: stores take appends of up to 8 MiB."""


MOST_LOG: Final = 64 << 20
"""Bytes of the longest log: the digests of 8 TiB. Its length is for somebody else's server to tell,
and it is read into the memory of a process that others need as well."""

_AHEAD: Final = 1 << 20
"""Bytes that are asked for and not read yet."""


class Trail(ABC):
    """Records that any of several drivers appends to, and all read in one order.

    Where they lie is for one subclass, what they say for another.
    """

    name: str

    def delete(self) -> bool:
        """Delete the log if it is as it was last read; False when it is gone or is not."""
        return self._delete()

    @abstractmethod
    def discard(self) -> None:
        """Delete the log, whatever is in it."""

    @abstractmethod
    def _delete(self) -> bool:
        """See `delete`."""

    @abstractmethod
    def _read_on(self) -> None:
        """Take in what was written since."""

    @abstractmethod
    def _append(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """Write records behind what was read; False when there is more by now, or less.

        Raises:
            NoSuchSegment: the log was deleted.
        """

    @abstractmethod
    def _follow(self) -> None:
        """Read what somebody has written who was faster.

        Raises:
            NoSuchSegment: the log was deleted.
            CopyAborted: it was deleted and begun anew.
        """

    @abstractmethod
    def _make(self) -> None:
        """Make place for a log, where there is none.

        Raises:
            StoreBusy: there cannot be one for now.
        """

    def _drop_rivals(self) -> None:
        """Delete other logs that were begun at the same time, where that is possible."""
        return

    @abstractmethod
    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take in records that follow on those that were taken in before."""

    @abstractmethod
    def _forget(self) -> None:
        """Forget all records."""


class Log(Trail):
    """Reads and writes one log; remembers how far it has read. What it says is for a subclass.

    Args:
        store: where it is.
        beside: the stream next to which it lies; there need be none of that name.
        key: of the log's segment, by its generation.
    """

    def __init__(self, store: Store, beside: StreamName, key: Callable[[int], str]) -> None:
        self._names = [
            store.staging_name(beside, 0, key(generation)) for generation in range(GENERATIONS)
        ]
        self.name = self._names[0]
        self._store = store
        self._first: bytes | None = None
        self._length = 0

    def is_there(self) -> bool:
        """Whether there is a log, though nothing may be in it yet."""
        return any(self._store.infos(self._names))

    def discard(self) -> None:
        """See Trail."""
        self._store.delete(self.name)

    def _delete(self) -> bool:
        deleted = self._store.delete(self.name, length=self._length)
        self._reset()
        return deleted

    def _read_on(self) -> None:
        there = self._there()
        name = self._chosen(there)
        info = there.get(name)
        if info is None or name != self.name or info.length < self._length:
            self._reset()
        self.name = name
        if info is not None and info.length > self._length:
            try:
                self._add(self._read(name, self._length, info.length), info.length)
            except NoSuchSegment:  # deleted meanwhile
                self._reset()
            except BaseException:  # what was taken in of these would be taken in again
                self._reset()
                raise

    def _there(self) -> dict[str, SegmentInfo]:
        """Look which of the names there are, the first one first.

        Raises:
            JournalDamaged: one is longer than we make them; it is not read.
        """
        infos = zip(self._names, self._store.infos(self._names), strict=True)
        there = {name: info for name, info in infos if info is not None}
        for name, info in there.items():
            if info.length > MOST_LOG:
                raise JournalDamaged(
                    f"{name} is {size(info.length)} long, and no journal gets longer than"
                    f" {size(MOST_LOG)}"
                )
        return there

    def _chosen(self, there: Mapping[str, SegmentInfo]) -> str:
        """Say which of the names has the log: all who look at one time say the same.

        A driver that was held up at "make the log" may do so minutes later, when others have begun
        under another name; and two may begin at once. So what is empty counts for nothing beside
        what is not. A log with its first record only has led to nothing yet, since whoever writes
        that looks again before the next one (`_drop_rivals`).

        Raises:
            JournalDamaged: two of them have led to something.
        """
        full = [name for name, info in there.items() if info.length]
        if len(full) > 1:
            begun = [name for name in full if self._records_of(name, there[name]) > 1]
            if len(begun) > 1:
                raise JournalDamaged(f"{begun[0]} and {begun[1]} are journals of one copy")
            full = begun or full
        return next(iter((*full, *there)), self.name)

    def _records_of(self, name: str, info: SegmentInfo) -> int:
        try:
            return sum(1 for _ in self._read(name, 0, info.length))
        except NoSuchSegment:  # deleted meanwhile
            return 0

    def _read(self, name: str, start: int, end: int) -> Iterator[Mapping[str, Any]]:
        """The records between two offsets. One is in memory at a time, as long as it is used."""
        blocks = self._store.read(name, start, end, ahead=_AHEAD)
        for at, body in journal.bodies(block.data for block in blocks):
            with held(len(body) + weight_of_json(body)):
                yield journal.parsed(body, start + at)

    def _drop_rivals(self) -> None:
        """Delete other logs of a first record each, once that of our own is written.

        Who has begun one finds out by its next record, and has done nothing before.
        """
        there = self._there()
        for name, info in there.items():
            if name != self.name and info.length and self._records_of(name, info) == 1:
                self._store.delete(name, length=info.length)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> bool:
        data = b"".join(journal.frame(record) for record in records)
        if self._length + len(data) > MOST_LOG:
            raise PlanTooLarge(
                f"{self.name} would be longer than {size(MOST_LOG)}",
                remedy="Delete the copy, which drops what is staged; copy ranges of the stream, or"
                " fewer streams.",
            )
        if not self._store.append_at(self.name, self._length, data):
            return False
        self._add(records, self._length + len(data))
        return True

    def _follow(self) -> None:
        before, first, name = self._length, self._first, self.name
        self._read_on()
        if self._first is None:  # deleted: whether the copy was finished or aborted is seen next
            raise NoSuchSegment("the copy's journal is gone", segment=self.name)
        if self.name != name or self._length < before or self._first != first:
            raise CopyAborted(f"the copy that {self.name} belongs to was aborted")
        if self._length == before:
            raise StoreUnavailable(f"{self.name} is {before} bytes long, and yet it is not")

    def _make(self) -> None:
        """Make the log's segment under the first name that the store gives, unless there is one."""
        if there := self._there():
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
        """The same; remembers by which one the log begins."""
        for record in records:
            if self._first is None:
                self._first = hashlib.sha256(journal.frame(record)).digest()
            yield record

    def _reset(self) -> None:
        self._first, self._length = None, 0
        self._forget()
