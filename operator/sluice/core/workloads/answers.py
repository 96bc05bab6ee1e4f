"""The stores' answers about a copy, a run of an archive, or a scope, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice.core.archive.recorded import Recorded

if TYPE_CHECKING:
    from sluice.core.scope.scope import StreamResult
    from sluice.core.values.positions import PositionMap
    from sluice.core.workloads.plan import Plan, ScopeCopyPlan

UNVERIFIED: Final = "unverified"
"""The digest of a copy that was not compared, or whose driver lost the hashes."""


class CopyGap(NamedTuple):
    """Bytes [begin, end) of a source's segment that were to be copied and are not in the target.

    `source` is the stream's place among the sources. If `end` is None, the number of bytes is
    unknown, and may be 0.
    """

    source: int
    segment: int
    begin: int
    end: int | None

    @property
    def length(self) -> int:
        """Bytes in the gap; 0 if unknown."""
        return 0 if self.end is None else self.end - self.begin


MOST_CUT: Final = 4096
"""Characters of the longest text of a cut in an answer: a cut of several hundred segments."""


class EndCut(NamedTuple):
    """Where a copy that followed its source has ended, as texts of StreamCuts.

    None stands for one that is not known any more, or longer than `MOST_CUT`.
    """

    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Answer: the target is complete.

    Attributes:
        digest: SHA-256 over the segments' digests; `unverified` without verification.
        bytes, events, segments: what the target holds of the copy; None if unknown.
        positions: the map from positions in the source to positions in the target; None if the
            target has none of the copied segments any more.
        gaps: bytes that the sources had lost before they were read.
        appended: whether the target is another program's stream, which was appended to.
        held: bytes that such a stream held at this look; None if unknown.
        cut: where a copy has ended that followed its source; None of others.
    """

    digest: str
    bytes: int | None = None
    events: int | None = None
    segments: int | None = None
    positions: PositionMap | None = None
    gaps: tuple[CopyGap, ...] = ()
    appended: bool = False
    held: int | None = None
    cut: EndCut | None = None

    @property
    def verified(self) -> bool:
        """Whether the copy was compared, and its digest is known."""
        return self.digest != UNVERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Answer: the target is not complete, and this is the plan.

    Attributes:
        plan: the plan to carry out.
        recorded: whether a driver has recorded it in the store.
    """

    plan: Plan
    recorded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Following(Planned):
    """All planned bytes are readable in the target, and the copy follows its source.

    Attributes:
        stopped: why nothing more is followed; None while it goes on. What is left is to compare the
            rest, and to give the target its final configuration.
        catches_up: whether bytes are staged, since the target was far behind.
    """

    stopped: str | None = None
    catches_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePlanned(Planned):
    """Streams of a scope are left to copy, or to archive."""

    plan: ScopeCopyPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeEnded:
    """Answer: a scope's copy is over. Each stream is copied, has failed, or was stopped.

    Attributes:
        plan: the plan of the last run.
        results: the result of every stream, in the plan's order; streams without a plan follow.
        kept: why a move has kept the source's scope; None if the scope is gone, or is no move's.
        number: the number under which the run is recorded in the folder of a scope that is archived
            repeatedly; None if it is not recorded yet, and for any other copy.
        gone: the streams of the last complete run of such a scope that this run has not any more.
    """

    plan: ScopeCopyPlan
    results: tuple[StreamResult, ...]
    kept: str | None = None
    number: int | None = None
    gone: tuple[str, ...] = ()


Answer = Complete | Planned | ScopeEnded | Recorded
"""Answer of the stores about a copy."""
