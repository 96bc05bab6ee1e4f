"""Reader groups: which bytes of streams the readers of an application have not got yet.

A group reads segments. When it has read one to its end it goes on with those that a scale event
made of it, but with none of them before it has read everything that this one takes the keys of. So
while a merge is passed there are keys for which the group reads nothing: it awaits a segment.
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
        """`scope/name`, as people write it."""
        return f"{self.scope}/{self.name}"


class GroupSettings(NamedTuple):
    """What a group is configured with, its positions aside.

    Attributes:
        refresh: milliseconds between a reader's looks at what the others do.
        checkpoints: milliseconds between automatic checkpoints; negative for none.
        outstanding: most checkpoints at a time.
        retention: the store's number for how the group holds a stream's truncation up.
    """

    refresh: int = 3000
    checkpoints: int = 30000
    outstanding: int = 3
    retention: int = 0


class GroupConfig(NamedTuple):
    """What a store tells of a group without asking for its positions.

    Attributes:
        settings: of the group.
        streams: that it reads, sorted.
        bounded: those of them that it reads only up to a cut.
    """

    settings: GroupSettings
    streams: tuple[StreamName, ...]
    bounded: tuple[StreamName, ...] = ()


class GroupState(NamedTuple):
    """How far a group has read.

    Attributes:
        readers: names of the readers that are online, sorted. They tell their positions when they
            go; until then, what is known of their segments is older than what they have read.
        positions: by stream, the offset in each segment that the group reads; `AT_END` in one that
            a reader has read to its end, and left before it told what follows.
        awaiting: by stream, the segments that wait for others to be read, with those they wait for.
        changing: whether somebody is about to set other positions.
    """

    readers: tuple[str, ...]
    positions: Mapping[StreamName, Mapping[int, int]]
    awaiting: Mapping[StreamName, Mapping[int, frozenset[int]]]
    changing: bool = False


DEFAULT_SETTINGS: Final = GroupSettings()
"""What the store's own clients take where nothing is said."""

AT_END: Final = -1
"""Stands for the length of a sealed segment, which readers do not look up."""


def finished(
    reading: Mapping[int, int],
    awaiting: Mapping[int, frozenset[int]],
    generations: Sequence[Sequence[Segment]],
) -> set[int]:
    """The segments read to their ends, for whose keys a group reads nothing at the moment.

    With these, at their ends, a group's positions are a cut of the stream.

    Args:
        reading: the segments that the group reads.
        awaiting: those it awaits, with those it has to read before.
        generations: the stream's segments, as scale events made them.
    """
    before = _predecessors(generations)
    found = {
        one.id
        for segment, unread in awaiting.items()
        for one in before.get(segment, ())
        if one.id not in unread and one.id not in reading
    }
    # Of a sealed stream the last segments have none behind them to be awaited.
    keys = {segment.id: segment.keys for made in generations for segment in made}
    taken = [keys[segment] for segment in {*found, *reading} if segment in keys]
    return found | {
        segment.id
        for segment in _tail(generations)
        if not any(segment.keys.overlaps(one) for one in taken)
    }


def _predecessors(generations: Sequence[Sequence[Segment]]) -> dict[int, tuple[Segment, ...]]:
    """The segments whose keys each segment took over."""
    before: dict[int, tuple[Segment, ...]] = {}
    active: list[Segment] = []
    for made in generations:
        for segment in made:
            before[segment.id] = tuple(one for one in active if one.keys.overlaps(segment.keys))
        ended = {one.id for segment in made for one in before[segment.id]}
        active = [one for one in active if one.id not in ended] + list(made)
    return before


def _tail(generations: Sequence[Sequence[Segment]]) -> list[Segment]:
    """The segments that nobody took keys over from."""
    ended = {one.id for ones in _predecessors(generations).values() for one in ones}
    return [segment for made in generations for segment in made if segment.id not in ended]
