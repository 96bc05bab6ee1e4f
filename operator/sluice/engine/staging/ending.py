"""How staged bytes become readable: what a new target and one that is there have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.observed import Observed
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.steps import Step
    from sluice.engine.journal.ledger import Ledger
    from sluice.engine.staging.staged import Staged
    from sluice.stores.base import Source, Store


class StagedStream(Protocol):
    """The stream that is to become readable.

    Attributes:
        plan: what is copied; an ending may put the amended plan in its place.
        ledger: its journal.
        sources: the stores to read from, as the plan numbers them.
    """

    plan: StreamPlan
    ledger: Ledger
    sources: Sequence[Source]

    @property
    def target(self) -> Store:
        """The store to write to."""
        ...

    @property
    def staged(self) -> Staged:
        """Its staging segments."""
        ...

    def digest(self) -> str:
        """Give the digest of all its bytes, or UNVERIFIED."""
        ...

    def counted(self, index: int) -> int:
        """Give the number of events of a segment that is verified."""
        ...

    def remember(self) -> None:
        """Keep what the report says of segments: the journal is about to be deleted."""
        ...


class Ending(Protocol):
    """How the bytes of a stream become readable.

    Staging, verifying and stitching are the same for all; the rest of the steps are its own.
    """

    def salt(self, index: int) -> str:
        """Give what tells staging of this attempt at a segment from that of another one."""
        ...

    def observe(self) -> Observed:
        """Look at the stores."""
        ...

    def decide(self, seen: Observed) -> Step:
        """Decide the next step. Raises as `next_step` does."""
        ...

    def perform(self, step: Step) -> None:
        """Carry out a step that moves no bytes."""
        ...

    def let_go(self) -> None:
        """Leave the target as it is to be while nobody goes on with the copy."""
        ...
