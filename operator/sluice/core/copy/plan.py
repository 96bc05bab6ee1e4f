"""The plan of a stream's copy: an immutable value.

A plan is made before the first byte moves, and recorded in the target store. The first recorded
plan counts, so all drivers of a copy work on the same bounds. It names streams, segments, bounds,
the source's identity and parts. It holds no credentials, and nothing that may change while it runs.
"""

from __future__ import annotations

import hashlib
import operator
from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, Field

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
    from collections.abc import Iterable, Sequence

OnTruncation = Literal["Fail", "Record"]
"""What to do if a source loses bytes before they were read: fail, or record the loss and go on."""


class Part(NamedTuple):
    """A range of a source segment that is staged by itself: bytes [start, end), source offsets."""

    number: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """The number of bytes in the part."""
        return self.end - self.start


class SourceStream(Frozen):
    """A stream to copy from.

    Attributes:
        stream: its name.
        store: the index of its store among the stores that the plan reads from.
        archive: the run of an archive that holds the stream; another run may lack planned bytes.
            None for a live stream.
    """

    stream: StreamName
    store: int = 0
    archive: ArchivedRun | None = Field(default=None, exclude_if=is_none)


class SegmentPlan(Frozen):
    """The part of one source segment to copy: the bytes [start, end).

    Attributes:
        source: the index of its stream among the sources.
        id: the segment's id in the source.
        keys: the keys it takes; the target has a segment with the same range.
        generation: the number of the scale event of the source that made it, from 1; 0 for the
            segments that the copy begins with. Another range, or another source, continues the
            count: its first segments get the next number.
        range: the index of the requested range that begins or ends within it; None if it is copied
            from its first readable byte to its end.
        start: first offset copied.
        end: offset after the last byte copied.
        created: the segment's creation time in ms; with the id it is the source's identity.
        events: number of events in the range as the source's store says; None if the store cannot
            tell for this range. The number is too low if transactions brought events. So events are
            counted during verification, and only a copy without verification relies on this.
        cuts: offsets where a new part begins, ascending, strictly inside (start, end).
        torn: whether the source is gone behind `end`, and it is unknown which bytes, if any, it had
            there. So it is with a segment that was gone when a run of an archive came to it.
        lost: number of requested bytes before `start` that the source lost before they were read.
            It is never in a recorded plan; the journal's records add it.
        attempt: how often the segment was begun anew because of lost bytes.
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
        """Return this segment without the bytes before `to`, which the source has lost."""
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
        """Return this segment with another end.

        Args:
            end: offset after the last byte copied.
            events: number of events up to there. It is dropped if bytes before `start` are lost.
        """
        counted = 0 if self.start == end else None if self.lost else events
        changes = {"end": end, "events": counted, "edition": self.edition + 1}
        return self.model_copy(update=changes)

    @property
    def length(self) -> int:
        """The number of bytes to copy."""
        return self.end - self.start

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in order; empty for an empty segment."""
        if self.start == self.end:
            return ()
        edges = (self.start, *self.cuts, self.end)
        return tuple(Part(i, a, b) for i, (a, b) in enumerate(pairwise(edges)))


def in_order(segments: Sequence[SegmentPlan]) -> Sequence[SegmentPlan]:
    """Return segments, or raise ValueError if their generations are not counted up from 0.

    A plan keeps a place for each generation. Any client may have recorded it, and a number without
    a bound would fill the memory.
    """
    last = 0
    for segment in segments:
        if segment.generation not in {last, last + 1}:
            raise ValueError(f"generation {segment.generation} comes after {last}")
        last = segment.generation
    return segments


