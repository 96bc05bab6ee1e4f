"""Streams to read as tables: live ones, runs of archives, or a run and then the live stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from sluice.archive.runs.source import ArchivedStore
from sluice.core.tables.positions import SegmentPosition, position, truncated
from sluice.core.values.model import SegmentInfo
from sluice.errors import (
    InvalidSpec,
    NoSuchSegment,
    SegmentTruncated,
    SourceNotFound,
    SourceReplaced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sluice.core.tables.positions import Generations, StreamPosition
    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Source
    from sluice.stores.reading import Block, Stream

TRIES: Final = 5
"""How often a position is taken before a read fails because the stream was truncated meanwhile."""


class TableSource(Protocol):
    """A stream that is read by positions. Segments are named by their ids."""

    stream: StreamName

    def head(self) -> StreamPosition:
        """Return the position of the oldest event."""
        ...

    def tail(self) -> StreamPosition:
        """Return the position after the last event."""
        ...

    def generations(self, since: StreamPosition) -> Generations:
        """Return the segments from those of a position on, by the scale events that made them."""
        ...

    def infos(self, segments: Sequence[int]) -> dict[int, SegmentInfo | None]:
        """Return the present state of segments, by id; None for segments that are gone."""
        ...

    def read(self, segment: int, start: int, end: int) -> Iterator[Block]:
        """Read the bytes [start, end) of a segment, ahead of the caller.

        Raises:
            SourceTruncated: bytes are gone.
        """
        ...

    def segment_name(self, segment: int) -> str:
        """Return a segment's full name, as event pointers have it."""
        ...

    def at_cut(self, text: str) -> StreamPosition:
        """Return the position of a cut, as the store's clients write it. InvalidSpec."""
        ...

    def at(self, offsets: Mapping[int, int]) -> StreamPosition:
        """Return the position at these offsets by segment. InvalidSpec if it is none."""
        ...


class StoredStream:
    """A stream of one store: a live one, or that of a run of an archive.

    Args:
        store: the store.
        stream: the stream.

    Attributes:
        stream: the stream.
    """

    def __init__(self, store: Source, stream: StreamName) -> None:
        self.stream = stream
        self._store = store

    def head(self) -> StreamPosition:
        """Return the position of the oldest event.

        Raises:
            SourceNotFound: there is no such stream.
            SourceReplaced: the stream was truncated again and again meanwhile.
        """
        return self._edge(end=False)

    def tail(self) -> StreamPosition:
        """Return the position after the last event. Errors are those of `head`."""
        return self._edge(end=True)

    def _edge(self, *, end: bool) -> StreamPosition:
        for _ in range(TRIES):
            stream = self._described()
            segments = stream.tail if end else stream.head
            infos = self.infos([one.id for one in segments])
            known = [(one, infos[one.id]) for one in segments]
            places = [
                _place(one, info.length if end else info.start) for one, info in known if info
            ]
            if len(places) == len(segments):
                return position(self.stream, places)
        raise SourceReplaced(f"{self.stream} was truncated or deleted while it was looked at")

    def _described(self) -> Stream:
        stream = self._store.describe(self.stream)
        if stream is None:
            raise SourceNotFound(f"there is no stream {self.stream}", field="stream")
        return stream

    def generations(self, since: StreamPosition) -> Generations:
        """Return the segments from those of a position on, by scale events.

        Raises:
            SourceReplaced: the stream was deleted, and perhaps made again.
        """
        if isinstance(self._store, ArchivedStore):  # begins with its own first segments
            return self._store.generations(self.stream)
        for one in since.segments:
            if not self._store.had(self.stream, one.id):
                raise SourceReplaced(
                    f"{self.stream} has and had no segment {one.id}, which the position names",
                    remedy="The stream was deleted and made again, or the position is of another "
                    "one. Begin anew, with another checkpoint.",
                )
        return self._store.generations(self.stream, since.cut)

    def infos(self, segments: Sequence[int]) -> dict[int, SegmentInfo | None]:
        """Return the present state of segments, by id; None for segments that are gone."""
        infos = self._store.infos([self.segment_name(one) for one in segments])
        return dict(zip(segments, infos, strict=True))

    def read(self, segment: int, start: int, end: int) -> Iterator[Block]:
        """Read the bytes [start, end) of a segment, ahead of the caller. SourceTruncated."""
        at = start
        try:
            for block in self._store.read(self.segment_name(segment), start, end):
                yield block
                at = block.offset + len(block.data)
        except SegmentTruncated as error:
            now = SegmentInfo(start=error.start_offset or 0, length=end, sealed=False)
            raise truncated(self.stream, segment, at, now) from error
        except NoSuchSegment as error:
            raise truncated(self.stream, segment, at) from error

    def segment_name(self, segment: int) -> str:
        """Return a segment's full name in the store."""
        return self._store.segment_name(self.stream, segment)

    def at_cut(self, text: str) -> StreamPosition:
        """Return the position of a cut, as the store's clients write it.

        Raises:
            InvalidSpec: the text is no cut of the stream.
        """
        return self.at(self.offsets_of(text))

    def offsets_of(self, text: str) -> dict[int, int]:
        """Return the offsets of a cut. InvalidSpec if the text is no cut of the stream."""
        stream, offsets = self._store.read_cut(text)
        if stream != self.stream:
            raise InvalidSpec(f"this is a cut of {stream}, not of {self.stream}", field="position")
        return offsets

    def at(self, offsets: Mapping[int, int]) -> StreamPosition:
        """Return the position at these offsets by segment.

        Raises:
            InvalidSpec: the stream has no such segment, or it is truncated away.
        """
        return placed(self.stream, self.generations(self.head()), offsets)


