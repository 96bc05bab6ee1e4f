"""The slices of a copy: bytes to stage, and staged bytes to verify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluice.core.events.counting import Counted, StretchCounter
from sluice.core.events.digest import CHUNK, ChunkDigester, chunk_end, chunk_of, chunk_start, chunks
from sluice.engine.access.source_runs import live
from sluice.engine.rounds.slices import Slice, SliceResult
from sluice.errors import (
    CutInsideEvent,
    DigestMismatch,
    EventsDamaged,
    IntegrityError,
    SluiceError,
    SourceTruncated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from sluice.engine.access.source_runs import Place
    from sluice.engine.rounds.throttle import Task
    from sluice.stores.base import Source, Store


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
        window: most bytes in flight, and most bytes read ahead.
    """

    source: str
    staging: str
    writer: UUID
    origin: int
    at: int
    end: int
    limit: int
    window: int

    @property
    def size(self) -> int:
        """Bytes to move, for sharing out."""
        return self.end - self.at

    def run(self, source: Source, target: Place, task: Task) -> SliceResult:
        """Append the bytes of the slice that the staging segment lacks, and hash whole chunks.

        Reading begins at the start of the chunk that is to be continued. So the chunk's digest
        covers all of it, even if an earlier attempt stopped in its midst.
        """
        result = SliceResult(slice=self)
        with (
            result.caught(),
            live(target).appender(self.staging, writer=self.writer, window=self.window) as appender,
        ):
            at = self.origin if appender.last is None else appender.last
            begin = chunk_start(chunk_of(at), self.origin)
            if at >= self.end:
                return result
            digester = ChunkDigester(begin, self.limit)
            result.digests = digester.done
            way = source.read(self.source, begin, self.end, flow=task.pace, ahead=self.window)
            for block in way:
                fresh = block.data[max(0, at - block.offset) :]
                if fresh:
                    end = block.offset + len(block.data)
                    appender.append(fresh, event_number=end)
                    result.moved += len(fresh)
                if digester.feed(block.data) and task.over:
                    break
            appender.flush()
        return result


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
    work: VerifySlice, source: Source, target: Store, result: VerifyResult, task: Task
) -> None:
    digester = ChunkDigester(work.start, work.limit)
    counting = _Counting(work) if work.count else None
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
    for chunk, found in digester.done.items():
        expected = work.known.get(chunk)
        if expected is None:
            expected = result.digests[chunk] = _source_digest(work, source, chunk, task)
        if found != expected:
            raise DigestMismatch(
                f"bytes {chunk_start(chunk, work.origin)} to {chunk_end(chunk, work.limit)} of "
                f"{work.source} were staged as other bytes: SHA-256 {found.hex()}, "
                f"expected {expected.hex()}"
            )
    if counting:
        result.counted = counting.finish()


class _Counting:
    """A counter of a slice's events. Bytes that are no events are an error if `strict` is set."""

    def __init__(self, work: VerifySlice) -> None:
        self._work = work
        self._counter = StretchCounter(work.start, work.end, work.limit, work.first)
        self._error: SluiceError | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """The bytes to read: none where an event of the slice before covers the whole slice."""
        return min(self._counter.begin, self._counter.reach), self._counter.reach

    def feed(self, block: memoryview) -> None:
        """Count events in the next bytes. Keep an error until `finish`."""
        if self._error is None:
            try:
                self._counter.feed(block)
            except EventsDamaged as error:
                self._error = _damaged(self._work, error.message)

    def finish(self) -> Counted | None:
        """Return the count; without a number where the bytes are no events and that is no error.

        Raises:
            EventsDamaged, CutInsideEvent, SourceTruncated, IntegrityError: the bytes are no events,
                and the slice is strict.
        """
        if self._error is None:
            try:
                return self._counter.finish()
            except EventsDamaged as error:
                self._error = _inside(self._work, error.message)
        if self._work.strict:
            raise self._error
        return Counted(self._counter.begin, None, self._work.limit)


def _damaged(work: VerifySlice, what: str) -> SluiceError:
    """Return the error for bytes that are no events: a bound inside an event, or damage."""
    if work.range is not None or work.truncated:
        return _inside(work, what)
    return EventsDamaged(f"in {work.source}, {what}")


def _inside(work: VerifySlice, what: str) -> SluiceError:
    """Return the error for a bound that lies inside an event."""
    what = f"in {work.source}, {what}"
    if work.truncated:
        return SourceTruncated(
            f"{what}; it was truncated to {work.origin} while it was copied, inside an event",
            remedy="Truncate the source at the end of an event, then run the copy again.",
        )
    if work.range is not None:
        bounds = f"of offsets {work.origin} and {work.limit} one is inside an event"
        return CutInsideEvent(f"{what}; {bounds}", field=f"spec.source.ranges[{work.range}]")
    remedy = "Abort the copy and run it again: the bounds are taken anew."
    return IntegrityError(what, remedy=remedy)


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
