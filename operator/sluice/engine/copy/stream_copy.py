"""Copy one stream: carry out the steps that `core.copy.next_step` decides.

Steps that move bytes become slices for tasks. All other steps are short calls, made here.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sluice.core.copy import effects, journal
from sluice.core.copy.observed import Observed
from sluice.core.copy.steps import (
    ConfigureTarget,
    Stitch,
    Transfer,
    Verify,
    WriteReceipt,
)
from sluice.core.events.digest import chunks, combine
from sluice.core.pace.slicing import slice_end
from sluice.core.values import identity
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.access.source_runs import run_stores
from sluice.engine.append.existing_target import ExistingTarget
from sluice.engine.copy.abort import abort
from sluice.engine.copy.new_target import NewTarget
from sluice.engine.copy.report import Outcome, SegmentReport, StreamReport
from sluice.engine.copy.resume import resume
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.slices.read_leases import Readings
from sluice.engine.slices.slices import CopySlice, VerifySlice
from sluice.engine.slices.verify_progress import Checking
from sluice.engine.staging.observe import observe_known
from sluice.engine.staging.staged import Staged
from sluice.errors import SluiceError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.copy.plan import Part, StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.access.source_runs import Origin
    from sluice.engine.staging.ending import Ending
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Source, Store


class StreamCopyWork:
    """The copy of one stream of a plan.

    Args:
        plan: what to copy. If another plan is recorded, that one takes its place.
        number: the stream's place in the whole plan.
        sources: the stores to read from. In a store of archives, the plan's run is read.
        target: the store to write to.
        keep: whether to keep the source of a move.
        alone: whether no other stream is copied meanwhile.
    """

    def __init__(
        self,
        plan: StreamPlan,
        number: int,
        sources: Sequence[Origin],
        target: Store,
        *,
        keep: bool = False,
        alone: bool = True,
    ) -> None:
        self.number = number
        self.journal = CopyJournal(target, plan.copy_id, plan.target, plan)
        self._places = sources
        self.target = target
        # Both endings are made: another driver's plan may be recorded, and it says which to use.
        self._new = NewTarget(self, keep=keep, alone=alone)
        self._existing = ExistingTarget(self)
        self._checked: defaultdict[tuple[str, str], Checking] = defaultdict(Checking)
        self._reading(plan)
        self._segments: tuple[SegmentReport, ...] | None = None
        self._seen: Observed | None = None
        self._known: tuple[Step | None, Observed | None] = None, None

    @property
    def moving(self) -> int:
        """The bytes of the plan that is carried out now."""
        return self.plan.bytes

    @property
    def _ending(self) -> Ending:
        return self._existing if self.plan.append else self._new

    def begin(self, *, permit: Callable[[], None] | None) -> StreamReport | None:
        """Resume the copy, or begin it and record its plan, unless another plan is recorded.

        Args:
            permit: called before the plan is recorded; raises if the copy must not begin.

        Returns:
            The report, if the copy is complete and nothing is left to do; else None.
        """
        resumed = resume(self.plan, self.journal, self.target)
        if resumed.digest is not None:
            return self.finished(resumed.digest) if resumed.settled else None
        if permit is not None:
            permit()
        new = self.journal.loaded is None
        self._reading(self.journal.begin(self.plan))  # another driver may have chosen another run
        begun = self.journal.loaded
        if new and resumed.targetless and begun is not None and begun.target is None:
            self._known = None, Observed(begun, None)
        return None

    def _reading(self, plan: StreamPlan) -> None:
        """Set the plan, and open the sources that it names."""
        self.plan = plan
        self.sources: Sequence[Source] = run_stores(plan, self._places)
        self._readings = Readings(plan.copy_id, self.sources)

    def look(self) -> Step:
        """Look at the stores as far as this driver does not know them, and decide the next step.

        Raises what `next_step` and `Readings.renew` raise.
        """
        return self._known_step() or self._decide(self._ending.observe())

    def _known_step(self) -> Step | None:
        """Return the next step, if it follows from this driver's last step; else None."""
        (before, known), self._known = self._known, (None, None)
        if known is not None and not effects.is_self_evident(before):
            known = observe_known(known, self.plan, self.journal, self.sources)
        if known is None:
            return None
        try:
            step = self._decide(known)
        except SluiceError:
            return None  # look at everything: another driver may have staged what the source lost
        return step if effects.follows(before, step) else None

    def _decide(self, seen: Observed) -> Step:
        if seen.sources is not None:
            self._readings.renew()
        self._seen = seen
        return self._ending.decide(seen)

    def _did(self, step: Step) -> None:
        """Note that this driver did a step and knows the effect."""
        noted = isinstance(step, ConfigureTarget | WriteReceipt)
        digest = self.digest() if noted else UNVERIFIED
        if self._seen is not None:
            known = effects.after(step, self._seen, self.plan, self.journal.loaded, digest)
            self._known = step, known

    def give_up(self) -> None:
        """Delete staging, the target if this copy made it, and the journal."""
        abort(self.plan.copy_id, self.plan.target, self.target)
        self._readings.give_back()

    def failed(self, error: SluiceError, *, cleaned: bool) -> StreamReport:
        """Return the report of a copy that failed for good."""
        return StreamReport.failed(self.plan, error, cleaned=cleaned)

    def let_go(self) -> None:
        """Leave the target as it has to be while no driver works on the copy."""
        self._ending.let_go()

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        if isinstance(step, Stitch):
            self.staged.stitch(step.parts)
            self._did(step)
        elif self._ending.perform(step):
            self._did(step)

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """Return the next slices of a step that moves bytes."""
        if isinstance(step, Transfer):
            return [self._copy_slice(*part, limits, slots) for part in step.parts]
        most = limits.verify_bytes or limits.slice_bytes
        return [
            piece
            for index in step.segments
            if (whole := self._verify_slice(index, limits.window(slots))) is not None
            for piece in self._checked[self._evidence(index)].left(whole, most)
        ]

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Record digests and counts of slices, and mark segments that are verified by now."""
        self._readings.compare(results)
        records = [
            record
            for result in results
            for record in journal.digest_records(
                result.slice.segment, result.digests, self._edition(result.slice.segment)
            )
        ]
        ready: list[int] = []
        for result in results:
            self._checked[self._evidence(result.slice.segment)].take(result)
        if isinstance(step, Verify):
            ready = [index for index in step.segments if self._is_checked(index)]
            counted = ((index, self._checked[self._evidence(index)].events) for index in ready)
            records += [
                journal.events_record(index, events, self._edition(index))
                for index, events in counted
                if events is not None and index not in self._journal().events
            ]
        if records:
            self.journal.write(records)
        for index in ready:
            self.staged.mark_verified(index)
            del self._checked[self._evidence(index)]
        if isinstance(step, Transfer) and self._is_read_back(step):
            self._did(step)

    def _is_read_back(self, step: Transfer) -> bool:
        """Tell whether all bytes of a step were read back: then all of its parts are staged."""
        return self.plan.verify and all(self._is_checked(index) for index, *_ in step.parts)

    def _is_checked(self, index: int) -> bool:
        """Tell whether a segment is verified completely."""
        whole = self._verify_slice(index)
        return whole is None or self._checked[self._evidence(index)].is_done(whole)

    def segment_digest(self, index: int) -> bytes | None:
        """Return a segment's digest; None if a chunk's digest is not known."""
        known = self._journal().known(index)
        segment = self.plan.segments[index]
        wanted = chunks(segment.start, segment.end)
        if any(chunk not in known for chunk in wanted):
            return None
        return combine(known[chunk] for chunk in wanted)

    def segment_events(self, index: int) -> int | None:
        """Return a segment's number of events: counted, or as its source's store says, or None.

        A store's number is too low where events came by transactions.
        """
        return self._journal().events.get(index, self.plan.segments[index].events)

    def digest(self) -> str:
        """Return the copy's digest, over its segments' digests in order, or UNVERIFIED."""
        digests = [self.segment_digest(index) for index in range(len(self.plan.segments))]
        known = [digest for digest in digests if digest is not None]
        return combine(known).hex() if len(known) == len(digests) else UNVERIFIED

    def finished(self, digest: str) -> StreamReport:
        """Return the report of a complete copy.

        It has no segments if the copy was complete already when this driver came.
        """
        self._readings.give_back()
        return StreamReport(
            copy_id=self.plan.copy_id,
            source=self.plan.origin,
            target=self.plan.target,
            outcome=Outcome.ALREADY_COMPLETE if self._segments is None else Outcome.COPIED,
            digest=digest,
            segments=self._segments or (),
        )

    def remember(self) -> None:
        """Make the segments' reports now: the journal is about to be deleted."""
        self._segments = self._report_segments()

    def _report_segments(self) -> tuple[SegmentReport, ...]:
        reports = []
        for index, segment in enumerate(self.plan.segments):
            digest = self.segment_digest(index)
            reports.append(
                SegmentReport(
                    source=segment.id,
                    target=self._bound()[index],
                    start=segment.start,
                    end=segment.end,
                    events=self.segment_events(index),
                    digest=UNVERIFIED if digest is None else digest.hex(),
                    lost=segment.lost,
                    torn=segment.torn,
                )
            )
        return tuple(reports)

    def _edition(self, index: int) -> int:
        return self.plan.segments[index].edition

    def _evidence(self, index: int) -> tuple[str, str]:
        """Return the key of a segment's evidence: the names of the journal and of its staging.

        Another attempt at the segment has another staging, and another run of the copy has another
        journal. Evidence counts for neither.
        """
        return self.journal.name, self.staged.name(index, 0)

    def _copy_slice(self, index: int, part: Part, at: int, limits: Limits, slots: int) -> CopySlice:
        plan = self.plan
        key = self.staged.key(index, part.number)
        return CopySlice(
            **self._reads(index),
            stream=self.number,
            segment=index,
            staging=self.staged.name(index, part.number),
            writer=identity.writer_id(plan.copy_id, key),
            origin=part.start,
            at=at,
            end=slice_end(at, part.end, limits.slice_bytes),
            limit=part.end,
            whole=(plan.segments[index].start, plan.segments[index].end),
            window=limits.window(slots),
            # At a limited rate the bytes are verified by slices of their own, which are shorter:
            # a task that copies and verifies would follow a new limit later.
            verify=plan.verify and limits.bytes_per_second is None,
            count=index not in self._journal().events,
        )

    def _verify_slice(self, index: int, window: int | None = None) -> VerifySlice | None:
        """Return the verification of a whole segment; None if neither digests nor events need it.

        A known count of events from the store is kept, unless the copy is verified.
        """
        plan = self.plan
        segment = plan.segments[index]
        known = segment.events is not None
        count = index not in self._journal().events and (plan.verify or not known)
        if not (plan.verify or count):
            return None
        return VerifySlice(
            **self._reads(index),
            stream=self.number,
            segment=index,
            staging=self.staged.name(index, 0),
            origin=segment.start,
            start=segment.start,
            end=segment.end,
            limit=segment.end,
            known=self._journal().known(index),
            compare=plan.verify,
            count=count,
            first=segment.start,
            strict=segment.range is not None or segment.lost > 0 or not known,
            range=segment.range,
            truncated=segment.lost > 0,
            window=window,
        )

    def _reads(self, index: int) -> dict[str, Any]:
        """Return the fields of a slice that name its source: store, run and full segment name."""
        segment = self.plan.segments[index]
        source = self.plan.source_of(segment)
        name = self.sources[source.store].segment_name(source.stream, segment.id)
        return {"store": source.store, "archive": source.archive, "source": name}

    def counted(self, index: int) -> int:
        """Return the number of events of a verified segment.

        Raises:
            StoreUnavailable: the number is not known.
        """
        if self.plan.verify and index not in self._journal().events:
            # Another driver may have recorded the count, and then set the mark, since this driver
            # read the journal. Read it again before the store's number is used.
            self.journal.load()
        events = self.segment_events(index)
        if events is None:
            raise StoreUnavailable(f"the events of segment {index} were not counted")
        return events

    def _journal(self) -> journal.Journal:
        return self.staged.journal

    def _bound(self) -> tuple[int, ...]:
        return self.staged.bound

    @property
    def staged(self) -> Staged:
        """The staging segments of this copy."""
        return Staged(self.plan, self.journal, self.target, self._ending.salt)
