"""A run of an archive as a read-only store that holds one stream.

All code that reads streams can read a run. It finds the segments, key ranges, scale events and
offsets that the source had, and its configuration. Each object is compared with its SHA-256 before
any of its bytes is returned.
"""

from __future__ import annotations

import threading
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final
from uuid import UUID

from sluice.archive.formats.reading import read_segment
from sluice.archive.runs.pieces import pieces_of
from sluice.core.values.model import Segment, SegmentInfo
from sluice.errors import (
    InvalidSpec,
    NoSuchSegment,
    ScopeNotFound,
    SegmentTruncated,
    StreamNotFound,
)
from sluice.stores.reading import Block, Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.archive.runs.pieces import RestoredSegment
    from sluice.core.archive.head import RunEntry
    from sluice.core.archive.manifest import Manifest
    from sluice.core.values.model import ArchivedRun, StreamConfig, StreamName
    from sluice.stores.reading import Flow

BLOCK: Final = 1 << 20
"""Most bytes in a block. A writer of longer blocks would wait until each is confirmed, and no store
takes a long event as one."""

EVENT_COUNT: Final = UUID(int=1)
"""The attribute that holds a segment's number of events."""

CREATION_TIME: Final = UUID(int=2)
"""The attribute that holds a segment's creation time in the source."""


