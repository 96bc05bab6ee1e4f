"""The progress of a run: its plan, and what its notes say is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.growing import grown, without
from sluice.core.archive.manifest import ArchivedSegment, ArchivedSource, Manifest, StoredObject
from sluice.core.archive.plan import SOURCE_TRUNCATED, gone
from sluice.core.events.digest import chunk_of, chunk_start
from sluice.core.events.grouping import EventStart
from sluice.core.values import marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.archive.notes import CheckNote, GapNote, Note, PutNote
    from sluice.core.archive.plan import ArchivePlan, SegmentRun


_UNCOUNTED: Final = {"events": None, "first": None, "last": None}
"""The facts about events of an object whose bytes are not events."""


class Lack(NamedTuple):
    """Lost bytes [start, end) of a segment."""

    start: int
    end: int


@dataclass(slots=True)
class ObjectRow:
    """Consecutive objects of this run, without a gap.

    Attributes:
        start: first offset.
        end: offset after the last byte.
        objects: the objects.
        digests: SHA-256 of the chunks that end in them, and, if known, of the beginning of the last
            chunk.
        events: number of events in them; None if the bytes are not events.
    """

    start: int
    end: int
    objects: list[StoredObject] = field(default_factory=list)
    digests: dict[int, bytes] = field(default_factory=dict)
    events: int | None = 0


class SegmentStanding:
    """The progress of a segment.

    Args:
        plan: the part of it to archive.
        before: the segment as the run before has it; None if the segment is new.

    Attributes:
        plan: the part of it to archive.
        before: the segment as it was before this run.
        at: the offset up to which all bytes are put or lost.
        following: where the next event begins; None if the bytes are not events.
        misled: whether a part was put with a wrong guess of where its first event begins.
    """

    def __init__(self, plan: SegmentRun, before: ArchivedSegment | None) -> None:
        self.plan = plan
        self.before = before or plan.bare
        self.at = plan.done
        last = self.before.stretches[-1] if self.before.stretches else None
        counted = last is None or last.end < plan.done or last.events is not None
        self.following = EventStart(plan.done) if counted else None
        self.misled = False
        self._rows: list[ObjectRow | Lack] = []
        self._waiting: dict[int, PutNote] = {}
        self._checked: set[tuple[int, int]] = set()
        if plan.done < plan.begin:
            self._lack(plan.begin)

    @property
    def is_put(self) -> bool:
        """Whether all its bytes are put or lost."""
        return self.at == self.plan.end

    @property
    def is_checked(self) -> bool:
        """Whether some of its bytes were read back already."""
        return bool(self._checked)

    @property
    def bytes(self) -> int:
        """The number of planned bytes that are put, or known to be lost."""
        missing = sum(end - start for start, end in self.missing)
        return self.plan.end - self.plan.begin - missing

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The bounds of bytes that are neither put nor lost, in order; the first begin at `at`."""
        found, at = [], self.at
        for start, note in sorted(self._waiting.items()):
            if at < start:
                found.append((at, start))
            at = max(at, note.end)
        return [*found, (at, self.plan.end)] if at < self.plan.end else found

    @property
    def events(self) -> int:
        """The number of events that are put, including those of earlier runs."""
        return (self.before.events or 0) + sum(row.events or 0 for row in self.rows)

    @property
    def rows(self) -> list[ObjectRow]:
        """The objects that this run has put."""
        return [row for row in self._rows if isinstance(row, ObjectRow)]

    @property
    def gaps(self) -> list[Lack]:
        """The bytes that this run has found lost."""
        return [row for row in self._rows if isinstance(row, Lack)]

    @property
    def stretch(self) -> int:
        """Where the stretch begins that continues at `at`; its first chunk begins there."""
        return self._stretch_of(self.at)

    def beginning(self, at: int) -> tuple[int, tuple[StoredObject, ...]]:
        """Return the beginning of the chunk that an offset lies in.

        Args:
            at: a present or former value of `self.at`.

        Returns:
            The offset at which the chunk begins, and the objects that hold it up to `at`.
        """
        begin = chunk_start(chunk_of(at), self._stretch_of(at))
        older = [one for stretch in self.before.stretches for one in stretch.objects]
        mine = [one for row in self.rows for one in row.objects]
        return begin, tuple(one for one in (*older, *mine) if one.end > begin and one.start < at)

    def unchecked(self) -> list[tuple[ObjectRow, list[StoredObject]]]:
        """Return the objects that were not read back yet, in groups of consecutive objects.

        Returns:
            The row of each group, and its objects.
        """
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
        """Add objects, now or as soon as the bytes in front of them are put."""
        if note.start >= self.at:
            self._waiting.setdefault(note.start, note)
            self._follow()

    def lose(self, note: GapNote) -> None:
        """Add lost bytes, if they are the next ones."""
        if note.start != self.at:
            return
        if note.digest is not None:
            self.rows[-1].digests[note.digest.chunk] = bytes.fromhex(note.digest.sha256)
        self._lack(note.end)
        self._follow()

    def check(self, note: CheckNote) -> None:
        """Add bytes that were read back."""
        self._checked.add((note.start, note.end))

    def archived(self, run: int) -> ArchivedSegment:
        """Return the segment as the run with this number has it."""
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
        """Add waiting objects that are next. Objects with a wrong guess have to be put again."""
        while (note := self._waiting.pop(self.at, None)) is not None:
            if note.guess is None or self.following is None or note.guess.holds(self.following):
                self._take(note)
            else:
                self.misled = True
        self._waiting = {start: one for start, one in self._waiting.items() if start > self.at}

    def _take(self, note: PutNote) -> None:
        """Add the next objects. Behind bytes that are not events, no events are counted."""
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
        self.following = EventStart(end)

    def _stretch_of(self, at: int) -> int:
        """Return where the stretch with the byte before an offset begins; else the offset."""
        row = next((one for one in self.rows if one.start < at <= one.end), None)
        start = row.start if row else at
        last = self.before.stretches[-1] if self.before.stretches else None
        return last.start if last is not None and last.end == start else start

    def _is_checked(self, one: StoredObject) -> bool:
        return any(start <= one.start and one.end <= end for start, end in self._checked)


