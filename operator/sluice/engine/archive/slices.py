"""Do the work of tasks for a run: put bytes of a segment into objects, and read them back.

A slice that is done again makes the same objects again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked, damaged
from sluice.archive.formats.piece import Piece
from sluice.core.archive.names import Format
from sluice.core.archive.notes import Guess
from sluice.core.events.counting import first_event
from sluice.core.events.digest import CHUNK, ChunkDigester, chunk_end
from sluice.core.events.framing import HEADER
from sluice.core.events.grouping import EventStart, Tallier, Tally
from sluice.engine.access.source_runs import root
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import DigestMismatch, NoSuchSegment, SegmentTruncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import ArchivedSegment, StoredObject
    from sluice.engine.access.source_runs import Place
    from sluice.engine.tasks.throttle import Task
    from sluice.stores.base import Source
    from sluice.stores.reading import Block

_SEARCHED: Final = 2 * CHUNK
"""Bytes in which a slice that has to guess looks for the first event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSlice(Slice):
    """Bytes of a segment to put into objects. The slice ends where an object does.

    Attributes:
        source: full name of the segment to read.
        path: the archive's path.
        form: the archive's format.
        whose: the segment as the archive knows it.
        at: offset of the first byte to put.
        end: offset at which the segment's bytes of this run end.
        until: the slice ends with the first object that ends at this offset, or behind it.
        following: where the next event begins; None if the bytes are no events, or if the place is
            to be guessed.
        guess: whether to guess it, since the bytes before `at` are not archived yet.
        begin: offset at which the chunk of `at` begins. Bytes before `at` are only hashed.
        before: the objects that hold the bytes before `at`, in case the source has lost them.
        most_events: how many events may become objects of their own; None for no limit.
    """

    source: str
    path: str
    form: Format
    whose: ArchivedSegment
    at: int
    end: int
    until: int
    following: EventStart | None
    guess: bool = False
    begin: int
    before: tuple[StoredObject, ...] = ()
    most_events: int | None = None

    @property
    def size(self) -> int:
        """Bytes to move, for sharing out."""
        return self.until - self.at

    @property
    def reach(self) -> int:
        """Offset at which reading ends. An object of whole events may end behind `until`."""
        return self.until if self.form is Format.SEGMENTS else self.end

    def run(self, source: Source, target: Place, task: Task) -> ArchiveResult:
        """Put the bytes of the slice, and hash the chunks that end in them."""
        result = ArchiveResult(
            slice=self, archived=ArchivedObjects(objects=[], following=self.following)
        )
        with result.caught():
            _put(self, source, root(target).archive(self.path).objects, result, task)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSlice(Slice):
    """Objects to read back and compare with their notes and with the source's digests.

    Attributes:
        path, form, whose: as in ArchiveSlice.
        objects: the objects, one after the other.
        begin: offset at which the chunk of the first object's start begins.
        before: the objects that hold the bytes from `begin` to the first object.
        end: offset at which the row of objects ends that these are a part of.
        known: SHA-256 of the source's chunks that end in the objects, by chunk.
    """

    path: str
    form: Format
    whose: ArchivedSegment
    objects: tuple[StoredObject, ...]
    begin: int
    before: tuple[StoredObject, ...] = ()
    end: int
    known: Mapping[int, bytes]

    @property
    def size(self) -> int:
        """Bytes to read, for sharing out."""
        return self.objects[-1].end - self.objects[0].start

    def run(self, source: Source, target: Place, task: Task) -> ArchiveResult:  # noqa: ARG002 - it reads the archive alone
        """Read the objects back and compare them.

        The result has the error ArchiveDamaged if an object is not as it was put. It has
        DigestMismatch if an object is as it was put, but holds other bytes than the source.
        """
        result = ArchiveResult(slice=self, archived=ArchivedObjects(objects=[]))
        with result.caught():
            _check(self, root(target).archive(self.path).objects, result, task)
        return result


@dataclass(slots=True, kw_only=True)
class ArchivedObjects:
    """The objects that a slice put or read back.

    Attributes:
        objects: the objects, one after the other.
        following: where the next event begins.
        guess: where the first event was guessed to begin; None if that was known.
    """

    objects: list[StoredObject]
    following: EventStart | None = None
    guess: Guess | None = None

    @property
    def end(self) -> int | None:
        """Offset after the last object; None without objects."""
        return self.objects[-1].end if self.objects else None


@dataclass(slots=True, kw_only=True)
class ArchiveResult(SliceResult):
    """The result of a slice of an archive.

    Attributes:
        archived: the objects that were put or read back.
    """

    archived: ArchivedObjects


