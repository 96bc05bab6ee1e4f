"""The position of a followed segment: the source offset up to which the target has all bytes.

It is an attribute of the target's segment, and at the same time the last event number of the writer
that follows the source (`identity.position_attribute`). So the store sets it with each append in
one step, and refuses an append that does not begin there. A halted position is another number, so
no appender that was set up before can append any more.
"""

from __future__ import annotations

from typing import NamedTuple

_HALTED = -2
"""The value of a segment that is halted at offset 0; those of higher offsets lie below."""

LEFT = -1
"""The value of a segment whose copy was ended while it was live: no follower goes on from there."""


class Position(NamedTuple):
    """A position: the source offset, and whether nothing may be appended behind it for now."""

    offset: int
    halted: bool = False

    @property
    def value(self) -> int:
        """The value of the attribute."""
        return _HALTED - self.offset if self.halted else self.offset


def position_of(value: int | None) -> Position | None:
    """Return the position that an attribute's value says; None if it says none."""
    if value is None or value == LEFT:
        return None
    return Position(value) if value >= 0 else Position(_HALTED - value, halted=True)
