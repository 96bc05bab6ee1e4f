"""Manifests: the immutable lists of all that a run of an archive holds.

A manifest lists every object of its run with size and SHA-256, including objects that earlier runs
put. So a run can be read, verified and restored with nothing but its manifest. It is JSON. Parsing
checks that it is consistent, before anything relies on it. `docs/archive-format.md` specifies it.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from sluice.core.archive.documents import Document
from sluice.core.archive.names import DataName, Format
from sluice.core.events.digest import chunks
from sluice.core.values.model import Frozen, KeyRange, StreamConfig, StreamName, break_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Offset = Annotated[int, Field(ge=0, lt=1 << 63)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


Reason = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z]{0,62}$")]
WorkId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class StoredObject(Frozen):
    """A data object: the bytes [start, end) of a segment.

    Attributes:
        name: its name in the archive.
        size: the object's size in bytes.
        sha256: the SHA-256 of the object's bytes, in hexadecimal digits.
        start: first offset of the segment in it.
        end: offset after the last byte.
        events: number of events that begin in it; None if the segment's bytes are not events.
        first: offset of the first of these events; None without events.
        last: offset of the last of these events; None without events.
    """

    name: str
    size: Count
    sha256: Sha256
    start: Offset
    end: Offset
    events: Count | None = None
    first: Offset | None = None
    last: Offset | None = None


class ObjectStretch(Frozen):
    """Contiguous bytes of a segment, [start, end), in consecutive objects.

    Attributes:
        start: first offset.
        end: offset after the last byte.
        events: number of events in it; None if its bytes are not events.
        digests: SHA-256 of its chunks (`core.events.digest`), one after the other, in hexadecimal
            digits.
        objects: the objects that hold it, by offset.
    """

    start: Offset
    end: Offset
    events: Count | None = None
    digests: str = Field(pattern=r"^([0-9a-f]{64})+$")
    objects: tuple[StoredObject, ...] = Field(min_length=1)

    @property
    def chunk_digests(self) -> dict[int, bytes]:
        """SHA-256 of each chunk, by its number."""
        raw = bytes.fromhex(self.digests)
        numbers = chunks(self.start, self.end)
        return {chunk: raw[i * 32 : i * 32 + 32] for i, chunk in enumerate(numbers)}


class Gap(Frozen):
    """Bytes of a segment, [start, end), that were to be archived but were lost before.

    Attributes:
        start: first offset.
        end: offset after the last byte.
        reason: one CamelCase word, such as `SourceTruncated`.
        run: the number of the run that found the gap.
    """

    start: Offset
    end: Offset
    reason: Reason
    run: Count


class Lost(Frozen):
    """The mark of a segment that was gone when a run came to it, or back to it.

    It is unknown how many bytes it had behind the archived ones, if any.

    Attributes:
        reason: one CamelCase word, such as `SourceTruncated`.
        run: the number of the run that found the segment gone.
    """

    reason: Reason
    run: Count


class ArchivedSegment(Frozen):
    """The archived part of a segment: the bytes [start, end), except the gaps.

    Attributes:
        epoch: the number of the scale event that made it, counted from the first run's beginning:
            0 for the segments that the archive begins with. A segment has the same in all runs.
        id: the segment's id in the source.
        keys: the keys that it takes.
        created: its creation time in ms; with the id it is the source's identity. 0 if the segment
            was gone before a run looked.
        start: first offset that was to be archived.
        end: offset after the last byte; `start` if it is empty.
        sealed: whether it takes no more bytes.
        stretches: the archived bytes, by offset.
        gaps: the missing bytes, by offset.
        lost: set if it was gone before it was known to be archived to its end.
    """

    epoch: Annotated[int, Field(ge=0, lt=1 << 32)]
    id: Offset
    keys: KeyRange
    created: Count
    start: Offset
    end: Offset
    sealed: bool
    stretches: tuple[ObjectStretch, ...] = ()
    gaps: tuple[Gap, ...] = ()
    lost: Lost | None = None

    @property
    def bytes(self) -> int:
        """The number of archived bytes."""
        return sum(one.end - one.start for one in self.stretches)

    @property
    def events(self) -> int | None:
        """The number of archived events; None if some bytes are not events."""
        counts = [one.events for one in self.stretches]
        return None if None in counts else sum(count for count in counts if count is not None)


class CutOffset(Frozen):
    """A segment's offset in a cut."""

    segment: Offset
    offset: Offset


class RecordedCut(Frozen):
    """A position in the source, and its time.

    Attributes:
        time: the time at which the cut was taken, in ms.
        offsets: the offset in each segment, sorted by id; the segments take each key exactly once.
        text: the cut as the store's clients read it.
    """

    time: Count
    offsets: tuple[CutOffset, ...] = Field(min_length=1)
    text: str | None = None


class ArchivedSource(Frozen):
    """The stream that was archived.

    Attributes:
        stream: its name.
        store: its store's address, for people only: the segments identify the stream.
    """

    stream: StreamName
    store: str


class Maker(Frozen):
    """The resource that a run was made for. A resource deletes no archive of another maker.

    Attributes:
        id: its identity, 32 hexadecimal digits; resources of one name in two clusters differ.
        name: its kind and its name, for people.
    """

    id: WorkId
    name: str = Field(pattern=r"^[A-Za-z0-9./ -]{1,400}$")


class Parent(Frozen):
    """The run that a run adds to. The SHA-256 pins its manifest."""

    run: Annotated[int, Field(ge=1)]
    sha256: Sha256


