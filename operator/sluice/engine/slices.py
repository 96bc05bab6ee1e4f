"""The work that tasks do: bounded slices of copying and of verifying.

A slice is a value that travels to a task and back in a result. It carries no credentials and no
state: where to go on is asked of the store, and a slice that another task overtook simply ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sluice.archive.shelf import Shelf
from sluice.core.counting import Counted, StretchCounter
from sluice.core.digest import CHUNK, ChunkDigester, chunk_end, chunk_of, chunk_start, chunks
from sluice.engine.archiving.slices import Archived, ArchiveSlice, CheckSlice, check, put
from sluice.engine.throttle import Task
from sluice.errors import (
    CutInsideEvent,
    DigestMismatch,
    EventsDamaged,
    IntegrityError,
    InvalidEventNumber,
    SluiceError,
    SourceTruncated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.core.model import ArchivedRun
    from sluice.engine.throttle import Pace
    from sluice.stores.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySlice:
    """Bytes of one part to stage. Offsets are the source's.

    Attributes:
        stream: the stream's place in the plan.
        segment: the segment's place in its stream's plan.
        store: the place of the store to read from.
        archive: the run to read, where that is a place for archives.
        source: full name of the segment to read.
        staging: full name of the staging segment to append to.
        writer: the writer id that fences the staging segment.
        origin: where the part begins.
        at: where the store stood when the slice was made; the truth is asked of it again.
        end: where the slice ends: a chunk boundary or the part's end.
        limit: where the part ends.
        window: most bytes in flight; and read ahead.
        rate: most bytes per second; None for no limit.
        seconds: of its task, after which it ends at the next chunk boundary.
    """

    stream: int
    segment: int
    store: int = 0
    archive: ArchivedRun | None = None
    source: str
    staging: str
    writer: UUID
    origin: int
    at: int
    end: int
    limit: int
    window: int
    rate: float | None = None
    seconds: float = 20.0

    @property
    def size(self) -> int:
        """Bytes to move, for sharing out."""
        return self.end - self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySlice:
    """Staged bytes to compare with the source's digests. Offsets are the source's.

    Attributes:
        stream: the stream's place in the plan.
        segment: the segment's place in its stream's plan.
        store: the place of the store to read from.
        archive: the run to read, where that is a place for archives.
        source: full name of the source segment, read only where a digest is not known.
        staging: full name of the whole staging segment.
        origin: source offset of the staging segment's first byte.
        start: first offset to verify: a chunk's or the range's start.
        end: where to stop: a chunk boundary or the range's end.
        limit: where the segment's range ends.
        known: SHA-256 of the source's chunks, as far as they are known.
        compare: whether digests are compared; False only counts.
        count: whether events are counted.
        first: where the first event begins that is to be counted; None where nobody knows.
        strict: whether bytes that are no events are an error.
        range: which range that was asked for is a part of the segment; None for all of it.
        truncated: whether it begins where the source was truncated to while it was copied.
        window: most bytes read ahead; None for what the store deems good.
        rate: most bytes per second; None for no limit.
        seconds: of its task, after which it is not begun any more.
    """

    stream: int
    segment: int
    store: int = 0
    archive: ArchivedRun | None = None
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
    rate: float | None = None
    seconds: float = 20.0

    @property
    def size(self) -> int:
        """Bytes to read, for sharing out."""
        return self.end - self.start


Slice = CopySlice | VerifySlice | ArchiveSlice | CheckSlice

if TYPE_CHECKING:
    Ends = tuple[Store, Store | Shelf]
    """What a slice reads from, and writes to."""


@dataclass(slots=True, kw_only=True)
class SliceResult:
    """What came of a slice.

    Attributes:
        slice: the slice.
        moved: bytes appended or verified.
        digests: SHA-256 of source chunks that became known.
        counted: events counted, by a counting VerifySlice that found some.
        archived: what came of a slice of an archive.
        error: why the slice ended early.
    """

    slice: Slice
    moved: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)
    counted: Counted | None = None
    archived: Archived | None = None
    error: SluiceError | None = None


def run_slice(
    work: Slice, source: Store, target: Store | Shelf, task: Task | None = None
) -> SliceResult:
    """Do a slice, perhaps of a task. Errors of the tree are in the result, others propagate."""
    task = task or Task(work.rate, work.seconds)
    result = SliceResult(slice=work)
    try:
        if isinstance(target, Shelf):
            _archive(work, source, target, result, task)
        elif isinstance(work, CopySlice):
            _copy(work, source, target, result, task)
        elif isinstance(work, VerifySlice):
            _verify(work, source, target, result, task)
    except InvalidEventNumber:
        pass  # another driver is at this part: whoever goes on asks the store where
    except SluiceError as error:
        result.error = error
    return result


def run_share(
    share: Sequence[Slice], stores: Callable[[Slice], Ends], pace: Pace | None = None
) -> Iterator[SliceResult]:
    """Do the slices of a task, one after the other, for as long as its time lasts.

    The first one is begun in any case. What is not begun is done in the next round.

    Args:
        share: the slices.
        stores: gives what a slice reads from and writes to.
        pace: what else is moved with them keeps to it, too; None for a pace of their own.
    """
    task = None
    for work in share:
        if task is not None and task.over:
            return
        task = task or Task(work.rate, work.seconds, pace)
        yield run_slice(work, *stores(work), task)


def _archive(work: Slice, source: Store, target: Shelf, result: SliceResult, task: Task) -> None:
    """Do a slice of an archive."""
    if isinstance(work, ArchiveSlice):
        put(work, source, target.archive(work.path).objects, result, task)
    elif isinstance(work, CheckSlice):
        check(work, target.archive(work.path).objects, result, task)


def _copy(work: CopySlice, source: Store, target: Store, result: SliceResult, task: Task) -> None:
    """Append what the staging segment lacks of the slice, and hash whole chunks on the way.

    Reading begins at the chunk where the store stands, so the chunk's digest is whole even when
    an earlier attempt stopped in its midst.
    """
    with target.appender(work.staging, writer=work.writer, window=work.window) as appender:
        at = work.origin if appender.last is None else appender.last
        begin = chunk_start(chunk_of(at), work.origin)
        if at >= work.end:
            return
        digester = ChunkDigester(begin, work.limit)
        result.digests = digester.done
        way = source.read(work.source, begin, work.end, flow=task.pace, ahead=work.window)
        for block in way:
            fresh = block.data[max(0, at - block.offset) :]
            if fresh:
                end = block.offset + len(block.data)
                appender.append(fresh, event_number=end)
                result.moved += len(fresh)
            if digester.feed(block.data) and task.over:
                break
        appender.flush()


def _verify(
    work: VerifySlice, source: Store, target: Store, result: SliceResult, task: Task
) -> None:
    """Hash the staged bytes again and compare them chunk by chunk with the source's digests."""
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
    """Counts a slice's events. Where the bytes are no events, that is an error or a result."""

    def __init__(self, work: VerifySlice) -> None:
        self._work = work
        self._counter = StretchCounter(work.start, work.end, work.limit, work.first)
        self._error: SluiceError | None = None

    @property
    def bounds(self) -> tuple[int, int]:
        """What has to be read: nothing where an event of the slice before reaches over it all."""
        return min(self._counter.begin, self._counter.reach), self._counter.reach

    def feed(self, block: memoryview) -> None:
        """Take the next bytes."""
        if self._error is None:
            try:
                self._counter.feed(block)
            except EventsDamaged as error:
                self._error = _damaged(self._work, error.message)

    def finish(self) -> Counted | None:
        """What was counted. Raises what is wrong with the events, where that is an error."""
        if self._error is None:
            try:
                return self._counter.finish()
            except EventsDamaged as error:
                self._error = _inside(self._work, error.message)
        if self._work.strict:
            raise self._error
        return Counted(self._counter.begin, None, self._work.limit)


def _damaged(work: VerifySlice, what: str) -> SluiceError:
    """The error that there are no events, where a range begins inside one."""
    if work.range is not None or work.truncated:
        return _inside(work, what)
    return EventsDamaged(f"in {work.source}, {what}")


def _inside(work: VerifySlice, what: str) -> SluiceError:
    """The error that a range has its bounds inside events."""
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


def _source_digest(work: VerifySlice, source: Store, chunk: int, task: Task) -> bytes:
    """The digest of a source chunk that no attempt wrote down before it died."""
    start = chunk_start(chunk, work.origin)
    digester = ChunkDigester(start, work.limit)
    end = chunk_end(chunk, work.limit)
    for block in source.read(work.source, start, end, flow=task.pace, ahead=work.window):
        digester.feed(block.data)
    return digester.done[chunk]


def verify_slices(template: VerifySlice, most: int) -> list[VerifySlice]:
    """A segment's verification in slices of at most `most` bytes."""
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
