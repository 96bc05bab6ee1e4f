"""What the stores say about a copy, a run of an archive, or a scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.recorded import Recorded

if TYPE_CHECKING:
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.positions import PositionMap
    from sluice.core.workloads.plan import Plan, ScopeCopyPlan

UNVERIFIED: Final = "unverified"
"""The digest of a copy that nobody compared, or whose driver lost what it had hashed."""


class CopyGap(NamedTuple):
    """Bytes [begin, end) of a source's segment that were to be copied and are not in the target.

    `source` is the stream's place among the sources. Without an end nobody knows how many there
    were, perhaps none.
    """

    source: int
    segment: int
    begin: int
    end: int | None

    @property
    def length(self) -> int:
        """Bytes in it, as far as that is known."""
        return 0 if self.end is None else self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The target is whole.

    Attributes:
        digest: SHA-256 over the segments' digests; `unverified` without verification.
        bytes, events, segments: what the target holds of the copy; None where nobody knows.
        positions: which position of the source is which one of the target; None where the target
            has none of the copied segments any more.
        gaps: what the sources had lost before it was read.
    """

    digest: str
    bytes: int | None = None
    events: int | None = None
    segments: int | None = None
    positions: PositionMap | None = None
    gaps: tuple[CopyGap, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether the digest is known of what was compared."""
        return self.digest != UNVERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The target is not whole: this is what there is to do.

    Attributes:
        plan: what is to be copied.
        recorded: whether a driver has begun to.
    """

    plan: Plan
    recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePlanned(Planned):
    """Streams of a scope are left to copy, or to archive."""

    plan: ScopeCopyPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeEnded:
    """Nothing is left to do of a scope's copy: each stream is whole, has failed, or was stopped.

    Attributes:
        plan: what was to be copied in the last run.
        results: of every stream, in the plan's order, those that are in no plan at the end.
        kept: why the source's scope is there still after a move; None where it is gone, or stays.
    """

    plan: ScopeCopyPlan
    results: tuple[StreamResult, ...]
    kept: str | None = None


Answer = Complete | Planned | ScopeEnded | Recorded
"""What the stores say about a copy."""
