"""The workload of a StreamCopy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.core.copy.plan import pinned
from sluice.core.workloads.answers import Planned
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.core.workloads.unplanned import Unplanned, UnplannedCopy
from sluice.engine.access.source_runs import live
from sluice.engine.archive.erase import Erased
from sluice.engine.copy.abort import abort, abort_unread
from sluice.engine.copy.planning import begun, resolve
from sluice.engine.copy.progress import ProgressWatch
from sluice.engine.copy.query import How, abandon, ask, end
from sluice.engine.copy.report import Outcome, StreamReport
from sluice.engine.follow.lag import FollowWatch
from sluice.engine.follow.state import followed
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.slices.read_leases import release
from sluice.engine.workloads.workload import (
    Found,
    Unseen,
    in_volumes,
    is_volume,
    located_live,
)
from sluice.errors import JournalDamaged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.core.archive.recorded import Recorded
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.scope.progress import Progress
    from sluice.core.workloads.answers import Answer
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.workloads.workload import Located, Measures
    from sluice.stores.base import Store


@dataclass(frozen=True, slots=True)
class StreamWorkload:
    """The workload of a StreamCopy."""

    request: CopyRequest

    @property
    def moves(self) -> bool:
        """Whether the source is deleted at the end."""
        return self.request.move

    def ask(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        known: Plan | None,
        again: bool,  # noqa: ARG002 - a stream is whole or is not
        told: Recorded | None = None,  # noqa: ARG002 - the target's store says more
    ) -> Answer:
        """Ask the stores about the copy. Nothing is changed.

        If a source is in a volume and the copy is not begun, the driver has to plan it.
        """
        if in_volumes(sources) and begun(self.request, live(target[1])).is_new:
            addresses = tuple(address for address, _ in sources)
            plan = UnplannedCopy(sources=addresses, target=target[0], copying=self.request)
            return Planned(plan=plan)
        stream = known.streams[0] if known is not None and known.streams else None
        goal = located_live(target)
        answer = ask(self.request, sources=sources, target=goal, known=stream)
        return followed(self.request, answer, goal[1]) if self.request.follow else answer

    def plan(
        self,
        sources: Sequence[Located],
        target: Located,
        *,
        run: int | None = None,  # noqa: ARG002 - a stream's copy has one
    ) -> Found[StreamCopyPlan, StreamReport]:
        """Plan the copy."""
        request = self.request
        found = resolve(request, [place for _, place in sources], live(target[1]))
        if found.plan is None:
            report = StreamReport(
                copy_id=request.copy_id,
                source=request.origin,
                target=request.target,
                outcome=Outcome.ALREADY_COMPLETE,
                digest=found.digest,
            )
            return Found(report=report)
        addresses = pinned(found.plan, [address for address, _ in sources])
        plan = StreamCopyPlan(sources=addresses, target=target[0], streams=(found.plan,))
        return Found(plan, recorded=found.recorded)

    def tell(self, target: Place) -> Recorded | None:  # noqa: ARG002 - the operator sees all
        """Return None: the operator can see the result itself."""
        return None

    def watch(self, plan: Plan, target: Place, sources: Sequence[Place] = ()) -> Measures:
        """Return what measures the progress of a plan."""
        if isinstance(plan, Unplanned):
            return UnplannedWatch(self.request, plan, live(target))
        (stream,) = plan.streams
        if stream.follow and sources:
            return FollowWatch(stream, live(sources[stream.sources[0].store]), live(target))
        return ProgressWatch(plan, live(target))

    def abort(self, sources: Callable[[], Sequence[Place]], target: Place) -> str:
        """Delete staging, the unpublished target and the journal. Return in words what was done.

        A target that follows its source stays as far as it has come, without the copy's marks.

        Raises:
            AbortRefused: publishing has begun.
            JournalDamaged: the copy appends, and its journal cannot be read.
        """
        request, store = self.request, live(target)
        if request.follow:
            how = end(request, sources=None, target=store).how
            words = {
                How.NOTHING: "nothing to abort",
                How.DROPPED: "aborted",
                How.LEFT: f"ended; {request.target} stays as far as it has come, as a stream like "
                "any other",
            }
            return words.get(how, how.value)
        try:
            journal = CopyJournal(store, request.copy_id, request.target, request).load()
        except JournalDamaged:
            if request.append:
                raise
            dropped = abort_unread(request.copy_id, request.target, store)
            return "aborted; the journal could not be read" if dropped else "nothing to abort"
        if not abort(request.copy_id, request.target, store):
            return "nothing to abort"
        if journal is not None and any(one.archive for one in journal.plan.sources):
            release(journal.plan, sources())
        return "aborted"

    def abandon(
        self,
        sources: Sequence[Place] | None,
        target: Place,
        *,
        known: Plan | None,  # noqa: ARG002 - a stream's journal has it
    ) -> str:
        """End the copy, so that nothing unpublished stays, and return in words what was done."""
        seen = None if any(map(is_volume, sources or ())) else sources
        return abandon(self.request, sources=seen, target=live(target))

    def erase(self, target: Place) -> Erased:  # noqa: ARG002 - nothing is deleted
        """Delete nothing: a copy's target does not belong to the resource."""
        return Erased()


class UnplannedWatch:
    """The progress of a copy that its driver plans. It is zero until the plan is recorded.

    Args:
        request: the copy.
        plan: what the operator has written in place of a plan.
        target: the store to write to.
    """

    def __init__(self, request: CopyRequest, plan: Plan, target: Store) -> None:
        self._request = request
        self._plan = plan
        self._target = target
        self._watch: Measures = Unseen()

    def measure(self) -> Progress:
        """Measure the progress now."""
        if isinstance(self._watch, Unseen):
            found = begun(self._request, self._target).plan
            if found is not None:
                plan = StreamCopyPlan(
                    sources=self._plan.sources, target=self._plan.target, streams=(found,)
                )
                self._watch = ProgressWatch(plan, self._target)
        return self._watch.measure()
