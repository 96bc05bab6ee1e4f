"""Read rows of consecutive objects, and compare them with what all runs say of them.

Objects that several runs list are read once. An incremental run lists its parent's objects first,
so the parent's statements on them are compared in the same pass.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked, damaged
from sluice.core.archive.names import Format
from sluice.core.events.digest import chunk_end, chunk_start, chunks
from sluice.core.events.grouping import EventStart, Tallier, Tally
from sluice.errors import ArchiveDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sluice.archive.objects.objects import Objects
    from sluice.core.archive.head import RunEntry
    from sluice.core.archive.manifest import ArchivedSegment, Manifest, ObjectStretch, StoredObject


class Problem(NamedTuple):
    """A difference between an archive and what was recorded.

    Attributes:
        name: name of the object that is damaged, missing or contradicts others.
        what: what is wrong, as a sentence that begins with the name.
        runs: numbers of the runs that cannot be restored because of it.
    """

    name: str
    what: str
    runs: tuple[int, ...]


class StretchFacts(NamedTuple):
    """A stretch as one run's manifest describes it.

    Attributes:
        run: number of the run.
        name: name of its manifest.
        stretch: the stretch in the manifest.
    """

    run: int
    name: str
    stretch: ObjectStretch


class ObjectSequence(NamedTuple):
    """Consecutive objects of a segment, and what runs say of them.

    Attributes:
        form: the format of the objects.
        segment: the segment whose bytes they hold.
        objects: the objects.
        claims: the stretches of all runs that list these objects, or the first of them.
    """

    form: Format
    segment: ArchivedSegment
    objects: tuple[StoredObject, ...]
    claims: list[StretchFacts]


def rows_of(manifests: Iterable[tuple[RunEntry, Manifest]]) -> list[ObjectSequence]:
    """Return what has to be read to verify runs: each object once, in the order of the stream."""
    rows: dict[tuple[int, str], list[ObjectSequence]] = {}
    for entry, manifest in sorted(manifests, key=lambda one: -one[0].run):
        for segment in manifest.segments:
            for stretch in segment.stretches:
                beside = rows.setdefault((segment.id, stretch.objects[0].name), [])
                count = len(stretch.objects)
                row = next((one for one in beside if one.objects[:count] == stretch.objects), None)
                if row is None:
                    row = ObjectSequence(manifest.format, segment, stretch.objects, [])
                    beside.append(row)
                row.claims.append(StretchFacts(entry.run, entry.name, stretch))
    return sorted(
        (row for beside in rows.values() for row in beside),
        key=lambda row: (row.segment.epoch, row.segment.id, row.objects[0].start),
    )


class RowReader:
    """A reader of a row, object by object. It holds one object in memory at a time.

    Args:
        objects: the store of objects.
        row: the row to read.
        names: names of objects by SHA-256, to name the object whose bytes lie in another's place.

    Attributes:
        bytes: how many bytes of the source were compared.
        problems: the problems found.
    """

    def __init__(self, objects: Objects, row: ObjectSequence, names: Mapping[str, str]) -> None:
        self.bytes = 0
        self.problems: list[Problem] = []
        self._objects = objects
        self._row = row
        self._names = names
        self._digests = _Digests(row.claims)
        counted = row.claims[0].stretch.events is not None
        self._tallier = Tallier(EventStart(row.objects[0].start) if counted else None)
        self._events: dict[int, int | None] = {}

    def run(self, told: Callable[[int], None] | None = None) -> None:
        """Read the row, and compare it with all claims. `told` is called with each block's size."""
        total: int | None = 0
        for entry in self._row.objects:
            try:
                for block in self._blocks(entry):
                    self.bytes += len(block)
                    if told:
                        told(len(block))
            except ArchiveDamaged as error:
                self._note(entry, error)
                self._digests.lose(entry.start, entry.end)
                self._tallier = Tallier(None)
            total = self._add(entry, total)
            self._events[entry.end] = total
        for claim in self._row.claims:
            self._compare(claim)

    def _blocks(self, entry: StoredObject) -> Iterator[memoryview]:
        """Yield an object's bytes of the segment, after adding them to digests and counts."""
        content = Checked(self._objects, entry)
        at = entry.start
        for block in formats.read(
            self._row.form, self._objects, self._row.segment, content, start=at, end=entry.end
        ):
            self._digests.feed(at, block)
            self._tallier.feed(block)
            at += len(block)
            yield block
        if at != entry.end:
            raise damaged(entry, f"ends at offset {at}, and not at {entry.end}")

    def _note(self, entry: StoredObject, error: ArchiveDamaged) -> None:
        """Note the problem of an object, or those of its events' objects."""
        runs = tuple(sorted(one.run for one in self._row.claims if one.stretch.end >= entry.end))
        errors = [error]
        if error.name == entry.name:
            errors = [self._told_apart(entry, error)]
        elif self._row.form is Format.EVENT_OBJECTS:
            from sluice.archive.formats import eventobjects  # noqa: PLC0415 - see formats

            place = (self._row.segment.epoch, self._row.segment.id)
            content = Checked(self._objects, entry)
            errors = list(eventobjects.damages(self._objects, content, *place))
        self.problems += [Problem(one.name, one.message, runs) for one in errors]

    def _told_apart(self, entry: StoredObject, error: ArchiveDamaged) -> ArchiveDamaged:
        """Return the error, or one that names the other object whose bytes this object has."""
        found = self._objects.look(entry.name)
        if found is None or found.size > max(one.size for one in self._row.objects) * 2:
            return error
        sha256 = hashlib.sha256(self._objects.get(entry.name, 0, found.size) or b"").hexdigest()
        other = self._names.get(sha256)
        if other is None or other == entry.name:
            return error
        return damaged(entry, f"holds the bytes of {other}")

    def _add(self, entry: StoredObject, total: int | None) -> int | None:
        """Compare an object's events with its entry. Return the number of events up to its end."""
        tally = self._tallier.end()
        if tally.events is None or total is None:
            return None
        if entry.events is not None and tally != Tally(entry.events, entry.first, entry.last):
            for claim in self._row.claims:
                if claim.stretch.end >= entry.end:
                    what = f"{claim.name} says other events of {entry.name} than it has"
                    self.problems.append(Problem(claim.name, what, (claim.run,)))
        return total + tally.events

    def _compare(self, claim: StretchFacts) -> None:
        """Compare a run's digests and number of events with those found."""
        stretch, number = claim.stretch, self._row.segment.id
        for chunk, expected in stretch.chunk_digests.items():
            piece = _Piece(chunk_start(chunk, stretch.start), chunk_end(chunk, stretch.end))
            digest = self._digests.found(piece)
            if digest is not None and digest != expected:
                self.problems.append(
                    Problem(
                        claim.name,
                        f"{claim.name} has another digest than the bytes {piece.start} to "
                        f"{piece.end} of segment {number}",
                        (claim.run,),
                    )
                )
        events = self._events[stretch.end]
        if events is not None and stretch.events != events:
            what = f"{claim.name} says that segment {number} has {stretch.events} events from "
            what += f"offset {stretch.start} on, and it has {events}"
            self.problems.append(Problem(claim.name, what, (claim.run,)))


