"""How far a run is: its plan, and what its notes say is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.growing import grown, without
from sluice.core.archive.manifest import ArchivedSegment, ArchivedSource, Manifest, StoredObject
from sluice.core.archive.plan import SOURCE_TRUNCATED, gone
from sluice.core.events.digest import chunk_of, chunk_start
from sluice.core.events.grouping import Following
from sluice.core.values import marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.notes import CheckNote, GapNote, Note, PutNote
    from sluice.core.archive.plan import ArchivePlan, SegmentRun


_UNCOUNTED: Final = {"events": None, "first": None, "last": None}
"""What is known of the events of an object whose bytes are none."""


class Lack(NamedTuple):
    """Bytes [start, end) that are lost."""

    start: int
    end: int


@dataclass(slots=True)
class ObjectRow:
    """Objects of this run that follow one another without a gap.

    Attributes:
        start: first offset.
        end: offset after the last one.
        objects: they.
        digests: SHA-256 of the chunks that end in them, and of the beginning of the last one where
            it is known.
        events: in them; None where the bytes are none.
    """

    start: int
    end: int
    objects: list[StoredObject] = field(default_factory=list)
    digests: dict[int, bytes] = field(default_factory=dict)
    events: int | None = 0


class SegmentStanding:
    """How far a segment is.

    Args:
        plan: what is archived of it.
        before: the segment as the run before has it; None where that has not got it.

    Attributes:
        plan: what is archived of it.
        before: the segment as it was before this run.
        at: the offset to go on at.
        following: where the next event begins; None where the bytes are no events.
        misled: whether events were taken to begin where none did.
    """

    def __init__(self, plan: SegmentRun, before: ArchivedSegment | None) -> None:
        self.plan = plan
        self.before = before or plan.bare
        self.at = plan.done
        last = self.before.stretches[-1] if self.before.stretches else None
        counted = last is None or last.end < plan.done or last.events is not None
        self.following = Following(plan.done) if counted else None
        self.misled = False
        self._rows: list[ObjectRow | Lack] = []
        self._waiting: dict[int, PutNote] = {}
        self._checked: set[tuple[int, int]] = set()
        if plan.done < plan.begin:
            self._lack(plan.begin)

    @property
    def is_put(self) -> bool:
        """Whether all of it is there."""
        return self.at == self.plan.end

    @property
    def is_checked(self) -> bool:
        """Whether bytes of it were read back already."""
        return bool(self._checked)

    @property
    def bytes(self) -> int:
        """Bytes that are there, or known to be lost, since the plan was made."""
        missing = sum(end - start for start, end in self.missing)
        return self.plan.end - self.plan.begin - missing

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The bytes that are not there, in order; the first ones begin at `at`."""
        found, at = [], self.at
        for start, note in sorted(self._waiting.items()):
            if at < start:
                found.append((at, start))
            at = max(at, note.end)
        return [*found, (at, self.plan.end)] if at < self.plan.end else found

    @property
    def events(self) -> int:
        """Events that are there, those of earlier runs too."""
        return (self.before.events or 0) + sum(row.events or 0 for row in self.rows)

    @property
    def rows(self) -> list[ObjectRow]:
        """What is there."""
        return [row for row in self._rows if isinstance(row, ObjectRow)]

    @property
    def gaps(self) -> list[Lack]:
        """What is lost."""
        return [row for row in self._rows if isinstance(row, Lack)]

    @property
    def stretch(self) -> int:
        """Where the stretch begins that goes on at `at`: its chunks are cut there."""
        return self._stretch_of(self.at)

    def beginning(self, at: int) -> tuple[int, tuple[StoredObject, ...]]:
        """The beginning of the chunk that this offset, which is one of `at`, lies in.

        Returns:
            Where it begins, and the objects that hold it up to the offset.
        """
        begin = chunk_start(chunk_of(at), self._stretch_of(at))
        older = [one for stretch in self.before.stretches for one in stretch.objects]
        mine = [one for row in self.rows for one in row.objects]
        return begin, tuple(one for one in (*older, *mine) if one.end > begin and one.start < at)

    def unchecked(self) -> list[tuple[ObjectRow, list[StoredObject]]]:
        """Objects that were not read back yet, in groups of such as follow one another."""
        found: list[tuple[ObjectRow, list[StoredObject]]] = []
        for row in self.rows:
            group: list[StoredObject] = []
            for one in row.objects:
                if self._is_checked(one):
                    group = []
                    continue
                if not group:
                    found.append((row, group))
                group.append(one)
        return found

    def put(self, note: PutNote) -> None:
        """Take in objects, at once or when those are here that they follow on."""
        if note.start >= self.at:
            self._waiting.setdefault(note.start, note)
            self._follow()

    def lose(self, note: GapNote) -> None:
        """Take in that bytes are lost, if they are those that follow."""
        if note.start != self.at:
            return
        if note.digest is not None:
            self.rows[-1].digests[note.digest.chunk] = bytes.fromhex(note.digest.sha256)
        self._lack(note.end)
        self._follow()

    def check(self, note: CheckNote) -> None:
        """Take in that bytes were read back."""
        self._checked.add((note.start, note.end))

    def archived(self, run: int) -> ArchivedSegment:
        """The segment as the run has it."""
        segment = self.before
        for row in self._rows:
            if isinstance(row, Lack):
                segment = without(segment, to=row.end, reason=SOURCE_TRUNCATED, run=run)
            else:
                segment = grown(
                    segment,
                    end=row.end,
                    objects=row.objects,
                    digests=row.digests,
                    events=row.events,
                    sealed=False,
                )
        lost = gone(run) if self.plan.lost else segment.lost
        return segment.model_copy(update={"sealed": self.plan.sealed, "lost": lost})

    def _follow(self) -> None:
        """Take in what follows; what was put under a wrong guess is to be put again."""
        while (note := self._waiting.pop(self.at, None)) is not None:
            if note.guess is None or self.following is None or note.guess.holds(self.following):
                self._take(note)
            else:
                self.misled = True
        self._waiting = {start: one for start, one in self._waiting.items() if start > self.at}

    def _take(self, note: PutNote) -> None:
        """Take in the objects that follow. Behind bytes that are no events none are counted."""
        objects = note.objects
        if self.following is None:
            objects = tuple(one.model_copy(update=_UNCOUNTED) for one in objects)
        if not self._rows or isinstance(self._rows[-1], Lack):
            self._rows.append(ObjectRow(self.at, self.at))
        row = self.rows[-1]
        row.objects += objects
        row.digests |= {one.chunk: bytes.fromhex(one.sha256) for one in note.digests}
        counts = [one.events for one in objects if one.events is not None]
        whole = row.events is not None and len(counts) == len(objects)
        row.events = (row.events or 0) + sum(counts) if whole else None
        row.end = self.at = note.end
        if self.following is not None:
            self.following = note.following.value if note.following else None

    def _lack(self, end: int) -> None:
        self._rows.append(Lack(self.at, end))
        self.at = end
        self.following = Following(end)

    def _stretch_of(self, at: int) -> int:
        """Where the stretch begins that has the bytes before this offset, or begins there."""
        row = next((one for one in self.rows if one.start < at <= one.end), None)
        start = row.start if row else at
        last = self.before.stretches[-1] if self.before.stretches else None
        return last.start if last is not None and last.end == start else start

    def _is_checked(self, one: StoredObject) -> bool:
        return any(start <= one.start and one.end <= end for start, end in self._checked)