class StreamPlan(Frozen):
    """The copy of one stream.

    Attributes:
        copy_id: the copy's identity, 32 hexadecimal digits.
        sources: the streams to copy, one after the other.
        target: the stream to make, or to append to.
        append: whether the target is a user's existing stream, which is appended to.
        segments: the segments to copy. A target that is made gets one segment for each. Sorted by
            generation; within the first one by key range, within the others as the store numbered
            them.
        config: the target's configuration at the end: that of the first source.
        verify: whether the staged bytes are read again and compared before they are published.
        seal: whether to seal the target once it is whole.
        make_scope: whether to make the target's scope if it does not exist.
        on_truncation: what to do if a source loses bytes before they are read: fail, or go on
            without them.
        move: whether the source is sealed, copied to its end, and deleted when all is done.
        follow: whether the copy goes on behind its bounds with what comes in the source.
    """

    copy_id: str
    sources: tuple[SourceStream, ...]
    target: StreamName
    segments: Annotated[tuple[SegmentPlan, ...], AfterValidator(in_order)]
    config: StreamConfig
    verify: bool = True
    on_truncation: OnTruncation = "Fail"
    move: bool = False
    append: bool = False
    seal: bool = False
    # Left out where it is False: plans of older versions keep their text, and with it their hashes.
    make_scope: bool = Field(default=False, exclude_if=operator.not_)
    follow: bool = Field(default=False, exclude_if=operator.not_)

    @property
    def origin(self) -> str:
        """The streams that are copied, for people."""
        return origin([source.stream for source in self.sources])

    @property
    def reads(self) -> tuple[str, ...]:
        """The streams, and the paths of archives, that are copied, each with its store."""
        return reads([(one.store, one.stream, one.archive) for one in self.sources])

    @property
    def name(self) -> str:
        """The first source's name in its scope, or in its folder of archives."""
        source = self.sources[0]
        return source.stream.stream if source.archive is None else stream_at(source.archive.path)

    @property
    def target_name(self) -> str:
        """The target's name in its scope."""
        return self.target.stream

    def of(self, segments: Sequence[SegmentPlan]) -> StreamPlan:
        """Return this plan with other segments. Cached properties are not taken over."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return self.model_construct(**{**fields, "segments": tuple(segments)})

    def source_of(self, segment: SegmentPlan) -> SourceStream:
        """Return the source of a segment."""
        return self.sources[segment.source]

    @property
    def bytes(self) -> int:
        """The number of bytes to copy."""
        return sum(segment.length for segment in self.segments)

    @property
    def events(self) -> int | None:
        """The number of events as the source's store says; None if it cannot tell for a segment."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @cached_property
    def generations(self) -> tuple[tuple[int, ...], ...]:
        """For each generation, the indexes in `segments` of its segments."""
        made = defaultdict(list)
        for i, segment in enumerate(self.segments):
            made[segment.generation].append(i)
        last = self.segments[-1].generation if self.segments else 0
        return tuple(tuple(made[number]) for number in range(last + 1))

    @cached_property
    def active(self) -> tuple[tuple[int, ...], ...]:
        """For each generation, the indexes of the segments that take events then, by keys."""
        now: tuple[int, ...] = ()
        states = []
        for made in self.generations:
            kept = [i for i in now if not any(self._overlap(i, j) for j in made)]
            now = tuple(sorted((*kept, *made), key=lambda i: self.segments[i].keys.low))
            states.append(now)
        return tuple(states)

    @cached_property
    def filled(self) -> tuple[int, ...]:
        """The generations that hold bytes; an append consists of these."""
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
    """Return the addresses that a plan reads from: for an archive, the address of the planned run.

    Args:
        plan: the plan.
        stores: the addresses of the stores of its sources; runs that they name are replaced.
    """
    runs = {source.store: source.archive for source in plan.sources}
    return tuple(
        store.model_copy(update={"archive": runs.get(place)}) for place, store in enumerate(stores)
    )


class ArchiveOrigin(Protocol):
    """What is read of an archive: a run of it, or the choice of one."""

    @property
    def path(self) -> str:
        """The archive's path in its store."""
        ...


def reads(sources: Iterable[tuple[int, StreamName, ArchiveOrigin | None]]) -> tuple[str, ...]:
    """Return what a copy reads: in which store, and the name of a stream or the path of an archive.

    Args:
        sources: of each source the index of its store, its stream, and its archive; None for a
            live stream.
    """
    return tuple(
        f"{store}: stream {stream}" if archive is None else f"{store}: archive {archive.path}"
        for store, stream, archive in sources
    )


def origin(streams: Sequence[StreamName | str]) -> str:
    """Return the names of streams for people: the first name, and how many follow."""
    return f"{streams[0]} and {len(streams) - 1} more" if len(streams) > 1 else str(streams[0])
