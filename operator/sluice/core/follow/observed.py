"""Observations of a copy that follows its source, from which its next step is decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.copy.observed import SeenSource
    from sluice.core.follow.position import Position
    from sluice.core.follow.rows import Row
    from sluice.core.values.model import Segment, StreamConfig


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A segment that takes events, or did so last.

    Attributes:
        row: the segment in source and target.
        position: how far it is followed; None if that is not known.
        foreign: how many bytes of the target's segment are not the source's; None if the position
            has changed during the look, so that this is not known.
        source: the source's segment; None if it does not exist.
    """

    row: Row
    position: Position | None
    foreign: int | None
    source: SeenSource | None


@dataclass(frozen=True, slots=True)
class SeenStream:
    """The state of the source and of the segments that are followed.

    Attributes:
        rows: the segments of the latest generation that the target has.
        there: whether the source exists.
        had: the ids of followed segments that the source once had, of those that do not exist.
        sealed: whether the source is sealed. It was looked at before `made`.
        made: the segments of the source's next scale event; empty if there is none yet.
        closed: the segments of earlier generations, at their ends.
        shut: whether the target is sealed, so that nothing can be appended.
        quiet: for how many seconds this driver has seen nothing come in the source.
        now: the time by this driver's clock.
        key: the key by which this driver knows wishes of the copy's owner to seal the source.
        config: the source's configuration; None if the source is gone, or another one.
        configured: the target's configuration.
        far: the bytes behind from which on this driver stages; None if it appends any number.
        apart: whether the catch-up that is begun, if there is one, comes first.
    """

    rows: tuple[SeenRow, ...]
    there: bool
    had: frozenset[int] = frozenset()
    sealed: bool = False
    made: tuple[Segment, ...] = ()
    closed: tuple[SeenRow, ...] = ()
    shut: bool = False
    quiet: float = 0.0
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    key: str = ""
    config: StreamConfig | None = None
    configured: StreamConfig | None = None
    far: int | None = None
    apart: bool = True

    @property
    def settled(self) -> bool:
        """Whether no scale event of the source is still to be followed."""
        ends = (row.source is not None and row.source.info.sealed for row in self.rows)
        return not self.made and (self.sealed or not any(ends))