class ArchivedStore:
    """`sluice.stores.base.Source` for a run of an archive. It is safe to use from several threads.

    Args:
        archive: the archive.
        pinned: the run.
    """

    def __init__(self, archive: Archive, pinned: ArchivedRun) -> None:
        self.archive = archive
        self.pinned = pinned
        self._lock = threading.Lock()
        self._loaded: tuple[RunEntry, Manifest] | None = None

    def __repr__(self) -> str:
        """Return the class and the run."""
        return f"{type(self).__name__}({self.pinned})"

    # -- the run

    @property
    def entry(self) -> RunEntry:
        """The run, as a head would list it."""
        return self._load()[0]

    @property
    def manifest(self) -> Manifest:
        """The run's manifest. It is read once."""
        return self._load()[1]

    def _load(self) -> tuple[RunEntry, Manifest]:
        with self._lock:
            if self._loaded is None:
                self._loaded = self.archive.pinned(self.pinned)
            return self._loaded

    @cached_property
    def _generations(self) -> tuple[tuple[RestoredSegment, ...], ...]:
        return pieces_of(self.manifest)

    @cached_property
    def _pieces(self) -> dict[str, RestoredSegment]:
        """The pieces of the segments, by full name."""
        stream = self.manifest.source.stream
        return {self.segment_name(stream, one.id): one for one in chain(*self._generations)}

    def _piece(self, name: str) -> RestoredSegment:
        piece = self._pieces.get(name)
        if piece is None:
            raise NoSuchSegment(f"{self.pinned} has no segment {name}", segment=name)
        return piece

    @property
    def begins(self) -> dict[int, int]:
        """The first offset to be archived of each segment, by id. Bytes there may be lost."""
        return {one.id: one.start for one in self._pieces.values()}

    @property
    def torn(self) -> frozenset[int]:
        """Ids of the segments of which an unknown number of bytes after their end was lost."""
        return frozenset(
            one.id
            for one in self._pieces.values()
            if one.segment.lost is not None and one.end == one.segment.end
        )

    # -- its stream

    def describe(self, name: StreamName) -> Stream | None:
        """Return the stream as it was at the end of the run; None for any other name."""
        run = self.manifest
        if name != run.source.stream:
            return None
        first = {one.segment: 0 for one in run.begin.offsets}
        last = {one.segment: -1 for one in run.end.offsets}
        return Stream(run.config, self._at(first), self._at(last), run.sealed)

    def _at(self, places: Mapping[int, int]) -> tuple[Segment, ...]:
        """Return one piece of each of these segments, by key range: 0 is the first, -1 the last."""
        found = []
        for number, place in places.items():
            own = [one for one in self._pieces.values() if one.segment.id == number]
            found.append(_segment_of(own[place]))
        return tuple(sorted(found, key=lambda one: one.keys.low))

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """Return all segments by generation, as `archive.runs.pieces` cuts them.

        Raises:
            InvalidSpec: `since` is given.
            StreamNotFound: the run is of another stream.
        """
        if since:
            raise InvalidSpec(f"{self.pinned} begins with its own first segments, and no others")
        if name != self.manifest.source.stream:
            raise StreamNotFound(f"{self.pinned} is none of {name}")
        return tuple(tuple(map(_segment_of, made)) for made in self._generations)

    def had(self, name: StreamName, segment: int) -> bool:
        """Tell whether the run has a segment of this id, perhaps without any of its bytes."""
        return name == self.manifest.source.stream and segment in self.begins

    def configuration(self, name: StreamName) -> StreamConfig | None:
        """Return the stream's configuration at the end of the run; None for any other name."""
        return self.manifest.config if name == self.manifest.source.stream else None

    def scope_exists(self, scope: str) -> bool:
        """Tell whether this is the scope of the archived stream."""
        return scope == self.manifest.source.stream.scope

    def list_scopes(self) -> list[str]:
        """Return the scope of the archived stream, as the only one."""
        return [self.manifest.source.stream.scope]

    def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,  # noqa: ARG002 - see Catalog; an archived stream is always told
        most: int | None = None,  # noqa: ARG002 - see Catalog; there is one
    ) -> list[str]:
        """Return the name of the archived stream, if it has the tag or none is given."""
        if not self.scope_exists(scope):
            raise ScopeNotFound(f"{self.pinned} is of no stream in scope {scope!r}")
        run = self.manifest
        return [run.source.stream.stream] if tag is None or tag in run.config.tags else []

    def list_key_value_tables(self, scope: str) -> list[str]:
        """Return an empty list: archives have no key-value tables."""
        if not self.scope_exists(scope):
            raise ScopeNotFound(f"{self.pinned} is of no stream in scope {scope!r}")
        return []

    # -- its bytes

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """Return each segment as it was at the end of the run; None for those of other names.

        Bytes that were lost at its beginning count as truncated, as they were in the source.
        """
        found = [self._pieces.get(name) for name in names]
        return [
            None if one is None else SegmentInfo(start=one.first, length=one.end, sealed=one.sealed)
            for one in found
        ]

    def attributes(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """Return segments' numbers of events and creation times; None for other attributes."""
        return [self._attribute(self._pieces.get(name), what) for name, what in asked]

    @staticmethod
    def _attribute(piece: RestoredSegment | None, what: UUID) -> int | None:
        if piece is None or what not in {CREATION_TIME, EVENT_COUNT}:
            return None
        if what == CREATION_TIME:
            return piece.segment.created
        return 0 if piece.stretch is None else piece.stretch.events

    def digests(self, name: str) -> Mapping[int, bytes]:
        """Return SHA-256 of a segment's chunks, by chunk number, as recorded when archived."""
        stretch = self._piece(name).stretch
        return {} if stretch is None else stretch.chunk_digests

    def read(
        self,
        name: str,
        start: int,
        end: int,
        *,
        flow: Flow | None = None,
        ahead: int | None = None,  # noqa: ARG002 - one object at a time
    ) -> Iterator[Block]:
        """Yield the bytes [start, end) in order. Objects are read only as the caller takes blocks.

        Raises:
            ArchiveDamaged: an object is missing or has other bytes than were archived.
            SegmentTruncated: the first bytes were lost before they could be archived.
            NoSuchSegment: the run has no such segment.
        """
        piece = self._piece(name)
        if start < piece.first:
            raise SegmentTruncated(
                f"{name} begins at {piece.first} in {self.pinned}",
                segment=name,
                start_offset=piece.first,
            )
        at = start
        blocks = read_segment(self.archive.objects, self.manifest.format, piece.segment, start, end)
        for data in blocks:
            for begin in range(0, len(data), BLOCK):
                block = data[begin : begin + BLOCK]
                if flow is not None:
                    flow.spend(len(block))
                yield Block(at, block)
                at += len(block)

    # -- names

    @property
    def event_count(self) -> UUID:
        """The attribute that holds a segment's number of events."""
        return EVENT_COUNT

    @property
    def creation_time(self) -> UUID:
        """The attribute that holds a segment's creation time in the source."""
        return CREATION_TIME

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """Return the full name of a stream's segment."""
        return f"{stream}/{segment}"

    def is_original(self, segment: int) -> bool:
        """Tell whether the archive begins with this segment."""
        return any(one.id == segment and one.epoch == 0 for one in self.manifest.segments)

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """Raise InvalidSpec: an archive is read by its runs."""
        raise InvalidSpec(f"{text!r} is a cut of a live stream, and {self.pinned} is an archive's")

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """Raise InvalidSpec: no client reads an archive from a position on."""
        raise InvalidSpec(f"{self.pinned} has no cuts, and none of {stream} at {dict(cut)}")


def _segment_of(piece: RestoredSegment) -> Segment:
    return Segment(id=piece.id, keys=piece.segment.keys)