class Standing:
    """How far a run is.

    Args:
        plan: the run.
        parent: the manifest of the run that it adds to.

    Attributes:
        plan: the run.
        segments: in the plan's order.
    """

    def __init__(self, plan: ArchivePlan, parent: Manifest | None) -> None:
        self.plan = plan
        self._parent = parent
        known = {one.id: one for one in parent.segments} if parent else {}
        self.segments = [SegmentStanding(one, known.get(one.id)) for one in plan.segments]
        planned = {one.id for one in plan.segments}
        self._settled = [one for id_, one in known.items() if id_ not in planned]

    def take(self, notes: Sequence[Note]) -> None:
        """Take in notes; those of another plan are left out."""
        for note in notes:
            if note.of != self.plan.hash:
                continue
            for gap in note.gaps:
                self.segments[gap.segment].lose(gap)
            for put in note.put:
                self.segments[put.segment].put(put)
            for checked in note.checked:
                self.segments[checked.segment].check(checked)

    @property
    def needs_source(self) -> bool:
        """Whether the source has to be looked at.

        That is so while bytes are to be put, and once more when all are, since it may have been
        replaced while the last ones were read. Nothing is read back before that.
        """
        if not all(one.is_put for one in self.segments):
            return True
        return self.added > 0 and not any(one.is_checked for one in self.segments)

    @property
    def bytes(self) -> int:
        """Bytes that are there, or known to be lost, of those of the plan."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def added(self) -> int:
        """Bytes that this run has put."""
        return sum(row.end - row.start for one in self.segments for row in one.rows)

    @property
    def lost(self) -> int:
        """Bytes that this run has found lost."""
        return sum(gap.end - gap.start for one in self.segments for gap in one.gaps)

    @property
    def events(self) -> int:
        """Events that are there, those of earlier runs too."""
        return sum(one.events for one in self.segments) + sum(
            one.events or 0 for one in self._settled
        )

    def manifest(self, run: int) -> Manifest:
        """What is to be recorded under this number, once all is there."""
        plan = self.plan
        segments = [*self._settled, *(one.archived(run) for one in self.segments)]
        return Manifest(
            run=run,
            format=plan.format,
            source=ArchivedSource(stream=plan.source, store=plan.store_uri),
            parent=plan.parent,
            work=plan.copy_id,
            maker=plan.maker,
            begin=plan.begin,
            end=plan.end,
            config=marks.plain(plan.config),
            sealed=plan.sealed,
            segments=tuple(sorted(segments, key=lambda one: (one.epoch, one.id))),
        )
