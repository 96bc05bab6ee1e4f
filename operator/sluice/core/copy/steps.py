"""The steps of a copy, among which `next_step` and `next_append_step` choose.

`core.follow.following` decides the steps of a copy that follows its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.copy.plan import Part
    from sluice.core.values.model import Segment, StreamConfig


@dataclass(frozen=True, slots=True)
class MakeTarget:
    """Make the target stream, with the copy's tags."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Give the empty target the key ranges of the plan's first generation.

    A store makes streams with uniform ranges, but the head of a truncated source may have others.

    Attributes:
        segments: ids of the segments that take events.
    """

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Record the ids of the target's segments; those of later generations follow from the first.

    Attributes:
        segments: ids of the first generation's segments.
    """

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Make staging segments: (index of the segment in the plan, part) each."""

    parts: tuple[tuple[int, Part], ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copy bytes: (index of the segment in the plan, part, source offset to continue at) each."""

    parts: tuple[tuple[int, Part, int], ...]


@dataclass(frozen=True, slots=True)
class Amend:
    """Go on without bytes that the source has lost: (index of the segment, its new start) each."""

    starts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DrainSource:
    """Seal the source and record where it ends, so that bytes behind the bounds are copied too."""


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Delete the source, once its target is whole."""


@dataclass(frozen=True, slots=True)
class Stitch:
    """Merge parts into their segment's first part: (index of the segment, part) each, in order."""

    parts: tuple[tuple[int, Part], ...]


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare staged segments with the source's digests and mark them: indexes in the plan."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Seal staged segments and merge them into the target: indexes in the plan, in order."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale the target to a generation of the source, once the segments before are published."""

    generation: int


@dataclass(frozen=True, slots=True)
class FixSegmentCount:
    """Fix the target's number of segments again, after a policy that allowed a scale event."""


@dataclass(frozen=True, slots=True)
class ConfigureTarget:
    """Give the target its final configuration, and the tag that says that it is whole."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Seal the target, which is whole: it takes no more events."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Delete remaining staging segments: (index of the segment, number of the part) each."""

    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DeleteJournal:
    """Delete the journal: the target's tag, the receipt or the archive says that all is done."""


@dataclass(frozen=True, slots=True)
class Done:
    """Do nothing: the copy is done. `digest` is its digest, as the tag or the receipt has it."""

    digest: str


@dataclass(frozen=True, slots=True)
class PlanPlacement:
    """Record beside which segments bytes are staged, as foretold before these segments exist."""


@dataclass(frozen=True, slots=True)
class AcquireScaling:
    """Take the turn at scaling the target, to which other copies may append as well."""


@dataclass(frozen=True, slots=True)
class ReleaseScaling:
    """Give up the turn, so that other copies may scale the target."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Record the target's key ranges, to restore them later."""


@dataclass(frozen=True, slots=True)
class RelaxPolicy:
    """Allow the target few segments for a moment, and note its own policy in the same call."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Scale the target to the key ranges of a generation.

    Attributes:
        generation: the generation's number.
        segments: ids of the segments that take events; all are replaced.
    """

    generation: int
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """Open the transaction of a generation, whose key ranges the target has now."""

    generation: int


@dataclass(frozen=True, slots=True)
class RestoreLayout:
    """Scale the target to the key ranges that it had before.

    Attributes:
        segments: ids of the segments that take events; all are replaced.
    """

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestorePolicy:
    """Restore the target's scaling policy from its note."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Begin another attempt; with `keep`, stage beside the transactions of the present one."""

    keep: bool


@dataclass(frozen=True, slots=True)
class MergeIntoTransaction:
    """Merge staged segments into those of the transactions: indexes in the plan, in order."""

    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordDecision:
    """Record that the transactions are to be committed. No abort is possible afterwards."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the transactions of these generations, in order."""

    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordCommitted:
    """Record that these generations are committed."""

    generations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """Leave a receipt that all is appended, so that the append is not repeated."""


@dataclass(frozen=True, slots=True)
class Replan:
    """Plan a run anew, since another run was recorded in the archive meanwhile."""


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Record a run whose objects are all in the archive. From then on it can be restored."""


@dataclass(frozen=True, slots=True)
class Live:
    """Go over to following the source: all planned bytes are readable in the target.

    The target gets the source's retention and tags, and the tag that it follows.

    Attributes:
        config: the source's configuration; None before the source was looked at.
    """

    config: StreamConfig | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Append what comes in the source to the target, until another step has to be decided.

    Attributes:
        positions: (index of the segment in the plan, source offset to continue at) each.
        waits: whether a segment has ended, and the source does not list the next ones yet.
    """

    positions: tuple[tuple[int, int], ...]
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Skip:
    """Go on behind bytes that the source has lost.

    Attributes:
        losses: (index of the segment, first lost offset, first offset that is still there) each.
    """

    losses: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Grow:
    """Record a scale event of the source, whose ended segments are followed to their ends.

    Attributes:
        segments: the segments that it made, by id.
    """

    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Prove:
    """Read segments back, and compare them: (index of the segment, end as source offset) each."""

    ends: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Record that nothing more is followed, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class SealSource:
    """Record that the source is sealed now, as its owner wishes, and seal it."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Shut segments to further appends: (index of the segment, its position) each."""

    positions: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class BeginCatchUp:
    """Record that a source is caught up with by staging, since the target is far behind.

    Attributes:
        ranges: (index of the segment in the plan, first and last source offset) each.
    """

    ranges: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Go on with the recorded catch-up. `core.follow.catching_up` decides which of its steps."""


@dataclass(frozen=True, slots=True)
class EndCatchUp:
    """Record what is compared by a catch-up, delete what it left, and record that it is over."""


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
"""The steps of an append that move no bytes, except Stitch."""

ArchiveStep = Amend | Replan | RecordRun | DeleteJournal
"""The steps of a run of an archive that move no bytes."""

FollowStep = Live | Follow | BeginCatchUp | Skip | Grow | Prove | SealSource | Stop | Halt
"""The steps of following a source."""

CatchUpStep = Stage | Amend | Stitch | Publish | EndCatchUp
"""The steps of a catch-up that move no bytes."""

_Bytes = Transfer | Verify | Done
Step = CopyStep | AppendStep | ArchiveStep | FollowStep | CatchUp | CatchUpStep | _Bytes