class Manifest(Document):
    """A run of an archive.

    Attributes:
        run: its number; a later run has a higher one.
        format: how it holds events.
        source: the stream that was archived.
        parent: the run before; None for the first run.
        work: the identity of the work that recorded it, 32 hexadecimal digits.
        maker: the resource that it was made for, if known.
        begin: the position at which the archive begins.
        end: the position at which the run ends.
        config: the stream's configuration at the end, with its tags.
        sealed: whether the stream is sealed.
        segments: its segments, by epoch, then by id.
    """

    kind: Literal["sluice.dev/archive-run"] = "sluice.dev/archive-run"
    run: Annotated[int, Field(ge=1, lt=1 << 63)]
    format: Format
    source: ArchivedSource
    parent: Parent | None = None
    work: WorkId | None = None
    maker: Maker | None = None
    begin: RecordedCut
    end: RecordedCut
    config: StreamConfig
    sealed: bool = False
    segments: tuple[ArchivedSegment, ...] = Field(min_length=1)

    @property
    def objects(self) -> Iterator[StoredObject]:
        """All objects of the run, in the order of the stream."""
        return (
            one
            for segment in self.segments
            for stretch in segment.stretches
            for one in stretch.objects
        )

    @property
    def bytes(self) -> int:
        """The number of the source's bytes."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def events(self) -> int | None:
        """The number of events; None if some bytes are not events."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.parent is not None and self.parent.run >= self.run:
            raise ValueError(f"run {self.run} has the later run {self.parent.run} as its parent")
        if self.begin.time > self.end.time:
            raise ValueError("it ends before it begins")
        places = [(one.epoch, one.id) for one in self.segments]
        if places != sorted(set(places)) or len({number for _, number in places}) < len(places):
            raise ValueError("the segments are not in order, each once")
        for one in self.segments:
            _check_segment(one, self.format)
        _check_epochs(self.segments)
        for cut, edge in ((self.begin, "start"), (self.end, "end")):
            _check_cut(cut, {one.id: one for one in self.segments}, edge)
        return self


def _check_segment(segment: ArchivedSegment, form: Format) -> None:
    """Raise ValueError unless stretches and gaps together are exactly the segment."""
    at = segment.start
    rows: list[ObjectStretch | Gap] = [*segment.stretches, *segment.gaps]
    rows.sort(key=lambda one: one.start)
    for row in rows:
        if row.start != at or row.end <= row.start:
            raise ValueError(f"segment {segment.id} has no bytes and no gap at offset {at}")
        at = row.end
    if at != segment.end:
        raise ValueError(f"segment {segment.id} ends at {at}, and not at {segment.end}")
    if any(
        isinstance(one, ObjectStretch) and isinstance(other, ObjectStretch)
        for one, other in pairwise(rows)
    ):
        raise ValueError(f"segment {segment.id} has two stretches that are one")
    for stretch in segment.stretches:
        _check_stretch(segment, stretch, form)


def _check_stretch(segment: ArchivedSegment, stretch: ObjectStretch, form: Format) -> None:
    """Raise ValueError unless a stretch's objects, their names, digests and events fit it."""
    if len(stretch.digests) != 64 * len(chunks(stretch.start, stretch.end)):
        raise ValueError(f"segment {segment.id} has not one digest for each chunk")
    at = stretch.start
    for one in stretch.objects:
        name = DataName(segment.epoch, segment.id, one.start, one.end, one.sha256, form)
        if one.name != str(name):
            raise ValueError(f"{one.name} is in the place of {name}")
        if one.start != at or one.end <= one.start:
            raise ValueError(f"{one.name} does not begin at offset {at}")
        if form is not Format.SEGMENTS and (not one.events or one.first != one.start):
            raise ValueError(f"{one.name} does not begin with an event")
        at = one.end
    if at != stretch.end:
        raise ValueError(f"segment {segment.id} has no object at offset {at}")
    counts = [one.events for one in stretch.objects if one.events is not None]
    if len(counts) == len(stretch.objects) and sum(counts) != stretch.events:
        raise ValueError(f"segment {segment.id} has not the events of its objects")


def _check_epochs(segments: Sequence[ArchivedSegment]) -> None:
    """Raise ValueError unless the segments after each scale event take each key exactly once."""
    if sorted({one.epoch for one in segments}) != list(range(segments[-1].epoch + 1)):
        raise ValueError("an epoch is left out")
    now: list[KeyRange] = []
    for _, group in groupby(segments, key=lambda one: one.epoch):
        made = [one.keys for one in group]
        now = [keys for keys in now if not any(keys.overlaps(other) for other in made)]
        now = sorted((*now, *made), key=lambda keys: keys.low)
        if break_in(now) is not None:
            raise ValueError("after a scale event the segments do not take all keys, each key once")


def _check_cut(cut: RecordedCut, segments: Mapping[int, ArchivedSegment], edge: str) -> None:
    """Raise ValueError unless a cut is made of this edge (start or end) of its segments."""
    for one in cut.offsets:
        segment = segments.get(one.segment)
        if segment is None or getattr(segment, edge) != one.offset:
            raise ValueError(f"the cut at the {edge} is not that of segment {one.segment}")
    keys = sorted((segments[one.segment].keys for one in cut.offsets), key=lambda one: one.low)
    if break_in(keys) is not None:
        raise ValueError(f"the cut at the {edge} does not take all keys, each key once")
