"""How far a stream is followed, as a driver remembers it that follows many in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.follow.rows import proved

if TYPE_CHECKING:
    from sluice.core.copy.journal import Journal
    from sluice.core.copy.steps import Follow
    from sluice.core.follow.observed import SeenStream


class Standing(NamedTuple):
    """How far a stream is followed, and what shows that there is more to do.

    Attributes:
        positions: for each segment of the source that is followed, its id, and the offset up to
            which the target has its bytes.
        lag: bytes of the source that the target has not.
        waits: whether the source is about to say how it goes on behind a segment.
        compared: whether the comparison of all bytes is recorded.
        copied: bytes of the source that the target has.
    """

    positions: tuple[tuple[int, int], ...]
    lag: int
    waits: bool
    compared: bool
    copied: int

    @property
    def at_rest(self) -> bool:
        """Whether nothing is appended until more comes."""
        return not (self.lag or self.waits)


def standing_of(journal: Journal, seen: SeenStream, step: Follow, copied: int) -> Standing:
    """Return how far a stream is followed, as a look at it told.

    Args:
        journal: the journal.
        seen: what the stores hold.
        step: the step that was decided from it.
        copied: bytes of the source that the target has.
    """
    positions = dict(step.positions)
    rows = [row for row in seen.rows if row.row.index in positions]
    return Standing(
        positions=tuple((row.row.segment.id, positions[row.row.index]) for row in rows),
        lag=sum(
            max(0, row.source.info.length - positions[row.row.index])
            for row in rows
            if row.source is not None
        ),
        waits=step.waits,
        compared=all(
            proved(journal, row.row.index).offset >= positions[row.row.index] for row in rows
        ),
        copied=copied,
    )