class RunStanding:
    """The progress of a run.

    Args:
        plan: the run's plan.
        parent: the manifest of the run that it adds to; None for the first run.

    Attributes:
        plan: the run's plan.
        segments: the progress of each segment, in the plan's order.
    """

    def __init__(self, plan: ArchivePlan, parent: Manifest | None) -> None:
        self.plan = plan
        self._parent = parent
        known = {one.id: one for one in parent.segments} if parent else {}
        self.segments = [SegmentStanding(one, known.get(one.id)) for one in plan.segments]
        planned = {one.id for one in plan.segments}
        self._settled = [one for id_, one in known.items() if id_ not in planned]

    def take(self, notes: Sequence[Note]) -> None:
        """Add notes, in order; notes about another plan are ignored."""
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
        """Whether the source has to be observed.

        It has to be while bytes are missing, and once more when all are put, since it may have been
        replaced while the last bytes were read. Objects are read back only after that.
        """
        if not all(one.is_put for one in self.segments):
            return True
        return self.added > 0 and not any(one.is_checked for one in self.segments)

    @property
    def bytes(self) -> int:
        """The number of planned bytes that are put, or known to be lost."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def added(self) -> int:
        """The number of bytes that this run has put."""
        return sum(row.end - row.start for one in self.segments for row in one.rows)

    @property
    def lost(self) -> int:
        """The number of bytes that this run has found lost."""
        return sum(gap.end - gap.start for one in self.segments for gap in one.gaps)

    @property
    def events(self) -> int:
        """The number of events that are put, including those of earlier runs."""
        return sum(one.events for one in self.segments) + sum(
            one.events or 0 for one in self._settled
        )

    def manifest(self, run: int) -> Manifest:
        """Return the manifest to record under this number, once all bytes are put or lost."""
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
