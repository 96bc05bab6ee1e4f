"""The ending of a copy to a new target: publish segment by segment, configure it at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from sluice.core.copy.next_step import next_step
from sluice.core.copy.steps import (
    Amend,
    Bind,
    ConfigureTarget,
    CopyStep,
    DeleteJournal,
    DeleteSource,
    DrainSource,
    FixSegmentCount,
    MakeTarget,
    Publish,
    Scale,
    Seal,
    Shape,
    Stage,
    Stitch,
    Sweep,
)
from sluice.core.values import identity
from sluice.engine.access.source_runs import writable
from sluice.engine.copy import moving, targets
from sluice.engine.copy.abort import clear_attempts
from sluice.engine.copy.segment_mapping import bind
from sluice.engine.staging.observe import observe

if TYPE_CHECKING:
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.staging.ending import StagedStream
    from sluice.stores.base import Store


class NewTarget:
    """The `Ending` of a stream whose target the copy makes.

    Args:
        stream: the stream.
        keep: whether to keep the source of a move.
        alone: whether no other stream is copied meanwhile, so that each wait counts.
    """

    def __init__(self, stream: StagedStream, *, keep: bool, alone: bool) -> None:
        self._stream = stream
        self._keep = keep
        self._alone = alone
        self._made = False

    def salt(self, index: int) -> str:
        """Return the salt of staging names for the current attempt at a segment."""
        return identity.attempt_salt(self._stream.plan.segments[index].attempt)

    def observe(self) -> Observed:
        """Look at the stores."""
        stream = self._stream
        return observe(stream.plan, stream.journal, stream.sources, stream.target)

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. The stream's plan becomes the one that the journal has amended."""
        plan = self._stream.plan = seen.plan or self._stream.plan
        if plan.move and not self._keep:
            seen = replace(seen, left=moving.is_left(plan, seen.target, self._source))
        return next_step(plan, seen)

    def let_go(self) -> None:
        """Do nothing: a target that this copy made has nothing to give back."""

    def perform(self, step: Step) -> bool:  # noqa: C901, PLR0912 - one case for each step
        """Carry out a step that moves no bytes. Return whether its effect is known."""
        if not isinstance(step, CopyStep) or isinstance(step, Stitch):
            raise TypeError(f"{step} moves bytes or is no step to perform")
        stream = self._stream
        plan, copy_journal, staged, target = (
            stream.plan,
            stream.journal,
            stream.staged,
            stream.target,
        )
        match step:
            case MakeTarget():
                self._made = targets.claim(plan, target)
            case Shape(segments):
                targets.shape(plan, segments, target)
            case Bind(segments):
                return bind(plan, segments, copy_journal, target, made=self._made)
            case Stage(parts):
                made = [target.create(staged.name(index, part.number)) for index, part in parts]
                return all(made)
            case Amend(starts):
                for index, to in starts:
                    staged.amend(index, to)
            case DrainSource():
                moving.drain(plan, staged.bound, copy_journal, self._source, target)
            case DeleteSource():
                moving.leave(plan, staged.bound, self._source, target)
            case Publish(segments):
                # Stop at a segment that another process was faster to mark: if that was an abort,
                # it has won the whole target, and no later segment may be published.
                return all(self._publish(index) for index in segments)
            case Scale(generation):
                targets.scale(plan, staged.bound, generation, target)
                targets.mend(plan, copy_journal, stream.digest(), target)
            case FixSegmentCount():
                self._settle()
            case ConfigureTarget():
                final = self._configured(plan)
                targets.configure(final, stream.digest(), target, hurry=self._alone)
                return True
            case Seal():
                target.seal_stream(plan.target)
            case Sweep(left):
                for index, number in left:
                    target.delete(staged.name(index, number))
            case DeleteJournal():
                if staged.journal.target is not None:  # else a late driver began it for nothing
                    stream.remember()
                    clear_attempts(plan, staged.bound, target)
                copy_journal.delete()
                return True
            case _:
                assert_never(step)
        return False

    def _settle(self) -> None:
        """Fix the target's number of segments."""
        stream = self._stream
        targets.settle(stream.plan, stream.target)
        targets.mend(stream.plan, stream.journal, stream.digest(), stream.target)

    def _configured(self, plan: StreamPlan) -> StreamPlan:
        """Return the plan with the final configuration of the target."""
        return plan

    @property
    def _source(self) -> Store:
        """The store of a move's only source."""
        return writable(self._stream.sources[self._stream.plan.sources[0].store])

    def _publish(self, index: int) -> bool:
        counted = self._stream.plan.segments[index].length > 0
        return self._stream.staged.publish(index, self._stream.counted(index) if counted else 0)
