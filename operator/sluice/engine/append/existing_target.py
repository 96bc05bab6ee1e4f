"""A target that exists and has other writers: a copy appends to it by transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy import next_append_step
from sluice.core.copy.steps import DeleteJournal, WriteReceipt
from sluice.core.workloads.answers import UNVERIFIED
from sluice.engine.append import appends, placement

if TYPE_CHECKING:
    from sluice.core.copy.observed import Observed
    from sluice.core.copy.steps import Step
    from sluice.engine.staging.ending import StagedStream


class ExistingTarget:
    """See Ending.

    Args:
        stream: the stream.
    """

    def __init__(self, stream: StagedStream) -> None:
        self._stream = stream

    def salt(self, index: int) -> str:  # noqa: ARG002 - the whole append is staged anew
        """See Ending."""
        return placement.salt(self._stream.plan, self._stream.ledger)

    def observe(self) -> Observed:
        """See Ending."""
        stream = self._stream
        return appends.observe(stream.plan, stream.ledger, stream.sources, stream.target)

    def decide(self, seen: Observed) -> Step:
        """See Ending."""
        return next_append_step.next_step(self._stream.plan, seen)

    def let_go(self) -> None:
        """See Ending: the target gets its key ranges and its policy back."""
        if self._stream.ledger.load() is not None:
            appends.let_go(self._stream.plan, self._stream.ledger, self._stream.target)

    def perform(self, step: Step) -> None:
        """See Ending."""
        stream = self._stream
        if isinstance(step, DeleteJournal) and stream.staged.journal.target is not None:
            stream.remember()
        appends.perform(
            stream.plan,
            stream.ledger,
            stream.target,
            step,
            digest=stream.digest() if isinstance(step, WriteReceipt) else UNVERIFIED,
            events=stream.counted,
        )
