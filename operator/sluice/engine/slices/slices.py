"""The slices of a copy: bytes to stage, and staged bytes to verify."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sluice.core.events.counting import Counted, CountedStretch, StretchCounter
from sluice.core.events.digest import CHUNK, ChunkDigester, chunk_end, chunk_of, chunk_start, chunks
from sluice.core.pace.slicing import slice_end
from sluice.engine.access.source_runs import live
from sluice.engine.slices.slice_count import Counting
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import (
    DigestMismatch,
    EventsDamaged,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from sluice.engine.access.source_runs import Place
    from sluice.engine.tasks.throttle import Task
    from sluice.stores.base import Source
    from sluice.stores.reading import SegmentReader
    from sluice.stores.writing import Appender

READ_BACK: Final = 64 << 20
"""Bytes that a task stages before it reads them back: the store still has them in its memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySlice(Slice):
    """A slice of one part to stage. Once its time is over, it ends at the next chunk boundary.

    Attributes:
        source: full name of the segment to read.
        staging: full name of the staging segment to append to.
        writer: the writer id that fences the staging segment.
        origin: where the part begins.
        at: how far the part was staged when the slice was made. `run` asks the store again.
        end: where the slice ends: a chunk boundary or the part's end.
        limit: where the part ends.
        whole: the bounds of the segment's range.
        window: most bytes in flight, and most bytes read ahead.
        verify: whether staged bytes are read back and compared with the source's.
        count: whether their events are counted.
    """

    source: str
    staging: str
    writer: UUID
    origin: int
    at: int
    end: int
    limit: int
    whole: tuple[int, int]
    window: int
    verify: bool = False
    count: bool = False

    @property
    def size(self) -> int:
        """Bytes to move, for sharing out."""
        return self.end - self.at

    def rest(self, most: int) -> CopySlice | None:
        """Return the slice of the part that follows this one; None at the part's end."""
        if self.end == self.limit:
            return None
        return replace(self, at=self.end, end=slice_end(self.end, self.limit, most))

    def run(self, source: Source, target: Place, task: Task) -> CopyResult:
        """Append the bytes of the slice that the staging segment lacks, and hash whole chunks.

        Reading begins at the start of the chunk that is to be continued. So the chunk's digest
        covers all of it, even if an earlier attempt stopped in its midst. With `verify`, the bytes
        are read back as they are staged.
        """
        result = CopyResult(slice=self)
        store = live(target)
        with (
            result.caught(),
            store.appender(self.staging, writer=self.writer, window=self.window) as appender,
        ):
            at = self.origin if appender.last is None else appender.last
            if at < self.end:
                _Transfer(self, source, store, task, result).run(appender, at)
        return result


@dataclass(slots=True, kw_only=True)
class CopyResult(SliceResult):
    """The result of staging a slice.

    Attributes:
        verified: the stretches that were read back and compared, with their events if counted.
    """

    verified: list[CountedStretch] = field(default_factory=list)


class _Transfer:
    """One run of a slice that copies.

    Args:
        work: the slice.
        source: the store to read from.
        target: the store to write to.
        task: the pace to keep to, and the time that is left.
        result: gets digests, counts and verified stretches.
    """

    def __init__(
        self, work: CopySlice, source: Source, target: SegmentReader, task: Task, result: CopyResult
    ) -> None:
        self._work = work
        self._source = source
        self._target = target
        self._task = task
        self._result = result

    def run(self, appender: Appender, at: int) -> None:
        """Stage the bytes from `at` on, up to READ_BACK bytes at a time, and read them back."""
        work = self._work
        begin = chunk_start(chunk_of(at), work.origin)
        digester = ChunkDigester(begin, work.limit)
        self._result.digests = digester.done
        first = begin if begin == work.whole[0] else None
        over = False
        while begin < work.end and not over:
            end = slice_end(begin, work.end, READ_BACK) if work.verify else work.end
            over = self._stage(appender, at, end, digester)
            appender.flush()
            if work.verify:
                first = self._read_back(begin, first, digester)
            begin = digester.offset

    def _stage(self, appender: Appender, at: int, end: int, digester: ChunkDigester) -> bool:
        """Hash the source from the digester's offset on; append it from `at` on.

        Returns:
            Whether the task's time is over. Then a chunk has just ended.
        """
        work = self._work
        begin, pace = digester.offset, self._task.pace
        for block in self._source.read(work.source, begin, end, flow=pace, ahead=work.window):
            fresh = block.data[max(0, at - block.offset) :]
            if fresh:
                appender.append(fresh, event_number=block.offset + len(block.data))
                self._result.moved += len(fresh)
            if digester.feed(block.data) and self._task.over:
                return True
        return False

    def _read_back(self, begin: int, first: int | None, staged: ChunkDigester) -> int | None:
        """Compare the bytes that were just staged, and count their events.

        Bytes that are no events are no evidence: the step that verifies tells what they mean.

        Args:
            begin: where the bytes begin.
            first: where their first event begins, if that is known.
            staged: the digests of the staged bytes, which end at its offset.

        Returns:
            Where the next event begins, if that is known.

        Raises:
            DigestMismatch: the store holds other bytes.
        """
        work, end, pace = self._work, staged.offset, self._task.pace
        found = ChunkDigester(begin, work.limit)
        counter = _QuietCounter(begin, end, work.whole[1], first) if work.count else None
        stretch = begin - work.origin, end - work.origin
        for block in self._target.read(work.staging, *stretch, flow=pace, ahead=work.window):
            found.feed(block.data)
            if counter is not None:
                counter.feed_at(block.offset + work.origin, block.data)
        _compare(work.source, (work.origin, work.limit), found.done, staged.done)
        if counter is None:
            self._result.verified.append(CountedStretch(begin, end, None))
            return None
        if end < counter.reach:  # the rest of a header that begins in the bytes
            for block in self._source.read(work.source, end, counter.reach):
                counter.feed_at(block.offset, block.data)
        counted = counter.finish()
        if counter.broken:
            return None
        self._result.verified.append(CountedStretch(begin, end, counted))
        return None if counted is None else counted.following


