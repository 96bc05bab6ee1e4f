"""The steps of a copy; `core.copying` decides which comes next, `engine.stream` carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.plan import Part


@dataclass(frozen=True, slots=True)
class Claim:
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
class Settle:
    """Take from the store the right to scale the target, which it was given for a scale event."""


@dataclass(frozen=True, slots=True)
class Configure:
    """Give the target its final configuration, and the tag that says that it is whole."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Delete staging segments that are left: (segment of the plan, part) each."""

    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Delete the journal: the target says by itself that it is whole."""


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do. `digest` is the copy's, as the target's tag says it."""

    digest: str


Step = (
    Claim
    | Shape
    | Bind
    | Stage
    | Transfer
    | Amend
    | Stitch
    | Verify
    | Publish
    | Scale
    | Settle
    | Configure
    | Sweep
    | Forget
    | Done
)
