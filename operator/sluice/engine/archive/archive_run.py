"""Carry out one run of an archive: the steps that `core.archive.archiving` decides.

Steps that move bytes become slices for tasks. All other steps are short calls, made here. The state
of the run lies in its notes, in the archive. A driver remembers nothing that the notes do not say.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, assert_never

from sluice.archive.runs.archive import place
from sluice.archive.runs.leases import Lease
from sluice.archive.runs.notes import Notes
from sluice.core.archive.archiving import SeenArchive, next_step, recorded
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.notes import CheckNote, ChunkDigest, GapNote, NextEvent, Note, PutNote
from sluice.core.archive.standing import RunStanding
from sluice.core.copy.observed import SeenSource
from sluice.core.copy.steps import (
    Amend,
    ArchiveStep,
    DeleteJournal,
    RecordRun,
    Replan,
    Transfer,
    Verify,
)
from sluice.core.events.digest import ChunkDigester, chunks
from sluice.engine.archive.parts import parts, share
from sluice.engine.archive.planning import noted_plan, replanned
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.archive.slices import ArchiveResult, ArchiveSlice, CheckSlice, read_objects
from sluice.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head
    from sluice.core.archive.manifest import StoredObject
    from sluice.core.archive.plan import ArchivePlan
    from sluice.core.archive.standing import ObjectRow
    from sluice.core.copy.steps import Step
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.errors import SluiceError
    from sluice.stores.base import Source


class ArchiveCopy:
    """A run of an archive; see `engine.tasks.work.Work`.

    Args:
        plan: what to archive. A plan that is already noted in the archive replaces it.
        sources: the stores to read from.
        archive: the archive to add the run to.
        number: the run's place among the runs that are made together.

    Attributes:
        plan: what is archived.
        number, sources, archive: see above.
    """

    def __init__(
        self, plan: ArchivePlan, sources: Sequence[Source], archive: Archive, number: int = 0
    ) -> None:
        self.plan = plan
        self.number = number
        self.sources = sources
        self._source = sources[plan.store]
        self.archive = archive
        self._notes = Notes(archive.objects, plan.copy_id)
        self._lease: Lease | None = None
        self._held = ExitStack()
        self._standing: RunStanding | None = None
        self._taken = (0, 0)
        self._head: Head | None = None
        self._added: int | None = None

    @property
    def moving(self) -> int:
        """The bytes of the run."""
        return self.plan.bytes

    def begin(self, *, permit: Callable[[], None] | None) -> ArchiveReport | None:
        """Start or resume the run: take the lease against sweeps, and note the plan.

        Returns:
            The report, if the run is already recorded; otherwise None.
        """
        with ExitStack() as failing:
            failing.callback(self.let_go)
            self._hold()
            if not self._notes.read():
                entry = recorded(self.plan, self.archive.head())
                if entry is not None:
                    self._end()
                    return ArchiveReport.recorded(self.plan, entry)
                if permit is not None:
                    permit()
                self._notes.begin(Note(of=self.plan.hash, plan=self.plan))
            failing.pop_all()
        return None

    def look(self) -> Step:
        """Observe the archive and the source, and decide the next step. Raise as `next_step`."""
        self._hold()
        # Read the notes before the head: a driver deletes them once the head lists the run.
        notes = self._notes.read()
        plan = noted_plan(notes, self.plan)
        self._head = head = self.archive.head()
        if plan is None:
            return next_step(self.plan, SeenArchive(noted=False, head=head))
        self.plan = plan
        if plan.parent != place(head)[1]:
            return next_step(plan, SeenArchive(noted=True, head=head))
        standing = self._stand(plan, notes)
        seen = SeenArchive(noted=True, head=head, standing=standing)
        if standing.needs_source:
            seen = self._with_source(seen)
        return next_step(plan, seen)

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        if not isinstance(step, ArchiveStep):
            raise TypeError(f"{step} moves bytes or is no step to perform")
        match step:
            case Amend(starts):
                gaps = tuple(self._gap(index, to) for index, to in starts)
                self._notes.add(Note(of=self.plan.hash, gaps=gaps))
            case Replan():
                plan = replanned(self.plan, self._source, self.archive)
                self._notes.add(Note(of=plan.hash, plan=plan))
            case RecordRun():
                self._record()
            case DeleteJournal():
                self._notes.delete_own()
            case _:
                assert_never(step)

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """Return the next slices of a step that moves bytes."""
        if isinstance(step, Transfer):
            return self._put_slices([index for index, _, _ in step.parts], limits, slots)
        groups = [
            (index, row, group)
            for index in step.segments
            for row, group in self._there.segments[index].unchecked()
        ]
        size = share(sum(group[-1].end - group[0].start for *_, group in groups), slots, limits)
        return [
            self._check_slice(index, row, batch)
            for index, row, group in groups
            for batch in _batches(group, size)
        ]

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Note results of slices in the archive."""
        put, checked = [], []
        for result in results:
            done = result.archived if isinstance(result, ArchiveResult) else None
            if done is None or not done.objects:
                continue
            index = result.slice.segment
            if isinstance(step, Verify):
                edges = done.objects[0].start, done.objects[-1].end
                checked.append(CheckNote(segment=index, start=edges[0], end=edges[1]))
                continue
            following = done.following
            put.append(
                PutNote(
                    segment=index,
                    objects=tuple(done.objects),
                    digests=tuple(
                        ChunkDigest(chunk=chunk, sha256=digest.hex())
                        for chunk, digest in result.digests.items()
                    ),
                    following=None if following is None else NextEvent.of(following),
                    guess=done.guess,
                )
            )
        if put or checked:
            self._hold()
            self._notes.add(Note(of=self.plan.hash, put=tuple(put), checked=tuple(checked)))

    def finished(self, digest: str) -> ArchiveReport:
        """Return the report of a recorded run, given the SHA-256 of its manifest."""
        head = self._head
        entry = recorded(self.plan, head)
        if head is None or entry is None:
            raise StoreUnavailable(f"the run {digest} was not seen")
        self._end()
        if self._added is None:
            return ArchiveReport.recorded(self.plan, entry)
        lost = 0 if self._standing is None else self._standing.lost
        _, events = head.added(entry.run, entry)
        return ArchiveReport.recorded(
            self.plan, entry, added=self._added, new_events=events, lost=lost
        )

    def give_up(self) -> None:
        """Delete the run's notes and release its leases. A later sweep deletes its objects."""
        self._notes.delete_own()
        self._end()

    def failed(self, error: SluiceError, *, cleaned: bool) -> ArchiveReport:
        """Return the report of a run that failed for good."""
        return ArchiveReport.failed(self.plan, error, cleaned=cleaned)

    def let_go(self) -> None:
        """Release the lease, so that others may sweep while no driver works on the run."""
        self._lease = None
        self._held.close()

    # -- what is known

    def _hold(self, *, now: bool = False) -> None:
        """Take or renew the lease, which keeps unrecorded objects from being swept.

        Args:
            now: write the lease and look for other leases even if a renewal is not due yet.
        """
        if self._lease is not None and not self._lease.is_held:
            self.let_go()
        if self._lease is None:
            maker = self.plan.maker.id if self.plan.maker else None
            owner = self.plan.copy_id
            lease = Lease(self.archive.objects, owner, LeaseWork.WRITE, maker=maker)
            self._lease = self._held.enter_context(lease)
        self._lease.renew(now=now)

    def _record(self) -> None:
        """Record the run, unless some of it was swept. The next look finds out about a sweep."""
        manifest = self._there.manifest(place(self._head)[0])
        # This driver may have been held up until its lease expired. The renewed lease keeps out new
        # sweeps. An earlier sweep deleted the first note before anything else of the run.
        self._hold(now=True)
        if self._notes.stand():
            self.archive.record(manifest, self._head, verified=self.plan.verify)
            self._added = self._there.added

    def _end(self) -> None:
        """Release this driver's lease and those of the run's earlier drivers: the run is over."""
        # An earlier driver was killed, or finds the run recorded as well.
        if self._lease is not None:
            self.archive.objects.delete(self._lease.earlier)
        self.let_go()

    def _stand(self, plan: ArchivePlan, notes: Sequence[Note]) -> RunStanding:
        """Return how far the run is, by its notes. Add only notes that are new to it."""
        standing = self._standing
        anew, count = self._taken
        if standing is None or standing.plan is not plan or anew != self._notes.anew:
            head = self._head
            parent = self.archive.manifest(head.runs[-1]) if head else None
            standing = self._standing = RunStanding(plan, parent)
            count = 0
        standing.take(notes[count:])
        self._taken = self._notes.anew, len(notes)
        return standing

    @property
    def _there(self) -> RunStanding:
        """How far the run was at the last look."""
        if self._standing is None:
            raise StoreUnavailable(f"the run of {self.plan.path} was not looked at")
        return self._standing

    def _with_source(self, seen: SeenArchive) -> SeenArchive:
        """Return the observation with the present state of the source's segments added."""
        plan, source = self.plan, self._source
        names = [self._source_name(segment.id) for segment in plan.segments]
        # A segment that is deleted between the two calls counts as gone.
        created = source.attributes([(name, source.creation_time) for name in names])
        infos = source.infos(names)
        sources = tuple(
            None if info is None else SeenSource(info, when or 0)
            for info, when in zip(infos, created, strict=True)
        )
        there = had = True
        standing = self._there
        if any(
            one is None and not known.is_put
            for one, known in zip(sources, standing.segments, strict=True)
        ):
            there = source.describe(plan.source) is not None
            had = all(source.had(plan.source, one.segment) for one in plan.end.offsets)
        return replace(seen, sources=sources, there=there, had=had)

    def _gap(self, index: int, to: int) -> GapNote:
        """Return the note of lost bytes, from the segment's present position up to `to`.

        The chunk before the gap ends early. Its digest is computed from the archive's objects.
        """
        segment = self._there.segments[index]
        at = segment.at
        begin, before = segment.beginning(at)
        digest = None
        if begin < at and segment.rows and segment.rows[-1].end == at:
            digester = ChunkDigester(begin, at)
            whose = (self.plan.format, segment.plan.bare)
            for block in read_objects(self.archive.objects, before, *whose, start=begin, end=at):
                digester.feed(block)
            ((chunk, found),) = digester.done.items()
            digest = ChunkDigest(chunk=chunk, sha256=found.hex())
        return GapNote(segment=index, start=at, end=to, digest=digest)

    # -- slices

    def _put_slices(self, places: Sequence[int], limits: Limits, slots: int) -> list[Slice]:
        """Return slices of the segments: the first of each, then the second of each, and so on."""
        segments = [self._there.segments[index] for index in places]
        rows = [
            [self._put_slice(index, at, until) for at, until in row]
            for index, row in zip(
                places, parts(segments, self.plan.format, limits, slots), strict=True
            )
        ]
        return [one for column in zip_longest(*rows) for one in column if one is not None]

    def _put_slice(self, index: int, at: int, until: int) -> ArchiveSlice:
        plan, standing = self.plan, self._there
        segment = standing.segments[index]
        guess = at != segment.at
        begin, before = (at, ()) if guess else segment.beginning(at)
        return ArchiveSlice(
            stream=self.number,
            segment=index,
            store=plan.store,
            source=self._source_name(segment.plan.id),
            path=plan.path,
            form=plan.format,
            whose=segment.plan.bare,
            at=at,
            end=segment.plan.end,
            until=until,
            following=None if guess else segment.following,
            guess=guess and segment.following is not None,
            begin=begin,
            before=before,
            most_events=plan.max_events - standing.events if plan.format.is_of_events else None,
        )

    def _check_slice(
        self, index: int, row: ObjectRow, batch: tuple[StoredObject, ...]
    ) -> CheckSlice:
        plan = self.plan
        segment = self._there.segments[index]
        begin, before = segment.beginning(batch[0].start)
        wanted = chunks(batch[0].start, batch[-1].end)
        return CheckSlice(
            stream=self.number,
            segment=index,
            store=plan.store,
            path=plan.path,
            form=plan.format,
            whose=segment.plan.bare,
            objects=batch,
            begin=begin,
            before=before,
            end=row.end,
            known={chunk: row.digests[chunk] for chunk in wanted if chunk in row.digests},
        )

    def _source_name(self, segment: int) -> str:
        return self._source.segment_name(self.plan.source, segment)


def _batches(objects: Sequence[StoredObject], most: int) -> Iterator[tuple[StoredObject, ...]]:
    """Split adjacent objects into batches of at most `most` bytes, at least one object each."""
    batch: list[StoredObject] = []
    for one in objects:
        if batch and one.end - batch[0].start > most:
            yield tuple(batch)
            batch = []
        batch.append(one)
    if batch:
        yield tuple(batch)