class _QuietCounter(StretchCounter):
    """A counter that remembers if bytes are no events, in place of raising an error.

    Attributes:
        broken: whether some bytes are no events.
    """

    broken = False

    def feed_at(self, offset: int, block: memoryview) -> None:
        """Take the bytes at an offset. Those before the first event are left out."""
        if not self.broken:
            with self._quiet():
                self.feed(block[max(0, self.begin - offset) :])

    def finish(self) -> Counted | None:
        """Return the count; None if no events were found, or the counter is broken."""
        if not self.broken:
            with self._quiet():
                return super().finish()
        return None

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        try:
            yield
        except EventsDamaged:
            self.broken = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySlice(Slice):
    """A slice of staged bytes to compare with the source's digests. No time limit ends it early.

    Attributes:
        source: full name of the source segment. It is read only where a digest is not known.
        staging: full name of the whole staging segment.
        origin: source offset of the staging segment's first byte.
        start: first offset to verify: a chunk's or the range's start.
        end: where to stop: a chunk boundary or the range's end.
        limit: where the segment's range ends.
        known: SHA-256 of the source's chunks, as far as they are known.
        compare: whether digests are compared; False only counts.
        count: whether events are counted.
        first: where the first event to count begins; None if that is not known yet.
        strict: whether bytes that are no events are an error.
        range: number of the requested range, if that is a part of the segment; else None.
        truncated: whether the segment begins where its source was truncated during the copy.
        window: most bytes read ahead; None for the store's own choice.
    """

    source: str
    staging: str
    origin: int
    start: int
    end: int
    limit: int
    known: Mapping[int, bytes]
    compare: bool = True
    count: bool = False
    first: int | None = None
    strict: bool = True
    range: int | None = None
    truncated: bool = False
    window: int | None = None

    @property
    def size(self) -> int:
        """Bytes to read, for sharing out."""
        return self.end - self.start

    def run(self, source: Source, target: Place, task: Task) -> VerifyResult:
        """Hash the staged bytes, and compare them chunk by chunk with the source's digests."""
        result = VerifyResult(slice=self)
        with result.caught():
            _verify(self, source, live(target), result, task)
        return result


@dataclass(slots=True, kw_only=True)
class VerifyResult(SliceResult):
    """The result of verifying a slice.

    Attributes:
        counted: the count of events, if events were counted.
    """

    counted: Counted | None = None


def _verify(
    work: VerifySlice, source: Source, target: SegmentReader, result: VerifyResult, task: Task
) -> None:
    digester = ChunkDigester(work.start, work.limit)
    counting = Counting(work) if work.count else None
    begin, end = counting.bounds if counting else (work.start, work.end)
    staged = (work.staging, begin - work.origin, end - work.origin)
    way = target.read(*staged, flow=task.pace, ahead=work.window)
    for block in way if begin < end else ():
        own = block.data[: max(0, work.end - work.origin - block.offset)]
        if work.compare:
            digester.feed(own)
        if counting:
            counting.feed(block.data)
        result.moved += len(own)
    for chunk in digester.done:
        if chunk not in work.known:
            result.digests[chunk] = _source_digest(work, source, chunk, task)
    known = {**work.known, **result.digests}
    _compare(work.source, (work.origin, work.limit), digester.done, known)
    if counting:
        result.counted = counting.finish()


def _compare(
    name: str, bounds: tuple[int, int], found: Mapping[int, bytes], expected: Mapping[int, bytes]
) -> None:
    """Compare the digests of staged chunks with the source's, by chunk number.

    Raises:
        DigestMismatch: a chunk holds other bytes.
    """
    for chunk, digest in found.items():
        if digest != expected[chunk]:
            raise DigestMismatch(
                f"bytes {chunk_start(chunk, bounds[0])} to {chunk_end(chunk, bounds[1])} of "
                f"{name} were staged as other bytes: SHA-256 {digest.hex()}, "
                f"expected {expected[chunk].hex()}"
            )


def _source_digest(work: VerifySlice, source: Source, chunk: int, task: Task) -> bytes:
    """Read a source chunk whose digest no attempt has recorded, and return its digest."""
    start = chunk_start(chunk, work.origin)
    digester = ChunkDigester(start, work.limit)
    end = chunk_end(chunk, work.limit)
    for block in source.read(work.source, start, end, flow=task.pace, ahead=work.window):
        digester.feed(block.data)
    return digester.done[chunk]


def verify_slices(template: VerifySlice, most: int) -> list[VerifySlice]:
    """Cut a segment's verification into slices of at most `most` bytes, but of at least a chunk."""
    step = max(1, most // CHUNK)
    numbers = chunks(template.start, template.end)
    return [
        replace(
            template,
            start=chunk_start(group[0], template.start),
            end=chunk_end(group[-1], template.end),
            known={c: template.known[c] for c in group if c in template.known},
            first=template.first if group[0] == numbers[0] else None,
        )
        for group in (numbers[i : i + step] for i in range(0, len(numbers), step))
    ]
