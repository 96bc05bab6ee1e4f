"""The plan of a run of an archive: an immutable value.

A plan is made before the first byte moves, and noted in the archive. The first note counts, so all
drivers of the run work on the same bounds. It names the run before, without what that run holds.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Literal

from pydantic import Field

from sluice.core.archive.manifest import ArchivedSegment, Lost, Maker, Parent, RecordedCut
from sluice.core.archive.names import Format
from sluice.core.values.archive_layout import stream_at
from sluice.core.values.model import Frozen, KeyRange, StreamConfig, StreamName, is_none


class SegmentRun(Frozen):
    """The part of one segment to archive: the bytes [begin, end).

    Attributes:
        epoch: the number of the scale event that made it, as the archive counts.
        id: the segment's id in the source.
        keys: the keys it takes.
        created: its creation time in ms; with the id it is the source's identity.
        start: first offset that the archive has, or is to have, of it.
        done: offset up to which the run before has it; `start` if it is new.
        begin: first offset to archive; bytes between `done` and this one are lost.
        end: offset after the last byte.
        sealed: whether the segment takes no bytes behind `end`.
        lost: whether it was gone when the plan was made, so that it is unknown which bytes it had.
        events: number of events in it as the source's store says; None if the store cannot tell.
    """

    epoch: int
    id: int
    keys: KeyRange
    created: int
    start: int
    done: int
    begin: int
    end: int
    sealed: bool
    lost: bool = False
    events: int | None = None

    @property
    def length(self) -> int:
        """The number of bytes to archive."""
        return self.end - self.begin

    @property
    def bare(self) -> ArchivedSegment:
        """The segment as an archive has it before any byte is archived."""
        return ArchivedSegment(
            epoch=self.epoch,
            id=self.id,
            keys=self.keys,
            created=self.created,
            start=self.start,
            end=self.start,
            sealed=False,
        )


class ArchivePlan(Frozen):
    """One run of an archive.

    Attributes:
        copy_id: the identity of the run, 32 hexadecimal digits.
        source: the stream to archive.
        store: the index of its store among the stores that the plan reads from.
        store_uri: that store's address, for people.
        path: the archive's path in its store.
        format: how it holds events.
        run: the run's number. It is recorded under a later one if runs were dropped meanwhile.
        parent: the run that it adds to; None for the first run.
        begin: the position at which the archive begins.
        end: the position at which the run ends.
        segments: the segments of which the run has something new, by epoch, then by id. All other
            segments stay as the run before has them.
        config: the stream's configuration.
        sealed: whether the stream is sealed.
        verify: whether objects are read back before the run is recorded.
        max_events: most events that the run may hold in the format EventObjects.
        on_truncation: what to do if the source loses bytes before they are read.
        maker: the resource that the run is made for.
        sole: see ArchiveRequest.
    """

    copy_id: str
    source: StreamName
    store: int = 0
    store_uri: str
    path: str
    format: Format
    run: int
    parent: Parent | None = None
    begin: RecordedCut
    end: RecordedCut
    segments: tuple[SegmentRun, ...]
    config: StreamConfig
    sealed: bool = False
    verify: bool = True
    max_events: int
    on_truncation: Literal["Fail", "Record"] = "Fail"
    maker: Maker | None = None
    sole: str | None = Field(default=None, exclude_if=is_none)

    @property
    def origin(self) -> str:
        """The stream that is archived, for people."""
        return str(self.source)

    @property
    def name(self) -> str:
        """The stream's name in its scope."""
        return self.source.stream

    @property
    def target_name(self) -> str:
        """The archive's name in its folder."""
        return stream_at(self.path)

    @property
    def target(self) -> str:
        """The archive's path, for people."""
        return self.path or "this place"

    @property
    def append(self) -> bool:
        """Whether the run adds to an existing archive."""
        return self.parent is not None

    @property
    def bytes(self) -> int:
        """The number of bytes to archive, without those that the run before has."""
        return sum(segment.length for segment in self.segments)

    @property
    def events(self) -> int | None:
        """The number of events in them as the source's store says; None if it cannot tell."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's JSON, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


SOURCE_TRUNCATED = "SourceTruncated"
"""The reason for which bytes are missing in an archive."""


def gone(run: int) -> Lost:
    """Return the mark of a segment that a run has found gone."""
    return Lost(reason=SOURCE_TRUNCATED, run=run)
