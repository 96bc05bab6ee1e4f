"""Waits for effects of other processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.config import StoreTimeouts

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class NeverHappenedError(AssertionError):
    """The error of a test whose awaited event did not come."""


PATIENCE: Final = 240.0
"""Seconds to wait for an event, enough for a busy machine."""

PATIENTLY: Final = f"--timeout={PATIENCE:.0f}s"
"""kubectl's and Helm's option for the same patience."""

PATIENT: Final = StoreTimeouts(connect=30, call=120, stall=60)
"""Deadlines of clients whose store runs on a busy machine."""

POLL: Final = 0.2
"""Seconds between two looks."""

TIGHT: Final = 0.02
"""Seconds between two looks for a moment that passes soon."""


def until(what: str, check: Callable[[], T], *, seconds: float = PATIENCE, poll: float = POLL) -> T:
    """Wait until a check returns a true value, and return that value.

    Args:
        what: the awaited event, for the failure's message.
        check: the check.
        seconds: seconds after which the test fails.
        poll: seconds between two looks.
    """
    deadline = time.monotonic() + seconds
    while not (found := check()):
        if time.monotonic() > deadline:
            raise NeverHappenedError(f"not within {seconds:g} s: {what}")
        time.sleep(poll)
    return found
