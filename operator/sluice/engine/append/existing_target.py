"""The ending of a copy that appends, by transactions, to an existing target with other writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import next_append_step
from sluice.core.copy.steps import DeleteJournal, WriteReceipt
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.append import appends, observing, placement

if TYPE_CHECKING:
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.steps import Step
    from sluice.engine.staging.ending import StagedStream


class ExistingTarget:
    """The `Ending` of a stream that is appended to an existing target.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: StagedStream) -> None:
        self._stream = stream

    def salt(self, index: int) -> str:  # noqa: ARG002 - the whole append is staged anew
        """Return the salt of staging names for the current attempt at the whole append."""
        return placement.salt(self._stream.plan, self._stream.journal)

    def observe(self) -> Observed:
        """Look at the stores."""
        stream = self._stream
        return observing.observe(stream.plan, stream.journal, stream.sources, stream.target)

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. Raises what `next_append_step.next_step` raises."""
        return next_append_step.next_step(self._stream.plan, seen)

    def let_go(self) -> None:
        """Restore the target's key ranges and policy while no driver works on the copy."""
        if self._stream.journal.load() is not None:
            appends.let_go(self._stream.plan, self._stream.journal, self._stream.target)

    def perform(self, step: Step) -> bool:
        """Carry out a step that moves no bytes. Return whether its effect is known."""
        stream = self._stream
        if isinstance(step, DeleteJournal) and stream.staged.journal.target is not None:
            stream.remember()
        return appends.perform(
            stream.plan,
            stream.journal,
            stream.target,
            step,
            digest=stream.digest() if isinstance(step, WriteReceipt) else UNVERIFIED,
            events=stream.counted,
        )
