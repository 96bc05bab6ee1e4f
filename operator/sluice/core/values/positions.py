"""The map of a finished copy's positions, as it is published for people and programs.

`engine.positions.position_map` reads it from the target; the operator writes it into a ConfigMap.
"""

from __future__ import annotations

from pydantic import Field

from sluice.core.values.model import Frozen


class MappedSegment(Frozen):
    """Bytes of a source segment, and their place in the target.

    Attributes:
        segment: the source segment's id.
        start: first offset copied, `from` in JSON.
        end: offset after the last byte copied, `to` in JSON.
        target_segment: id of the target's segment that holds them.
        shift: the difference between an offset in the target and the same one in the source.
    """

    segment: int
    start: int = Field(alias="from")
    end: int = Field(alias="to")
    target_segment: int
    shift: int


class MappedSource(Frozen):
    """The map of one source: its segments in the order in which the target was scaled."""

    stream: str
    segments: tuple[MappedSegment, ...]


class PositionMap(Frozen):
    """The map from positions in a copy's sources to positions in its target.

    Attributes:
        target: the target, `scope/stream`.
        same_positions: whether each position of the source is the same in the target.
        sources: the sources, in the order in which they were copied.
    """

    target: str
    same_positions: bool
    sources: tuple[MappedSource, ...]

    def has(self, other: PositionMap) -> bool:
        """Tell whether this map contains all segments of another map of the same streams.

        A target loses segments as retention truncates it, so a map that is read later has fewer.
        """
        return (
            self.target == other.target
            and [one.stream for one in self.sources] == [one.stream for one in other.sources]
            and all(
                set(theirs.segments) <= set(ours.segments)
                for ours, theirs in zip(self.sources, other.sources, strict=True)
            )
        )
