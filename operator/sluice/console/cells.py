"""Write facts about streams and plans as all tables write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.core.values.model import KeyRange


def events(count: int | None) -> str:
    """Write a number of events. A store knows none of streams with transactions, for example."""
    return "unknown" if count is None else f"{count:,}"


def keys(owned: KeyRange) -> str:
    """Write the routing keys of a segment, as parts of 1."""
    return f"{owned.low:.3f}-{owned.high:.3f}"


def made(generation: int) -> str:
    """Write which scale event made a segment; 0 stands for the stream's beginning."""
    return f"scale {generation}" if generation else "first"


def bounds(*, recorded: bool) -> str:
    """Write whether the bounds of a plan are fixed already."""
    return "begun, bounds are fixed" if recorded else "not begun, bounds are taken at the start"
