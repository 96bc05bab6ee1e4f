"""The plan of a run: what will be archived, as an immutable value.

It is made before a byte moves and noted in the archive, where the first note wins, so every driver
of the run works on the same bounds. What the run before has is not in it, but which one that is.
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
    """What is archived of one segment: the bytes [begin, end).

    Attributes:
        epoch: which scale event made it, counted as the archive does.
        id: the segment's id in the source.
        keys: the keys it takes.
        created: its creation time in ms; with the id it is the source's identity.
        start: where the archive of it begins.
        done: up to where the run before has it; `start` where it is new.
        begin: first offset to archive; what lies between it and `done` is lost.
        end: offset after the last one.
        sealed: whether it takes no more bytes behind that.
        lost: whether it was gone when the plan was made, so that nobody knows what it had.
        events: that the source's store says are in it; None where it cannot tell.
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
        """Bytes to archive."""
        return self.end - self.begin

    @property
    def bare(self) -> ArchivedSegment:
        """The segment, of which nothing is archived yet."""
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
        store: the place of its store among those that the plan reads from.
        store_uri: that store's address, for people.
        path: of the archive in its store.
        format: how it holds events.
        run: the run's number; a later one where runs were let go since it was planned.
        parent: the run that it adds to, if there is one.
        begin: where the archive begins.
        end: where the run ends.
        segments: those that the run has something new of, by epoch, then by id. All others are as
            the run before has them.
        config: the stream's configuration.
        sealed: whether the stream is sealed.
        verify: whether what is put is read back before it is recorded.
        max_events: of the format EventObjects, how many the run may hold.
        on_truncation: what to do if the source loses bytes before they are read.
        maker: whoever has it made.
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
        """What is archived, for people."""
        return str(self.source)

    @property
    def name(self) -> str:
        """What the stream is called in its scope."""
        return self.source.stream

    @property
    def target_name(self) -> str:
        """What the archive is called in the folder that it lies in."""
        return stream_at(self.path)

    @property
    def target(self) -> str:
        """Where to, for people."""
        return self.path or "this place"

    @property
    def append(self) -> bool:
        """Whether the archive is there, and the run adds to it."""
        return self.parent is not None

    @property
    def bytes(self) -> int:
        """Bytes to archive, besides those that the run before has."""
        return sum(segment.length for segment in self.segments)

    @property
    def events(self) -> int | None:
        """Events in them as the source's store says; None where it cannot tell for all of them."""
        counts = [segment.events for segment in self.segments]
        return None if None in counts else sum(count for count in counts if count is not None)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's JSON, in hexadecimal digits."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


SOURCE_TRUNCATED = "SourceTruncated"
"""Why bytes are not in an archive that were to be."""


def gone(run: int) -> Lost:
    """That a run has found a segment gone."""
    return Lost(reason=SOURCE_TRUNCATED, run=run)
