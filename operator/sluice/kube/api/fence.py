"""Keep a process from changing anything once another one may have taken over."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from sluice.errors import ApiUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Return the seconds since a fixed moment. A suspended machine counts them, if it can."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """The moment until which this process may change anything.

    Args:
        clock: gives seconds, see `elapsed`.

    Attributes:
        clock: the same.
        until: the moment; infinite for a process that shares its work with no other.
    """

    def __init__(self, clock: Callable[[], float] = elapsed) -> None:
        self.clock = clock
        self.until = math.inf

    @property
    def is_open(self) -> bool:
        """Whether the process may change anything now."""
        return self.clock() < self.until

    def check(self) -> None:
        """Raise an error if the process may change nothing. Any thread may call this.

        Raises:
            ApiUnavailable: another replica may work by now.
        """
        if not self.is_open:
            raise ApiUnavailable(
                "this replica does not hold the operator's Lease, and changes nothing",
                remedy="Nothing: the replica that holds the Lease does the work.",
            )
