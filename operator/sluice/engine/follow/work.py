"""Copy one stream and follow it: the planned bytes as any copy, and then what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.core.copy.steps import CatchUp
from sluice.core.events.digest import combine
from sluice.core.follow.rows import proved, row_of
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.copy.report import SegmentReport, StreamReport
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.follow.catch_up import CatchUpWork
from sluice.engine.follow.followed_target import FollowedTarget
from sluice.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step, Transfer, Verify
    from sluice.core.events.chain import Link
    from sluice.core.follow.standing import Standing
    from sluice.engine.access.source_runs import Origin
    from sluice.engine.staging.ending import Ending
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Store


class FollowWork(StreamCopyWork):
    """The copy of one stream that goes on with what comes in the source, until it is to end.

    It ends when the source is sealed and followed to its end, or as its journal's last wish says.

    Args:
        plan: what to copy. If another plan is recorded, that one takes its place.
        sources: the stores to read from.
        target: the store to write to.
        number: the stream's place in the whole plan.
        how: the further arguments of `FollowedTarget`.
    """

    def __init__(
        self,
        plan: StreamPlan,
        sources: Sequence[Origin],
        target: Store,
        *,
        number: int = 0,
        **how: Any,
    ) -> None:
        super().__init__(plan, number, sources, target)
        self._ended: str | None = None
        self._followed = FollowedTarget(self, **how)
        self._origins = sources
        self._catch_up: CatchUpWork | None = None
        self._part: CatchUpWork | None = None

    @property
    def _ending(self) -> Ending:
        return self._followed if self.plan.follow else super()._ending

    @property
    def standing(self) -> Standing | None:
        """How far the stream was followed at the last look; None while it was not."""
        return self._followed.standing

    @property
    def quiet(self) -> float:
        """The seconds for which this driver has seen nothing come in the source."""
        return self._followed.quiet

    @property
    def moving(self) -> int:
        """The bytes of the plan, or of the catch-up, that is carried out now."""
        return (self._part or self).plan.bytes

    def look(self) -> Step:
        """Look at the stores, and decide the next step: of the copy, or of its catch-up."""
        self._part = None
        step = super().look()
        if not isinstance(step, CatchUp):
            return step
        part, followed = self._begun_catch_up(), self._followed
        inner = part.next(stages=followed.far is not None, room=followed.room)
        if inner is None:
            return self._followed.directly()
        self._part = part
        return inner

    def _begun_catch_up(self) -> CatchUpWork:
        """Return the work of the catch-up that is begun."""
        begun = self._journal().trail.catch_up
        if begun is None:
            raise StoreUnavailable("no catch-up is begun")
        if self._catch_up is None or self._catch_up.catch_up != begun:
            self._catch_up = CatchUpWork(
                begun,
                self.journal,
                self._origins,
                self.target,
                number=self.number,
                prover=self._followed.prover,
            )
        return self._catch_up

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes, or a step of following."""
        if self._part is not None:
            self._part.perform(step)
        else:
            super().perform(step)

    def slices(self, step: Transfer | Verify, limits: Limits, slots: int) -> list[Slice]:
        """Return the next slices of a step that moves bytes."""
        if self._part is not None:
            return self._part.slices(step, limits, slots)
        return super().slices(step, limits, slots)

    def absorb(self, step: Transfer | Verify, results: Sequence[SliceResult]) -> None:
        """Record digests and counts of slices."""
        if self._part is not None:
            self._part.absorb(step, results)
        else:
            super().absorb(step, results)

    def _links(self) -> list[Link]:
        """Return the digests of all segments, up to where they are compared."""
        known = self._journal()
        return [proved(known, index) for index in range(len(known.current.segments))]

    def digest(self) -> str:
        """Return the copy's digest: over its segments' digests, once all is followed and compared.

        A driver that has not seen the end does not know it, and says UNVERIFIED.
        """
        if not self.plan.follow:
            return super().digest()
        if self._journal().trail.stopped is None:
            return UNVERIFIED
        return combine(link.digest for link in self._links()).hex()

    def remember(self) -> None:
        """Make the segments' reports now, and note why the copy ends."""
        super().remember()
        self._ended = self._journal().trail.stopped

    def finished(self, digest: str) -> StreamReport:
        """Return the report of a complete copy, with the reason of its end."""
        return super().finished(digest).model_copy(update={"ended": self._ended})

    def _report_segments(self) -> tuple[SegmentReport, ...]:
        if not self.plan.follow:
            return super()._report_segments()
        plan, trail = self._journal().current, self._journal().trail
        names = [self.target.segment_name(plan.target, segment) for segment in self._bound()]
        counts = self.target.attributes([(name, self.target.event_count) for name in names])
        return tuple(
            SegmentReport(
                source=segment.id,
                target=target,
                start=segment.start,
                end=link.offset,
                events=count,
                digest=link.digest.hex(),
                lost=segment.lost
                + sum(loss.end - loss.start for loss in trail.lost.get(index, ())),
                plain=row_of(self._journal(), index).plain,
            )
            for index, (segment, target, link, count) in enumerate(
                zip(plan.segments, self._bound(), self._links(), counts, strict=True)
            )
        )
