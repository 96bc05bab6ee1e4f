"""Stop a driver at SIGTERM: between two rounds, or by cancelling a round that takes too long."""

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
"""Seconds that a round may go on after SIGTERM. A cancelled round keeps the bytes that it moved,
but loses the digests that it computed."""


class Terminated(BaseException):
    """SIGTERM has come. A BaseException, so that no handler of a copy's errors catches it."""


class Stop:
    """A handler that turns SIGTERM into Terminated.

    The driver calls `check` between two rounds, which raises it. After GRACE seconds it is raised
    wherever the driver is. Only a call to Spark's JVM is never interrupted: the next call would
    read its answer. Instead the round is cancelled, so that the call returns.
    """

    def __init__(self) -> None:
        self._asked = False
        self._cancel: Callable[[], None] | None = None

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

    @contextmanager
    def cancelling(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Return the block of a round.

        Args:
            cancel: ends the round early. It is called in a thread of its own.
        """
        self._cancel = cancel
        try:
            yield
        finally:
            self._cancel = None

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        # Nothing is logged here: the interrupted thread may be logging, and hold the log's lock.
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def _cut(self, _number: int, _frame: FrameType | None) -> None:
        if self._cancel is None:
            raise Terminated
        # The main thread may be in a call to the JVM, so another thread makes the call to cancel.
        threading.Thread(target=self._cancel, name="cancel", daemon=True).start()
        signal.setitimer(signal.ITIMER_REAL, GRACE)  # in case the round goes on
