"""The plan of a stream's copy: an immutable value.

It is made before a byte moves and recorded in the target store, where the first recorded one
wins, so every driver of a copy works on the same bounds. It names streams, segments, bounds,
source identity and parts; it holds no credentials and nothing that may change while it runs.
"""

from __future__ import annotations

import hashlib
import operator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from sluice.core.values.archive_layout import stream_at
from sluice.core.values.model import (
    ArchivedRun,
    Frozen,
    KeyRange,
    StoreAddress,
    StreamConfig,
    StreamName,
    is_none,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

OnTruncation = Literal["Fail", "Record"]
"""What becomes of a copy whose source loses bytes before they were read."""


class Part(NamedTuple):
    """A byte range of a source segment that is staged by itself, in source offsets."""

    number: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """Bytes in the part."""
        return self.end - self.start


class SourceStream(Frozen):
    """A stream to copy from.

    Attributes:
        stream: its name.
        store: the store's place among those that the plan reads from.
        archive: the run of an archive that holds the stream; no other one has the planned bytes for
            certain.
    """

    stream: StreamName
    store: int = 0
    archive: ArchivedRun | None = Field(default=None, exclude_if=is_none)


class SegmentPlan(Frozen):
    """What is copied of one source segment: the bytes [start, end).

    Attributes:
        source: the place of its stream among the sources.
        id: the segment's id there.
        keys: the keys it takes; the target has a segment with the same range.
        generation: which scale event of the source made it, from 1; 0 for those that the copy
            begins with. Another range, or another source, goes on counting with the segments that
            it begins with.
        range: which of the ranges that were asked for begins or ends within it; None where it is
            copied from its first readable byte to its end.
        start: first offset copied.
        end: offset after the last byte copied.
        created: the segment's creation time in ms; with the id it is the source's identity.
        events: number of events in the range as the source's store says, which is too low where
            transactions brought some; None when it cannot tell for this range. They are counted
            while the staged bytes are verified; only a copy without verification takes the store's
            word.
        cuts: offsets where a new part begins, ascending, strictly inside (start, end).
        torn: whether its source is gone behind `end`, and nobody knows what it had there, if
            anything: so it is with a segment that was gone when a run of an archive came to it.
        lost: bytes before `start` that were asked for, and that the source had lost before they
            were read; never a part of a recorded plan, but of what a journal makes of it.
        attempt: how often the segment was begun anew for that reason.
        edition: how often its bounds were amended.
    """

    source: int = 0
    id: int
    keys: KeyRange
    generation: int = 0
    range: int | None = None
    start: int
    end: int
    created: int
    events: int | None
    cuts: tuple[int, ...] = ()
    torn: bool = Field(default=False, exclude_if=operator.not_)
    lost: int = Field(default=0, exclude=True)
    attempt: int = Field(default=0, exclude=True)
    edition: int = Field(default=0, exclude=True)

    def without(self, to: int) -> SegmentPlan:
        """What is left to copy where the source begins at `to` by now."""
        changes = {
            "start": to,
            "cuts": tuple(cut for cut in self.cuts if cut > to),
            "events": None if to < self.end else 0,
            "lost": self.lost + to - self.start,
            "attempt": self.attempt + 1,
            "edition": self.edition + 1,
        }
        return self.model_copy(update=changes)

    def until(self, end: int, events: int | None) -> SegmentPlan:
        """The same up to another end, with so many events where nothing is lost."""
        counted = 0 if self.start == end else None if self.lost else events
        changes = {"end": end, "events": counted, "edition": self.edition + 1}
        return self.model_copy(update=changes)

    @property
    def length(self) -> int:
        """Bytes to copy."""
        return self.end - self.start

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in order; none for an empty segment."""
        if self.start == self.end:
            return ()
        edges = (self.start, *self.cuts, self.end)
        return tuple(Part(i, a, b) for i, (a, b) in enumerate(pairwise(edges)))


class StreamPlan(Frozen):
    """The copy of one stream.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        sources: the streams to copy, one after the other.
        target: the stream to make, or to append to.
        append: whether the target is there, is somebody's, and is appended to.
        segments: a target that is made gets one segment for each. Sorted by generation; within the
            first one by key range, within the others as the store numbered them.
        config: what the target is configured with at the end: the source's.
        verify: whether the staged bytes are read again and compared before they are published.
        seal: whether the target takes no more events once it is whole.
        on_truncation: what to do if a source loses bytes before they are read: fail, or go on
            without them.
        move: whether the source is sealed, copied to its end, and deleted when all is done.
    """

    copy_id: str
    sources: tuple[SourceStream, ...]
    target: StreamName
    segments: tuple[SegmentPlan, ...]
    config: StreamConfig
    verify: bool = True
    on_truncation: OnTruncation = "Fail"
    move: bool = False
    append: bool = False
    seal: bool = False

    @property
    def origin(self) -> str:
        """What is copied, for people."""
        return origin([source.stream for source in self.sources])

    @property
    def name(self) -> str:
        """What its source is called in the scope, or in the folder of archives, that it is in."""
        source = self.sources[0]
        return source.stream.stream if source.archive is None else stream_at(source.archive.path)

    @property
    def target_name(self) -> str:
        """What its target is called in its scope."""
        return self.target.stream

    def of(self, segments: Sequence[SegmentPlan]) -> StreamPlan:
        """The same plan of other segments. What is known of the old ones is not taken over."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return self.model_construct(**{**fields, "segments": tuple(segments)})

    def source_of(self, segment: SegmentPlan) -> SourceStream:
        """The source that a segment is of."""
        return self.sources[segment.source]

    @property
    def bytes(self) -> int:
        """Bytes to copy."""
        return sum(segment.length for segment in self.segments)

    @property
    def events(self) -> int | None:
        """Events to copy as the source's store says; None where it cannot tell for all of them."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @cached_property
    def generations(self) -> tuple[tuple[int, ...], ...]:
        """The segments' places in `segments`: those of each generation."""
        last = self.segments[-1].generation if self.segments else 0
        return tuple(
            tuple(i for i, segment in enumerate(self.segments) if segment.generation == number)
            for number in range(last + 1)
        )

    @cached_property
    def active(self) -> tuple[tuple[int, ...], ...]:
        """The places of the segments that take events once each generation is made, by keys."""
        now: tuple[int, ...] = ()
        states = []
        for made in self.generations:
            kept = [i for i in now if not any(self._overlap(i, j) for j in made)]
            now = tuple(sorted((*kept, *made), key=lambda i: self.segments[i].keys.low))
            states.append(now)
        return tuple(states)

    @cached_property
    def filled(self) -> tuple[int, ...]:
        """The generations that hold bytes: what an append is made of."""
        return tuple(
            number
            for number, made in enumerate(self.generations)
            if any(self.segments[i].length for i in made)
        )

    def _overlap(self, one: int, other: int) -> bool:
        return self.segments[one].keys.overlaps(self.segments[other].keys)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's JSON, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def pinned(plan: StreamPlan, stores: Sequence[StoreAddress]) -> tuple[StoreAddress, ...]:
    """The addresses of what a plan reads: of an archive that of the run, and of no other one.

    Args:
        plan: the plan.
        stores: the addresses of the stores that its sources are in; runs that they name are not
            minded.
    """
    runs = {source.store: source.archive for source in plan.sources}
    return tuple(
        store.model_copy(update={"archive": runs.get(place)}) for place, store in enumerate(stores)
    )


def origin(streams: Sequence[StreamName | str]) -> str:
    """Streams that are copied into one, for people: the first, and how many follow."""
    return f"{streams[0]} and {len(streams) - 1} more" if len(streams) > 1 else str(streams[0])
