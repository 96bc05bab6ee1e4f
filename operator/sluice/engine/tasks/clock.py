"""A clock, as work and its pace read it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A clock, which tests can replace."""

    def monotonic(self) -> float:
        """Return seconds since some moment."""
        ...

    def sleep(self, seconds: float, /) -> None:
        """Wait."""
        ...
