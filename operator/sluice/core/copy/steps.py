"""The steps of a copy, of which `next_step` and `next_append_step` choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.copy.plan import Part


@dataclass(frozen=True, slots=True)
class MakeTarget:
    """Make the target stream, tagged as ours."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Give the empty target the key ranges of the plan's first generation.

    A store makes streams with uniform ranges, and the head of a truncated source has others.

    Attributes:
        segments: ids of those that take events.
    """

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Write down which segments the target has; those of later generations follow from them.

    Attributes:
        segments: ids of the first generation's.
    """

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Make staging segments: (segment of the plan, part) each."""

    parts: tuple[tuple[int, Part], ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copy bytes: (segment of the plan, part, source offset to go on at) each."""

    parts: tuple[tuple[int, Part, int], ...]


@dataclass(frozen=True, slots=True)
class Amend:
    """Go on without bytes that the source has lost: (segment of the plan, where it begins now)."""

    starts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DrainSource:
    """Seal the source, and write down where it ends: what came since the bounds is copied, too."""


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Delete the source, once its target is whole."""


@dataclass(frozen=True, slots=True)
class Stitch:
    """Merge parts into their segment's first one: (segment of the plan, part) in order."""

    parts: tuple[tuple[int, Part], ...]


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare staged segments with their source's digests and mark them: segments of the plan."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Seal staged segments and merge them into the target: segments of the plan, in order."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Replace segments of the target as the source's were, once they are published whole."""

    generation: int


@dataclass(frozen=True, slots=True)
class FixSegmentCount:
    """Take from the store the right to scale the target, which it was given for a scale event."""


@dataclass(frozen=True, slots=True)
class ConfigureTarget:
    """Give the target its final configuration, and the tag that says that it is whole."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Let the whole target take no more events."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Delete staging segments that are left: (segment of the plan, part) each."""

    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DeleteJournal:
    """Delete the journal: the target says by itself that it is whole."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do. `digest` is the copy's, as the target's tag says it."""

    digest: str


@dataclass(frozen=True, slots=True)
class PlanPlacement:
    """Write down beside which segments is staged, before these are there."""


@dataclass(frozen=True, slots=True)
class AcquireScaling:
    """Take the turn at scaling the target, which other copies may append to as well."""


@dataclass(frozen=True, slots=True)
class ReleaseScaling:
    """Let other copies have their turn."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Write down the key ranges of the target that is appended to, to give them back."""


@dataclass(frozen=True, slots=True)
class RelaxPolicy:
    """Let the target have few segments for a moment; its policy is noted on it in the same step."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Scale the target to the key ranges of a generation.

    Attributes:
        generation: which one.
        segments: ids of those that take events, all of which are replaced.
    """

    generation: int
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """Open the transaction of a generation, whose key ranges the target has."""

    generation: int


@dataclass(frozen=True, slots=True)
class RestoreLayout:
    """Scale the target to the key ranges that it had; `segments` take events, and are replaced."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """Give the target back the policy that is noted on it."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Begin another attempt: stage where it fits the transactions, if they are kept."""

    keep: bool


@dataclass(frozen=True, slots=True)
class MergeIntoTransaction:
    """Merge staged segments into those of the transactions: segments of the plan, in order."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Write down that the transactions are to be committed, after which no abort is possible."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the transactions of these generations, in order."""

    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordCommitted:
    """Write down that these generations are committed."""

    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """Leave a receipt: all is appended, so that it is not done again."""


@dataclass(frozen=True, slots=True)
class Replan:
    """Take the bounds of a run anew: another run was recorded in the archive meanwhile."""


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Record a run, all of which is in the archive: it can be restored from then on."""


CopyStep = (
    MakeTarget
    | Shape
    | Bind
    | Stage
    | Amend
    | DrainSource
    | DeleteSource
    | Stitch
    | Publish
    | Scale
    | FixSegmentCount
    | ConfigureTarget
    | Seal
    | Sweep
    | DeleteJournal
)
"""The steps of a copy into a target of its own that move no bytes."""

AppendStep = (
    PlanPlacement
    | Stage
    | AcquireScaling
    | ReleaseScaling
    | RecordLayout
    | RelaxPolicy
    | Reshape
    | Open
    | RestoreLayout
    | RestorePolicy
    | Restart
    | MergeIntoTransaction
    | RecordDecision
    | Commit
    | RecordCommitted
    | Seal
    | WriteReceipt
    | DeleteJournal
)
"""Those of an append, but for Stitch."""

ArchiveStep = Amend | Replan | RecordRun | DeleteJournal
"""Those of a run of an archive."""

Step = CopyStep | AppendStep | ArchiveStep | Transfer | Verify | Done
