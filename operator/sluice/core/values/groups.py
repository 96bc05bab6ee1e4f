"""Reader groups: the positions up to which an application has read streams.

A group reads segments. After the end of a segment, it goes on with the segments that a scale event
made of it. It begins such a segment only when it has read all segments whose keys that one takes.
So while a group passes a merge, it reads nothing for some keys: it awaits a segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.model import Segment, StreamName


class GroupName(NamedTuple):
    """A reader group in its scope."""

    scope: str
    name: str

    def __str__(self) -> str:
        """Return `scope/name`."""
        return f"{self.scope}/{self.name}"


class GroupSettings(NamedTuple):
    """The configuration of a group, without its positions.

    Attributes:
        refresh: milliseconds between a reader's looks at what the others do.
        checkpoints: milliseconds between automatic checkpoints; negative for none.
        outstanding: most checkpoints at a time.
        retention: the store's number for whether and how the group holds up a stream's truncation.
    """

    refresh: int = 3000
    checkpoints: int = 30000
    outstanding: int = 3
    retention: int = 0


class GroupConfig(NamedTuple):
    """What a store's catalog says about a group: no positions.

    Attributes:
        settings: the group's settings.
        streams: the streams that it reads, sorted.
        bounded: the streams that it reads only up to a cut.
    """

    settings: GroupSettings
    streams: tuple[StreamName, ...]
    bounded: tuple[StreamName, ...] = ()


class GroupState(NamedTuple):
    """How far a group has read.

    Attributes:
        readers: names of the readers that are online, sorted. A reader writes down its position
            when it leaves; until then, the known position of its segments is too early.
        positions: by stream, the offset in each segment that the group reads. `AT_END` where a
            reader came to the segment's end, and left before it wrote down which segments follow.
        awaiting: by stream, the segments that the group cannot read yet, each with the segments
            that have to be read before.
        changing: whether a client is about to set other positions.
    """

    readers: tuple[str, ...]
    positions: Mapping[StreamName, Mapping[int, int]]
    awaiting: Mapping[StreamName, Mapping[int, frozenset[int]]]
    changing: bool = False


DEFAULT_SETTINGS: Final = GroupSettings()
"""The defaults of the store's own clients."""

AT_END: Final = -1
"""The offset at the end of a sealed segment: readers do not look up its length."""


def finished(
    reading: Mapping[int, int],
    awaiting: Mapping[int, frozenset[int]],
    generations: Sequence[Sequence[Segment]],
) -> set[int]:
    """Return the segments read to their ends for whose keys a group reads nothing at the moment.

    With these segments added, at their ends, a group's positions are a cut of the stream.

    Args:
        reading: the segments that the group reads.
        awaiting: the segments that it awaits, each with the segments that it has to read before.
        generations: the stream's segments, as scale events made them.
    """
    before = _predecessors(generations)
    found = {
        one.id
        for segment, unread in awaiting.items()
        for one in before.get(segment, ())
        if one.id not in unread and one.id not in reading
    }
    # The last segments of a sealed stream have no successors that could be awaited.
    keys = {segment.id: segment.keys for made in generations for segment in made}
    taken = [keys[segment] for segment in {*found, *reading} if segment in keys]
    return found | {
        segment.id
        for segment in _tail(generations)
        if not any(segment.keys.overlaps(one) for one in taken)
    }


def _predecessors(generations: Sequence[Sequence[Segment]]) -> dict[int, tuple[Segment, ...]]:
    """Return, for each segment, the segments whose keys it took over."""
    before: dict[int, tuple[Segment, ...]] = {}
    active: list[Segment] = []
    for made in generations:
        for segment in made:
            before[segment.id] = tuple(one for one in active if one.keys.overlaps(segment.keys))
        ended = {one.id for segment in made for one in before[segment.id]}
        active = [one for one in active if one.id not in ended] + list(made)
    return before


def _tail(generations: Sequence[Sequence[Segment]]) -> list[Segment]:
    """Return the segments that no other segment took keys over from."""
    ended = {one.id for ones in _predecessors(generations).values() for one in ones}
    return [segment for made in generations for segment in made if segment.id not in ended]
