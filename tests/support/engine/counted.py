"""A driver's calls to the store, counted by the server that answers them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from sluice.engine.copy.report import Outcome
from support.engine.appends import run_append
from support.engine.sources import ManualClock
from support.model import Fate, ModelStore

if TYPE_CHECKING:
    from sluice.core.copy.planner import CopyRequest
    from support.model import World

GENERATIONS: Final = 16
"""Number of segments in one request of a search for a journal or a receipt."""

SEGMENT_STORE: Final = frozenset(
    {
        "append",
        "append_at",
        "attributes",
        "create",
        "delete",
        "infos",
        "merge",
        "read",
        "seal",
        "set_attribute",
        "setup",
    }
)
"""Calls that the segment store answers. The controller answers all others."""


class Calls:
    """A driver's calls to the controller and to the segment store.

    Attributes:
        controller, segments: the number of calls of each method. A search for a journal or a
            receipt asks for all its names at once, and counts as `search`.
    """

    def __init__(self) -> None:
        self.controller: Counter[str] = Counter()
        self.segments: Counter[str] = Counter()

    def gate(self, what: str) -> Fate:
        """Count a call, and let it be done."""
        method, _, rest = what.partition(" ")
        side = self.segments if method in SEGMENT_STORE else self.controller
        side["search" if (method, rest) == ("infos", str(GENERATIONS)) else method] += 1
        return Fate.DONE


def calls_of(request: CopyRequest, world: World) -> Calls:
    """Run a copy as the command does, from the search for a plan to the end. Return its calls."""
    calls = Calls()
    store = ModelStore(world, calls.gate, block=1 << 20)
    assert run_append(request, store, ManualClock()) is Outcome.COPIED
    return calls