def _put(
    work: ArchiveSlice, source: Source, objects: Objects, result: ArchiveResult, task: Task
) -> None:
    done = result.archived
    digester = ChunkDigester(work.begin, work.end)
    for block in _beginning(work, source, objects, task) if work.begin < work.at else ():
        digester.feed(memoryview(block))

    def blocks(read: Iterable[memoryview]) -> Iterator[memoryview]:
        for data in read:
            digester.feed(data)
            yield data

    with _closed(source.read(work.source, work.at, work.reach, flow=task.pace)) as read:
        data: Iterator[memoryview] = (block.data for block in read)
        if work.guess:
            done.guess, data = _guessed(work, data)
            if done.guess.first is not None:
                done.following = EventStart(done.guess.first)
        piece = Piece(
            epoch=work.whose.epoch,
            segment=work.whose.id,
            start=work.at,
            end=work.end,
            following=done.following,
            source=work.source,
        )
        for entry, following in formats.write(
            work.form, objects, piece, blocks(data), most=work.most_events
        ):
            done.objects.append(entry)
            done.following = following
            result.moved = entry.end - work.at
            # The digester may have read ahead of this object: later digests belong to the next.
            result.digests = {
                chunk: digest
                for chunk, digest in digester.done.items()
                if chunk_end(chunk, work.end) <= entry.end
            }
            if entry.end >= work.until or task.over:
                return


def _check(work: CheckSlice, objects: Objects, result: ArchiveResult, task: Task) -> None:
    done = result.archived
    digester = ChunkDigester(work.begin, work.end)
    first = work.objects[0]
    for block in _read(work, objects, work.before, first.start):
        task.pace.spend(len(block))
        digester.feed(block)
    for entry in work.objects:
        tallier = Tallier(None if entry.first is None else EventStart(entry.first), entry.start)
        at = entry.start
        for block in _read(work, objects, (entry,), entry.end):
            task.pace.spend(len(block))
            digester.feed(block)
            tallier.feed(block)
            at += len(block)
        if at != entry.end:
            raise damaged(entry, f"ends at offset {at}, and not at {entry.end}")
        if entry.events and tallier.end() != Tally(entry.events, entry.first, entry.last):
            raise damaged(entry, f"has not the {entry.events} events that were put")
        _compare(work, digester.done)
        done.objects.append(entry)
        result.moved = entry.end - first.start
        if task.over:
            return


def _guessed(work: ArchiveSlice, data: Iterator[memoryview]) -> tuple[Guess, Iterator[memoryview]]:
    """Guess where a slice's first event begins. Return the guess, and all the slice's bytes."""
    taken: list[memoryview] = []

    def some() -> Iterator[memoryview]:
        size = 0
        for block in data:
            taken.append(memoryview(bytes(block)))
            size += len(block)
            yield taken[-1]
            if size >= _SEARCHED:
                return

    found = first_event(some())
    head = b"".join(bytes(block[: HEADER - 1]) for block in taken[: HEADER - 1])[: HEADER - 1]
    guess = Guess(first=None if found is None else work.at + found, head=head.hex())
    return guess, chain(taken, data)


@contextmanager
def _closed(read: Iterator[Block]) -> Iterator[Iterator[Block]]:
    """Close a read at the end of the block, or an error in the block would keep its connection."""
    try:
        yield read
    finally:
        if isinstance(read, Generator):
            read.close()


def read_objects(
    objects: Objects,
    entries: Iterable[StoredObject],
    form: Format,
    whose: ArchivedSegment,
    *,
    start: int,
    end: int,
) -> Iterator[memoryview]:
    """Yield the bytes [start, end) of a segment from objects, each compared with its SHA-256."""
    for entry in entries:
        content = Checked(objects, entry)
        yield from formats.read(form, objects, whose, content, start=start, end=end)


def _read(
    work: ArchiveSlice | CheckSlice, objects: Objects, entries: Iterable[StoredObject], end: int
) -> Iterator[memoryview]:
    """Yield the bytes of objects from the start of the slice's chunk up to `end`."""
    return read_objects(objects, entries, work.form, work.whose, start=work.begin, end=end)


def _beginning(work: ArchiveSlice, source: Source, objects: Objects, task: Task) -> list[bytes]:
    """Read the chunk's bytes before `at`: from the archive if the source has lost them."""
    try:
        read = source.read(work.source, work.begin, work.at, flow=task.pace)
        return [bytes(block.data) for block in read]
    except (SegmentTruncated, NoSuchSegment):
        return [bytes(block) for block in _read(work, objects, work.before, work.at)]


def _compare(work: CheckSlice, found: Mapping[int, bytes]) -> None:
    for chunk, digest in found.items():
        expected = work.known.get(chunk)
        if expected is not None and expected != digest:
            raise DigestMismatch(
                f"chunk {chunk} of segment {work.whose.id} was put as other bytes: SHA-256 "
                f"{digest.hex()}, expected {expected.hex()}"
            )
