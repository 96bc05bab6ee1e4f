"""Streams that grow, and archives of them, written as a driver does but in one thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.archive.formats import formats
from sluice.archive.formats.piece import Piece
from sluice.archive.runs.archive import Archive, place
from sluice.core.archive.growing import grown, without
from sluice.core.archive.manifest import (
    ArchivedSegment,
    ArchivedSource,
    CutOffset,
    Maker,
    Manifest,
    RecordedCut,
)
from sluice.core.events.digest import ChunkDigester, chunk_of, chunk_start
from sluice.core.events.framing import EventCounter
from sluice.core.events.grouping import EventStart
from sluice.core.values.model import KeyRange, StreamConfig, StreamName
from support.archiving.archived_events import framed, many_events
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.archive.head import Head
    from sluice.core.archive.names import Format

STREAM = StreamName(scope="shop", stream="orders")
START = 1_790_000_000_000


@dataclass
class SourceSegment:
    """A segment of a source.

    Attributes:
        epoch: number of the scale event that made it.
        id: the segment's id.
        keys: the keys it takes.
        data: its bytes, including truncated ones.
        start: first readable offset.
        sealed: whether it takes no more events.
    """

    epoch: int
    id: int
    keys: KeyRange
    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    sealed: bool = False


class Source:
    """A stream that is written to, split in halves, and truncated."""

    def __init__(self) -> None:
        self.segments = [SourceSegment(0, 0, KeyRange(low=0, high=1))]
        self._seed = 0

    def write(self, sizes: Iterable[int]) -> None:
        """Write events of these sizes to each segment that takes events."""
        for one in self.segments:
            if not one.sealed:
                self._seed += 1
                one.data += framed(many_events(self._seed, sizes))

    def split(self) -> None:
        """Replace each segment that takes events by two."""
        epoch = self.segments[-1].epoch + 1
        made = []
        for one in self.segments:
            if not one.sealed:
                one.sealed = True
                middle = (one.keys.low + one.keys.high) / 2
                made += [
                    KeyRange(low=one.keys.low, high=middle),
                    KeyRange(low=middle, high=one.keys.high),
                ]
        number = len(self.segments)
        self.segments += [
            SourceSegment(epoch, (epoch << 32) + number + i, keys) for i, keys in enumerate(made)
        ]


def take(
    archive: Archive, form: Format, source: Source, *, config: StreamConfig | None = None
) -> Head:
    """Record a run that adds the source's bytes since the last run."""
    on = archive.head()
    number, parent = place(on)
    before = archive.manifest(on.runs[-1]) if on else None
    known = {one.id: one for one in before.segments} if before else {}
    segments = tuple(
        _archived(archive, form, one, known.get(one.id), number) for one in source.segments
    )
    ends = [
        CutOffset(segment=one.id, offset=len(one.data)) for one in source.segments if not one.sealed
    ]
    first = [one for one in segments if one.epoch == 0]
    manifest = Manifest(
        run=number,
        format=form,
        source=ArchivedSource(stream=STREAM, store="tcp://127.0.0.1:9090"),
        parent=parent,
        maker=Maker(id="0a" * 16, name="StreamArchive shop/orders"),
        begin=RecordedCut(
            time=START,
            offsets=tuple(CutOffset(segment=one.id, offset=one.start) for one in first),
        ),
        end=RecordedCut(time=START + number * 60_000, offsets=tuple(ends)),
        config=config or StreamConfig(tags=("team=a",)),
        segments=segments,
    )
    return archive.record(manifest, on, verified=False)


def grown_archive(form: Format, sizes: list[int] | None = None) -> tuple[Archive, Source]:
    """Record three runs: of one segment, of two more after a split, and of later events."""
    archive = Archive(MemoryObjects())
    source = Source()
    sizes = sizes or [200, 0, 3000, 17] * 10
    source.write(sizes)
    take(archive, form, source)
    source.write(sizes)
    source.split()
    source.write(sizes)
    take(archive, form, source)
    source.write(sizes)
    take(archive, form, source)
    return archive, source


def held(archive: Archive) -> dict[str, bytes]:
    """Return the objects of an archive in memory, so that a test can damage them."""
    assert isinstance(archive.objects, MemoryObjects)
    return archive.objects.held


def _archived(
    archive: Archive,
    form: Format,
    segment: SourceSegment,
    before: ArchivedSegment | None,
    run: int,
) -> ArchivedSegment:
    """Return a segment with its new bytes in objects."""
    now = before or ArchivedSegment(
        epoch=segment.epoch,
        id=segment.id,
        keys=segment.keys,
        created=START,
        start=segment.start,
        end=segment.start,
        sealed=segment.sealed,
    )
    if now.end < segment.start:
        now = without(now, to=segment.start, reason="SourceTruncated", run=run)
    start, end = now.end, len(segment.data)
    piece = Piece(
        epoch=segment.epoch,
        segment=segment.id,
        start=start,
        end=end,
        following=EventStart(start),
        source="shop/orders/x",
    )
    data = memoryview(bytes(segment.data))
    objects = (
        [one.entry for one in formats.write(form, archive.objects, piece, [data[start:]])]
        if start < end
        else []
    )
    stretch = now.stretches[-1].start if now.stretches and now.stretches[-1].end == start else start
    digester = ChunkDigester(chunk_start(chunk_of(start), stretch), end)
    digester.feed(data[digester.offset :])
    counter = EventCounter()
    counter.feed(data[start:])
    return grown(
        now,
        end=end,
        objects=objects,
        digests=digester.done,
        events=counter.events,
        sealed=segment.sealed,
    )
