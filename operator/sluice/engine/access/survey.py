"""What the planning of a scope has found, when its time was over before it was done.

Ten thousand streams of a store that is far away take longer than one look may. So the next one goes
on where this one was. What was found is minutes old by then: bounds are taken anew, of a stream as
it is by then, and drivers look again at whatever they touch.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

Survey = dict[tuple[str, "Hashable"], Any]
"""What was found, by the step of planning and by what that was asked about."""

_CURRENT: Final = ContextVar[Survey | None]("survey", default=None)


@contextmanager
def going_on(survey: Survey) -> Iterator[None]:
    """Plan in the block with what was found before, and add what is found."""
    before = _CURRENT.set(survey)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current() -> Survey:
    """What was found before; nothing, where nobody keeps it."""
    found = _CURRENT.get()
    return {} if found is None else found
