"""What a look at the stores tells of one copy: the values that its next step is decided from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import Segment, SegmentInfo, TransactionState


@dataclass(frozen=True, slots=True)
class SeenTarget:
    """The target stream, as the catalog says.

    Attributes:
        tags: its tags.
        segments: ids of the segments that take events, in key order.
        head: the oldest segments that are readable, in key order.
        restless: whether the store may scale it by itself.
        tail: the segments that take events, in key order.
        least: how many its policy wants at least.
        sealed: whether it takes no events any more.
    """

    tags: tuple[str, ...]
    segments: tuple[int, ...]
    head: tuple[Segment, ...]
    restless: bool = False
    tail: tuple[Segment, ...] = ()
    least: int = 1
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class SeenSource:
    """One source segment: its information and creation time; None when it does not exist."""

    info: SegmentInfo
    created: int


@dataclass(frozen=True, slots=True)
class SeenStaging:
    """The staging of one segment of the plan, and its target.

    Attributes:
        parts: each part's staging segment as it is, None where there is none.
        stitched: length of the first part's segment after the last part merged into it.
        verified: length at which the whole staging segment was verified; identity.ABORTED where
            it was given up.
        published: bytes published into the target segment, or identity.ABORTED.
        target: the target segment as it is, None where there is none.
    """

    parts: tuple[SegmentInfo | None, ...]
    stitched: int | None
    verified: int | None
    published: int | None
    target: SegmentInfo | None


@dataclass(frozen=True, slots=True)
class SeenRoll:
    """What the target store knows of an append; see `core.copy.next_append_step`.

    Attributes:
        digest: the copy's, where it is certified to be appended; else None.
        states: of the transactions, by generation.
        misplaced: whether anything is staged where it cannot be merged into its transaction.
        turn: the id of the copy whose turn it is to scale the target.
    """

    digest: str | None = None
    turn: str | None = None
    states: Mapping[int, TransactionState] = field(default_factory=dict)
    misplaced: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """What the stores hold of one copy.

    Attributes:
        journal: what was written down; None before the plan is recorded and after the end.
        target: the target stream, None when there is none.
        segments: in the plan's order; empty while the target is not bound. Looked at before the
            target, or again where that had gone on.
        sources: in the plan's order; None when nothing has to be read from the source any more.
        renewed: the sources that were deleted and made again.
        outrun: the sources that were truncated past all of the plan's segments.
        left: whether the source of a move is still there, once the target is whole.
        roll: what belongs to an append.
    """

    journal: Journal | None
    target: SeenTarget | None
    segments: tuple[SeenStaging, ...] = ()
    sources: tuple[SeenSource | None, ...] | None = None
    renewed: frozenset[int] = frozenset()
    outrun: frozenset[int] = frozenset()
    left: bool = False
    roll: SeenRoll = SeenRoll()

    @property
    def plan(self) -> StreamPlan | None:
        """The plan that this was observed by, if one is recorded."""
        return None if self.journal is None else self.journal.current
