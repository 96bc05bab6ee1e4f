"""The map of a finished copy's positions, as it is published for people and programs.

`engine.positions.position_map` finds it in the target; the operator writes it into a ConfigMap.
"""

from __future__ import annotations

from pydantic import Field

from sluice.core.values.model import Frozen


class MappedSegment(Frozen):
    """Bytes of a source segment, and where they are in the target.

    Attributes:
        segment: the source segment's id.
        start: first offset copied, `from` in JSON.
        end: offset after the last byte copied, `to` in JSON.
        target_segment: id of the segment in which they are.
        shift: what has to be added to an offset of the source.
    """

    segment: int
    start: int = Field(alias="from")
    end: int = Field(alias="to")
    target_segment: int
    shift: int


class MappedSource(Frozen):
    """What came of one source: its segments in the order in which the target was scaled."""

    stream: str
    segments: tuple[MappedSegment, ...]


class PositionMap(Frozen):
    """Which position of a copy's sources is which one of its target.

    Attributes:
        target: the target, `scope/stream`.
        same_positions: whether each position of the source is the same one in the target.
        sources: in the order in which they were copied.
    """

    target: str
    same_positions: bool
    sources: tuple[MappedSource, ...]

    def has(self, other: PositionMap) -> bool:
        """Whether it tells all that another one does, and of the same streams.

        A target loses segments as retention truncates it, so a later look finds less of the map.
        """
        return (
            self.target == other.target
            and [one.stream for one in self.sources] == [one.stream for one in other.sources]
            and all(
                set(theirs.segments) <= set(ours.segments)
                for ours, theirs in zip(self.sources, other.sources, strict=True)
            )
        )
