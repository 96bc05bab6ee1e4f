"""Notes of a run at work: what it has put so far, which no head lists yet.

A driver writes a note every few seconds, under the next number. A driver that continues the run
reads them in order to learn which work is done. A note that repeats an earlier one changes nothing,
so drivers may work side by side.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.core.archive.documents import Document
from sluice.core.archive.manifest import Count, Offset, Sha256, StoredObject
from sluice.core.archive.plan import ArchivePlan
from sluice.core.events.framing import HEADER
from sluice.core.events.grouping import EventStart
from sluice.core.values.model import Frozen


class ChunkDigest(Frozen):
    """The SHA-256 of a chunk of a segment; if it is not whole, up to where its objects end."""

    chunk: Count
    sha256: Sha256


class NextEvent(Frozen):
    """The place of the next event, as JSON; see `core.events.grouping.EventStart`."""

    offset: Offset
    header: str = Field(default="", pattern=r"^([0-9a-f]{2}){0,7}$")

    @classmethod
    def of(cls, following: EventStart) -> NextEvent:
        """Return the JSON form of a `EventStart`."""
        return cls(offset=following.offset, header=following.header.hex())

    @property
    def value(self) -> EventStart:
        """The same place as a `EventStart`."""
        return EventStart(self.offset, bytes.fromhex(self.header))


class Guess(Frozen):
    """A guess where the first event of a part begins, made before the bytes in front were read.

    Attributes:
        first: the event's offset; None if no event was found.
        head: the part's first bytes in hexadecimal digits, up to 7: a header that began in front
            may end with them.
    """

    first: Offset | None = None
    head: str = Field(pattern=r"^([0-9a-f]{2})*$", max_length=2 * (HEADER - 1))

    def holds(self, following: EventStart) -> bool:
        """Tell whether the guess is right: the events in front lead to the same offset."""
        if not following.header:
            return self.first == following.offset
        header = (following.header + bytes.fromhex(self.head))[:HEADER]
        return self.first == following.offset + HEADER + int.from_bytes(header[4:], "big")


class PutNote(Frozen):
    """Objects that were put.

    Attributes:
        segment: the index of their segment in the plan.
        objects: the objects, which are consecutive.
        digests: digests of the chunks that end in them, and of the beginning of the last chunk.
        following: where the next event begins; None if the bytes are not events.
        guess: where the first event was assumed to begin; None if that was known.
    """

    segment: Count
    objects: tuple[StoredObject, ...] = Field(min_length=1)
    digests: tuple[ChunkDigest, ...] = ()
    following: NextEvent | None = None
    guess: Guess | None = None

    @property
    def start(self) -> int:
        """First offset."""
        return self.objects[0].start

    @property
    def end(self) -> int:
        """Offset after the last one."""
        return self.objects[-1].end


class CheckNote(Frozen):
    """Bytes [start, end) of a segment that were read back, and are the source's."""

    segment: Count
    start: Offset
    end: Offset


class GapNote(Frozen):
    """Bytes [start, end) of a segment that the source has lost.

    Attributes:
        segment: the segment's index in the plan.
        start: first offset, at which the objects before end.
        end: offset after the last byte.
        digest: digest of the beginning of the chunk that `start` lies in; None if there is none.
    """

    segment: Count
    start: Offset
    end: Offset
    digest: ChunkDigest | None = None


class Note(Document):
    """The progress since the note before.

    Attributes:
        begun: the mark of the row of notes that it belongs to, as in its first note: 32 hexadecimal
            digits.
        of: the hash of the plan that it is about; of its own plan, if it has one.
        plan: a plan that holds from this note on.
        put: objects that were put.
        checked: bytes that were read back.
        gaps: bytes that are lost.
    """

    kind: Literal["sluice.dev/archive-note"] = "sluice.dev/archive-note"
    begun: str = Field(default="", pattern=r"^([0-9a-f]{32})?$")
    of: Sha256
    plan: ArchivePlan | None = None
    put: tuple[PutNote, ...] = ()
    checked: tuple[CheckNote, ...] = ()
    gaps: tuple[GapNote, ...] = ()