class _Piece(NamedTuple):
    """Bytes of a segment that have a digest: a chunk, or the part of it that a run has."""

    start: int
    end: int


@dataclass
class _Digests:
    """SHA-256 of all pieces of which runs have digests. Bytes are fed in order."""

    claims: list[StretchFacts]
    _done: dict[_Piece, bytes] = field(default_factory=dict)
    _open: dict[_Piece, Any] = field(default_factory=dict)
    _lost: list[_Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        pieces = {
            _Piece(chunk_start(chunk, one.stretch.start), chunk_end(chunk, one.stretch.end))
            for one in self.claims
            for chunk in chunks(one.stretch.start, one.stretch.end)
        }
        self._left = sorted(pieces, reverse=True)

    def feed(self, at: int, block: memoryview) -> None:
        """Add bytes that lie at this offset."""
        end = at + len(block)
        while self._left and self._left[-1].start < end:
            self._open[self._left.pop()] = hashlib.sha256()
        for piece, digest in list(self._open.items()):
            digest.update(block[max(0, piece.start - at) : max(0, piece.end - at)])
            if piece.end <= end:
                self._done[piece] = self._open.pop(piece).digest()

    def lose(self, start: int, end: int) -> None:
        """Note that not all of these bytes can be read."""
        self._lost.append(_Piece(start, end))

    def found(self, piece: _Piece) -> bytes | None:
        """Return the digest of a piece; None if some of it cannot be read."""
        if any(one.start < piece.end and piece.start < one.end for one in self._lost):
            return None
        return self._done[piece]
