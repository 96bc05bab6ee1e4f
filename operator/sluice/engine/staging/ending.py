"""Endings: how staged bytes become readable, in a new target or in an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.staging.staged import Staged
    from sluice.stores.base import Source, Store


class StagedStream(Protocol):
    """The stream whose bytes an ending makes readable.

    Attributes:
        plan: the copy's plan. An ending replaces it with the plan that the journal has amended.
        journal: its journal.
        sources: the stores to read from, as the plan numbers them.
    """

    plan: StreamPlan
    journal: CopyJournal
    sources: Sequence[Source]

    @property
    def target(self) -> Store:
        """The store to write to."""
        ...

    @property
    def staged(self) -> Staged:
        """The staging segments of its copy."""
        ...

    def digest(self) -> str:
        """Give the digest of all its bytes, or UNVERIFIED."""
        ...

    def counted(self, index: int) -> int:
        """Give the number of events of a verified segment."""
        ...

    def remember(self) -> None:
        """Make the segments' reports now: the journal is about to be deleted."""
        ...


class Ending(Protocol):
    """The way in which the bytes of a stream become readable.

    Staging, stitching and verifying are the same for all endings. The other steps differ.
    """

    def salt(self, index: int) -> str:
        """Give the salt of staging names, which differs between attempts at a segment."""
        ...

    def observe(self) -> Observed:
        """Look at the stores."""
        ...

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. Raises as `next_step` does."""
        ...

    def perform(self, step: Step) -> bool:
        """Carry out a step that moves no bytes.

        Returns:
            Whether the effect is known: for `core.copy.effects`, which decides what follows from
            it. False if another driver may have done a part of the step.
        """
        ...

    def let_go(self) -> None:
        """Leave the target as it has to be while no driver works on the copy."""
        ...
