"""Notes of a run at work: what it has got so far, which no head lists yet.

A driver writes one after each round, under the next number. Whoever goes on with the run reads them
in order and knows what is there. A note that says what another has said already changes nothing, so
drivers may work side by side.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.core.archive.documents import Document
from sluice.core.archive.manifest import Count, Offset, Sha256, StoredObject
from sluice.core.archive.plan import ArchivePlan
from sluice.core.events.framing import HEADER
from sluice.core.events.grouping import Following
from sluice.core.values.model import Frozen


class ChunkDigest(Frozen):
    """SHA-256 of a chunk of a segment; of one that is not whole, up to where its objects end."""

    chunk: Count
    sha256: Sha256


class NextEvent(Frozen):
    """Where the next event begins; see `core.events.grouping.Following`."""

    offset: Offset
    header: str = Field(default="", pattern=r"^([0-9a-f]{2}){0,7}$")

    @classmethod
    def of(cls, following: Following) -> NextEvent:
        """As a note has it."""
        return cls(offset=following.offset, header=following.header.hex())

    @property
    def value(self) -> Following:
        """As it is worked with."""
        return Following(self.offset, bytes.fromhex(self.header))


class Guess(Frozen):
    """Where the first event of a part was taken to begin, which was read before what is in front.

    Attributes:
        first: its offset; None where none was found.
        head: the part's first bytes in hexadecimal digits, as many as a header may lack.
    """

    first: Offset | None = None
    head: str = Field(pattern=r"^([0-9a-f]{2})*$", max_length=2 * (HEADER - 1))

    def holds(self, following: Following) -> bool:
        """Whether it is where the events before lead to."""
        if not following.header:
            return self.first == following.offset
        header = (following.header + bytes.fromhex(self.head))[:HEADER]
        return self.first == following.offset + HEADER + int.from_bytes(header[4:], "big")


class PutNote(Frozen):
    """Objects that are there.

    Attributes:
        segment: its place in the plan.
        objects: they, one after the other.
        digests: of the chunks that end in them, and of the beginning of the last one.
        following: where the next event begins; None where the bytes are no events.
        guess: where the first one was taken to begin; None where that was known.
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
    """Bytes [start, end) of a segment that were read back, and were what the source had."""

    segment: Count
    start: Offset
    end: Offset


class GapNote(Frozen):
    """Bytes [start, end) of a segment that the source has lost.

    Attributes:
        segment: its place in the plan.
        start: first offset; there the objects end that are there.
        end: offset after the last one.
        digest: of the beginning of the chunk that `start` lies in, if there is one.
    """

    segment: Count
    start: Offset
    end: Offset
    digest: ChunkDigest | None = None


class Note(Document):
    """What is known since the note before.

    Attributes:
        begun: the mark of the first note that it belongs to, 32 hexadecimal digits.
        of: the hash of the plan that it is about; of its own, if it has one.
        plan: what is to be archived, from here on.
        put: objects that are there.
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
