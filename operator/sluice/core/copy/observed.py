"""Observations of a copy in its stores, from which its next step is decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import Segment, SegmentInfo, StreamConfig, TransactionState


@dataclass(frozen=True, slots=True)
class SeenTarget:
    """The target stream, as the store's catalog describes it.

    Attributes:
        tags: its tags.
        segments: ids of the segments that take events, in key order.
        head: the oldest readable segments, in key order.
        restless: whether the store may scale the stream by itself.
        tail: the segments that take events, in key order.
        least: the minimum number of segments of its scaling policy.
        sealed: whether it takes no more events.
        config: its configuration, if it follows its source; else None.
    """

    tags: tuple[str, ...]
    segments: tuple[int, ...]
    head: tuple[Segment, ...]
    restless: bool = False
    tail: tuple[Segment, ...] = ()
    least: int = 1
    sealed: bool = False
    config: StreamConfig | None = None


@dataclass(frozen=True, slots=True)
class SeenSource:
    """One source segment: its state and its creation time in ms."""

    info: SegmentInfo
    created: int


@dataclass(frozen=True, slots=True)
class SeenStaging:
    """The staging of one segment of the plan, and its target segment.

    Attributes:
        parts: the staging segment of each part; None where it does not exist.
        stitched: length of the first part's segment after the last part was merged into it; None
            before a merge.
        verified: length at which the whole staging segment was verified, or identity.ABORTED if it
            was given up; None before that.
        published: bytes published into the target segment, or identity.ABORTED; None before that.
        target: the target segment; None if it does not exist.
    """

    parts: tuple[SegmentInfo | None, ...]
    stitched: int | None
    verified: int | None
    published: int | None
    target: SegmentInfo | None


@dataclass(frozen=True, slots=True)
class SeenRoll:
    """The state of an append in the target store; see `core.copy.next_append_step`.

    Attributes:
        digest: the copy's digest, if a receipt says that it is appended; else None.
        turn: the id of the copy whose turn it is to scale the target; None if no copy has it.
        states: the states of the transactions, by generation.
        misplaced: whether bytes are staged where they cannot be merged into their transaction.
    """

    digest: str | None = None
    turn: str | None = None
    states: Mapping[int, TransactionState] = field(default_factory=dict)
    misplaced: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of one copy in its stores.

    Attributes:
        journal: the journal; None before the plan is recorded and after the journal is deleted.
        target: the target stream; None if it does not exist.
        segments: the staging of each segment of the plan; empty while the target's segments are not
            recorded. Observed before the target, and again if the target had advanced meanwhile.
        sources: the source segment of each segment of the plan, None where it does not exist. None
            as a whole if nothing has to be read from the sources any more.
        renewed: the sources that were deleted and made again.
        outrun: the sources that were truncated past all of the plan's segments.
        left: whether the source of a move still exists although the target is whole.
        roll: the state of an append.
        scopeless: whether the target's scope is missing, as journal and target are.
    """

    journal: Journal | None
    target: SeenTarget | None
    segments: tuple[SeenStaging, ...] = ()
    sources: tuple[SeenSource | None, ...] | None = None
    renewed: frozenset[int] = frozenset()
    outrun: frozenset[int] = frozenset()
    left: bool = False
    roll: SeenRoll = SeenRoll()
    scopeless: bool = False

    @property
    def plan(self) -> StreamPlan | None:
        """The recorded plan with its amendments; None if none is recorded."""
        return None if self.journal is None else self.journal.current
