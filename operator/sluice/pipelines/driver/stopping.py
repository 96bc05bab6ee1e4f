"""SIGTERM: a driver stops between two rounds, or cuts one off that lasts too long."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_log = structlog.get_logger()

GRACE = 1.5
"""Seconds that a round may go on after SIGTERM. What a round that is cut off has moved is not lost,
but what it has hashed is."""


class Terminated(BaseException):
    """SIGTERM: no error of the copy, so nothing that handles errors may hold it up."""


class Stop:
    """Turns SIGTERM into Terminated.

    It is raised where the driver asks, between two rounds; after GRACE seconds wherever the driver
    is. But never in the midst of a call to Spark's JVM, whose answer the next call would then get
    for its own: there the round is cancelled, so that the call returns.
    """

    def __init__(self) -> None:
        self._asked = False
        self._cancel: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        """Take the signals over for the block."""
        self._kept = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._ask),
            signal.SIGALRM: signal.signal(signal.SIGALRM, self._cut),
        }
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._kept.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise Terminated if SIGTERM has come."""
        if self._asked:
            signal.setitimer(signal.ITIMER_REAL, 0)
            _log.info("SIGTERM: stopping")
            raise Terminated

    @contextmanager
    def cancelling(self, cancel: Callable[[], None]) -> Iterator[None]:
        """A round, which `cancel` lets end early; it is called in a thread of its own."""
        self._cancel = cancel
        try:
            yield
        finally:
            self._cancel = None

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        # Nothing is logged here: the thread may be in the midst of it, and hold the log's lock.
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _cut(self, _number: int, _frame: FrameType | None) -> None:
        if self._cancel is None:
            raise Terminated
        threading.Thread(target=self._cancel, name="cancel", daemon=True).start()
        signal.setitimer(signal.ITIMER_REAL, GRACE)  # in case that does not help
