"""Keep the results of a scope's planning that ran out of time, for the next one to go on with.

To plan ten thousand streams of a distant store takes longer than one look of the operator may last.
So the next look goes on from there. The kept results are minutes old by then. So bounds are never
kept but read when the plan is made, and drivers check each stream before they touch it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

Survey = dict[tuple[str, "Hashable"], Any]
"""Results of calls, by the step of planning and the key of the item."""

_CURRENT: Final = ContextVar[Survey | None]("survey", default=None)


@contextmanager
def going_on(survey: Survey) -> Iterator[None]:
    """Let planning in the block reuse the survey's results, and add new ones to it."""
    before = _CURRENT.set(survey)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current() -> Survey:
    """Return the survey of the block; an empty one outside of any block."""
    found = _CURRENT.get()
    return {} if found is None else found