def placed(
    stream: StreamName, generations: Generations, offsets: Mapping[int, int]
) -> StreamPosition:
    """Return the position at these offsets by segment.

    Raises:
        InvalidSpec: the stream has no such segment, or it is truncated away.
    """
    known = {one.id: one for made in generations for one in made}
    unknown = sorted(offsets.keys() - known.keys())
    if unknown or not offsets:
        raise InvalidSpec(
            f"{stream} has no segment {', '.join(map(str, unknown))}, or it was truncated",
            field="position",
            remedy="Take the cut from the stream itself, as `sluice streams cut` prints it.",
        )
    return position(stream, [_place(known[one], at) for one, at in offsets.items()])


def _place(segment: Segment, offset: int) -> SegmentPosition:
    return SegmentPosition(id=segment.id, keys=segment.keys, offset=offset)


class ContinuedStream:
    """A live stream whose older events come from an archive of it, at the exact offset.

    The run has the stream's own segments and offsets. So a position counts on both sides of the
    seam, and bytes that both have are the same: the live stream's are read.

    Args:
        run: the run of the archive.
        live: the live stream.

    Attributes:
        stream: the stream.

    Raises:
        InvalidSpec: the archive is of another stream.
    """

    def __init__(self, run: StoredStream, live: StoredStream) -> None:
        if run.stream != live.stream:
            raise InvalidSpec(
                f"the archive is one of {run.stream}, and the stream is {live.stream}",
                field="archive",
            )
        self.stream = live.stream
        self._run = run
        self._live = live

    def head(self) -> StreamPosition:
        """Return the position of the archive's oldest event."""
        return self._run.head()

    def tail(self) -> StreamPosition:
        """Return the position after the live stream's last event."""
        return self._live.tail()

    def generations(self, since: StreamPosition) -> Generations:
        """Return the segments of the run, then those that the live stream got later."""
        seam = self._run.tail()
        return [*self._run.generations(since), *self._live.generations(seam)[1:]]

    def infos(self, segments: Sequence[int]) -> dict[int, SegmentInfo | None]:
        """Return the state of segments, with what the archive has of them."""
        archived, live = self._run.infos(segments), self._live.infos(segments)
        return {one: _joined(archived[one], live[one]) for one in segments}

    def read(self, segment: int, start: int, end: int) -> Iterator[Block]:
        """Read the bytes [start, end) of a segment: those that are gone from the archive."""
        live = self._live.infos([segment])[segment]
        archived = self._run.infos([segment])[segment]
        edge = start
        if archived is not None and (live is None or live.start > start):
            edge = max(start, min(end, archived.length))
            yield from self._run.read(segment, start, edge)
        if edge < end:
            yield from self._live.read(segment, edge, end)

    def segment_name(self, segment: int) -> str:
        """Return a segment's full name in the live store."""
        return self._live.segment_name(segment)

    def at_cut(self, text: str) -> StreamPosition:
        """Return the position of a cut of the live stream, which may lie in the archive."""
        return self.at(self._live.offsets_of(text))

    def at(self, offsets: Mapping[int, int]) -> StreamPosition:
        """Return the position at these offsets by segment. InvalidSpec if it is none."""
        return placed(self.stream, self.generations(self.head()), offsets)


def _joined(archived: SegmentInfo | None, live: SegmentInfo | None) -> SegmentInfo | None:
    """Return a segment's state. A read finds out if bytes between both are gone."""
    if archived is None:
        return live
    if live is None:
        # Of a segment that is gone, the archive has all if it was sealed then.
        return archived if archived.sealed else None
    return live.model_copy(update={"start": min(archived.start, live.start)})
