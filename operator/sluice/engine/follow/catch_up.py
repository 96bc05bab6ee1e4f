"""Catch up with a source: stage, verify and merge what it has, since the target is far behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.follow_progress import caught_up_record
from sluice.core.copy.journal import target_record
from sluice.core.copy.observed import Observed
from sluice.core.copy.steps import Amend, CatchUpStep, EndCatchUp, Publish, Stage, Stitch
from sluice.core.events.digest import chunk_of
from sluice.core.follow import catching_up
from sluice.core.follow.position import Position
from sluice.core.follow.rows import proved, row_of
from sluice.core.values import identity
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.staging.catch_ups import clear_catch_up
from sluice.engine.staging.observe import observe_staged, part_names, with_sources
from sluice.errors import JournalDamaged, NoSuchSegment
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.follow_progress import RecordedCatchUp
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Step
    from sluice.engine.access.source_runs import Origin
    from sluice.engine.follow.proving import Prover
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Store


class CatchUpWork(StreamCopyWork):
    """A catch-up of a copy, which has recorded it.

    Args:
        catch_up: the catch-up.
        log: the journal of the copy.
        sources: the stores to read from.
        target: the target store.
        number: the stream's place in the whole plan.
        prover: compares what is followed.
    """

    def __init__(
        self,
        catch_up: RecordedCatchUp,
        log: CopyJournal,
        sources: Sequence[Origin],
        target: Store,
        *,
        number: int,
        prover: Prover,
    ) -> None:
        loaded = log.loaded
        if loaded is None or loaded.target is None:
            raise NoSuchSegment("the copy's journal is gone", segment=log.name)
        super().__init__(catching_up.plan_of(loaded.plan, catch_up), number, sources, target)
        self.catch_up = catch_up
        self._log = log
        self._copy = loaded.plan
        self._targets = tuple(loaded.target[row] for row in catch_up.rows)
        self._prover = prover

    def next(self, *, stages: bool, room: int | None) -> Step | None:
        """Look at the stores, and decide the next step.

        Args:
            stages: whether this driver stages; else it only tidies up.
            room: most bytes that may come before the copy ends. Then more are not staged.

        Returns:
            None if nothing is to be done for now: the source is to be followed.

        Raises:
            SourceNotFound, SourceReplaced, SourceTruncated: the source changed under the copy.
        """
        # Positions are read first. A position that is still the old one was so before all that is
        # read after it; and bytes that this catch-up has merged have left their mark by then.
        moved = self._moved()
        known = self._load()
        left = (one.length for index, one in enumerate(self.plan.segments) if index not in moved)
        stages = stages and (room is None or room >= sum(left))
        if stages and known is None and len(moved) < len(self._targets):
            self._note()
            self.journal.begin(self.plan)
            known = self.journal.loaded
        if known is not None and known.target is None:
            self.journal.write([target_record(self._targets)])
            known = self.journal.loaded
        names = part_names(self.target, self.plan, self._targets)
        goals = [self.target.segment_name(self.plan.target, one) for one in self._targets]
        seen = Observed(known, None, observe_staged(self.plan, names, goals, self.target))
        if stages:
            seen = with_sources(seen, self.plan, self.sources)
        return catching_up.next_step(self.plan, seen, moved, stages=stages and known is not None)

    def _note(self) -> None:
        """Write down at the target's segments which catch-up stages bytes for them.

        So these are found, and deleted, also if the copy's journal is damaged or lost.
        """
        attribute = identity.catch_up_attribute(self._copy.copy_id)
        goals = [self.target.segment_name(self.plan.target, one) for one in self._targets]
        values = self.target.attributes([(goal, attribute) for goal in goals])
        for index, (goal, value) in enumerate(zip(goals, values, strict=True)):
            place = identity.catch_up_place(self.catch_up.number, index)
            if value is None or value < place:
                self.target.set_attribute(goal, CompareAndSet(attribute, value, place))

    def _load(self) -> Journal | None:
        """Return the catch-up's journal.

        Raises:
            JournalDamaged: it has other segments. Any client of the target's scope may write it.
        """
        known = self.journal.load()
        if known is not None and (
            known.plan.segments != self.plan.segments or known.target not in {None, self._targets}
        ):
            raise JournalDamaged(f"{self.journal.name} is not the journal of this catch-up")
        return known

    def _moved(self) -> set[int]:
        """Return the segments that have another position than that at which they begin."""
        asked = [
            (
                self.target.segment_name(self._copy.target, target),
                identity.position_attribute(self._copy.copy_id, segment.id),
            )
            for target, segment in zip(self._targets, self.plan.segments, strict=True)
        ]
        values = self.target.attributes(asked)
        return {
            index
            for index, (value, segment) in enumerate(zip(values, self.plan.segments, strict=True))
            if value != Position(segment.start).value
        }

    def _did(self, step: Step) -> None:
        """Note nothing: what follows from a step is seen at the next look."""

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        if not isinstance(step, CatchUpStep):
            raise TypeError(f"{step} is no step of a catch-up")
        match step:
            case Stage(parts):
                for index, part in parts:
                    self.target.create(self.staged.name(index, part.number))
            case Stitch(parts):
                self.staged.stitch(parts)
            case Amend(starts):
                for index, _ in starts:
                    self._give_up(index, None)
            case Publish(segments):
                for index in segments:
                    self._publish(index)
            case EndCatchUp():
                self._end()

    def _publish(self, index: int) -> None:
        """Merge a verified segment behind all that the target has, if nothing else has come there.

        Raises:
            ConditionFailed: another driver has moved the position.
        """
        segment = self.plan.segments[index]
        known = self.journal.load()
        row = row_of(self._decided(), self.catch_up.rows[index])
        if known is None:
            raise NoSuchSegment("the catch-up is over", segment=self.journal.name)
        if index not in known.events and not row.plain:
            self._give_up(index, segment.length)  # no events: following finds the first of these
            return
        attribute = identity.position_attribute(self._copy.copy_id, segment.id)
        condition = CompareAndSet(attribute, segment.start, segment.end)
        name = self.staged.name(index, 0)
        self.target.seal(name)
        self.target.merge(
            self.target.segment_name(self.plan.target, self._targets[index]),
            name,
            condition,
            events=known.events.get(index, 0),
            notes=((identity.publish_attribute(self.plan.copy_id), segment.length),),
        )

    def _give_up(self, index: int, verified: int | None) -> None:
        """Mark what is staged of a segment, so that no driver merges it: the source is followed.

        Args:
            index: the segment.
            verified: the present mark; if it is another one by now, nothing is done.
        """
        name, mark = self.staged.name(index, 0), identity.verified_attribute(self.plan.copy_id)
        self.target.create(name)
        self.target.set_attribute(name, CompareAndSet(mark, verified, identity.ABORTED))

    def _end(self) -> None:
        """Record what is compared, delete what is left, and then record that all is over."""
        journal = self._decided()
        known = self.journal.load()
        if known is not None:
            self._record_proofs(journal, known)
        clear_catch_up(journal, self.target)
        self._log.write([caught_up_record(self.catch_up.number)])

    def _record_proofs(self, journal: Journal, known: Journal) -> None:
        """Record that the merged bytes are those of the source: they were compared when staged."""
        records = []
        for index in sorted(self._merged()):
            segment, row = self.plan.segments[index], row_of(journal, self.catch_up.rows[index])
            before = proved(journal, row.index).offset
            if before != segment.start:
                continue  # another driver has compared more; or less, which is read back later
            digests, border = known.known(index), catching_up.border(segment)
            link = self._prover.extend(journal, row, border, digests.get(chunk_of(segment.start)))
            if border < segment.end and link is not None:
                link = catching_up.extended(link, segment.end, digests)
            if link is not None and link.offset > before:
                records.append(self._prover.record(row.index, link))
        if records:
            self._log.write(records)

    def _merged(self) -> set[int]:
        """Return the segments that this catch-up has merged."""
        attribute = identity.publish_attribute(self.plan.copy_id)
        goals = [self.target.segment_name(self.plan.target, one) for one in self._targets]
        values = self.target.attributes([(goal, attribute) for goal in goals])
        return {index for index, value in enumerate(values) if value is not None}

    def _decided(self) -> Journal:
        """Return the copy's journal. Raises NoSuchSegment if it is gone."""
        if self._log.loaded is None:
            raise NoSuchSegment("the copy's journal is gone", segment=self._log.name)
        return self._log.loaded
