"""Stop a driver at SIGTERM: as soon as it looks, or midway if it does not look soon."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Self

import structlog

if TYPE_CHECKING:
    from types import FrameType

_log = structlog.get_logger()

GRACE = 1.5
"""Seconds that a call to a store may go on after SIGTERM."""


class Terminated(BaseException):
    """SIGTERM has come. A BaseException, so that no handler of a copy's errors catches it."""


class SigtermHandler:
    """A handler that turns SIGTERM into Terminated.

    The driver calls `check` several times a second, which raises it. If a call to a store takes
    longer, it is raised after GRACE seconds wherever the driver is.
    """

    def __init__(self) -> None:
        self._asked = False

    def __enter__(self) -> Self:
        """Install the signal handlers for the block."""
        self._kept = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._ask),
            signal.SIGALRM: signal.signal(signal.SIGALRM, self._cut),
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the former signal handlers."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise Terminated if SIGTERM has come."""
        if self._asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
            _log.info("SIGTERM: stopping")
            raise Terminated

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        # Nothing is logged here: the interrupted thread may be logging, and hold the log's lock.
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _cut(self, _number: int, _frame: FrameType | None) -> None:
        raise Terminated
