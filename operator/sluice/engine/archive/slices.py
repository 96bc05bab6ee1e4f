"""The work that tasks do for a run: putting bytes of a segment into objects, and reading them back.

Doing one again makes the same objects again.
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
from sluice.core.events.grouping import Following, Tallier, Tally
from sluice.engine.access.source_runs import shelf
from sluice.engine.rounds.slices import Slice, SliceResult
from sluice.errors import DigestMismatch, NoSuchSegment, SegmentTruncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.manifest import ArchivedSegment, StoredObject
    from sluice.engine.access.source_runs import Place
    from sluice.engine.rounds.throttle import Task
    from sluice.stores.base import Source
    from sluice.stores.reading import Block

_SEARCHED: Final = 2 * CHUNK
"""Bytes in which the first event is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSlice(Slice):
    """Bytes of a segment to put into objects. It ends where an object does.

    Attributes:
        source: full name of the segment to read.
        path: of the archive.
        form: how it holds events.
        whose: the segment as the archive knows it.
        at: the first byte to put.
        end: where the segment's bytes of this run end.
        until: the slice ends with the first object that ends there, or behind it.
        following: where the next event begins; None where the bytes are no events, or where that is
            to be guessed.
        guess: whether it is, since what is before `at` is not there yet.
        begin: where the chunk begins that `at` lies in; what is before `at` is only hashed.
        before: the objects that hold it, for the case that the source has it no more.
        most_events: events that may become objects of their own.
    """

    source: str
    path: str
    form: Format
    whose: ArchivedSegment
    at: int
    end: int
    until: int
    following: Following | None
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
        """Where what has to be read ends: an object that is of whole events may end anywhere."""
        return self.until if self.form is Format.SEGMENTS else self.end

    def run(self, source: Source, target: Place, task: Task) -> ArchiveResult:
        """Put the bytes of the slice, and hash the chunks that end in them."""
        result = ArchiveResult(slice=self, archived=Archived(objects=[], following=self.following))
        with result.caught():
            _put(self, source, shelf(target).archive(self.path).objects, result, task)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSlice(Slice):
    """Objects to read back: compared with what was put, and with what the source had.

    Attributes:
        path, form, whose: as those of ArchiveSlice.
        objects: they, one after the other.
        begin: where the chunk begins that the first one begins in.
        before: the objects that hold that.
        end: where the row of objects ends that these are a part of.
        known: SHA-256 of the source's chunks that end in them.
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

        An object that is not as it was put is ArchiveDamaged; one that is, and holds other bytes
        than the source, is a DigestMismatch.
        """
        result = ArchiveResult(slice=self, archived=Archived(objects=[]))
        with result.caught():
            _check(self, shelf(target).archive(self.path).objects, result, task)
        return result


@dataclass(slots=True, kw_only=True)
class Archived:
    """What came of a slice.

    Attributes:
        objects: that are there, or were read back.
        following: where the next event begins.
        guess: where the first one was taken to begin, if that was not known.
    """

    objects: list[StoredObject]
    following: Following | None = None
    guess: Guess | None = None

    @property
    def end(self) -> int | None:
        """Offset after the last one."""
        return self.objects[-1].end if self.objects else None


@dataclass(slots=True, kw_only=True)
class ArchiveResult(SliceResult):
    """What came of a slice of an archive.

    Attributes:
        archived: the objects that were put or read back.
    """

    archived: Archived


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
                done.following = Following(done.guess.first)
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
            # What was read ahead belongs to the next object.
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
        tallier = Tallier(None if entry.first is None else Following(entry.first), entry.start)
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
    """Where the first event of a slice may begin; and its bytes, from the first one on again."""
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
    """Close what is read at the end of the block: an error would keep its connection otherwise."""
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
    """The bytes [start, end) of a segment out of objects, each compared with its SHA-256."""
    for entry in entries:
        content = Checked(objects, entry)
        yield from formats.read(form, objects, whose, content, start=start, end=end)


def _read(
    work: ArchiveSlice | CheckSlice, objects: Objects, entries: Iterable[StoredObject], end: int
) -> Iterator[memoryview]:
    """The bytes of objects from where a slice's chunk begins up to `end`."""
    return read_objects(objects, entries, work.form, work.whose, start=work.begin, end=end)


def _beginning(work: ArchiveSlice, source: Source, objects: Objects, task: Task) -> list[bytes]:
    """The bytes of the chunk before those to put: from the archive, if the source has them not."""
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
