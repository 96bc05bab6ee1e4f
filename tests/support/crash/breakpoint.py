"""Holds up what goes to a store, a frame, a call or a request, and lets it go late or never."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.crash.call_proxy import Call
    from support.crash.proxy import Frame
    from support.crash.request_proxy import Request

    Sign = Frame | Call | Request

_PATIENCE = 120.0


class Breakpoint:
    """Holds up the nth of what a condition is true for, and all of these that come after it.

    Args:
        condition: is it one of these?
        number: counted from 1.

    Attributes:
        reached: set when something is held up.
        seen: what was held up first.
    """

    def __init__(self, condition: Callable[[Sign], bool], number: int = 1) -> None:
        self.reached = threading.Event()
        self.seen: Sign | None = None
        self._condition = condition
        self._left = number
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._deliver = True

    def release(self, *, deliver: bool) -> None:
        """Let go: what was held up arrives late, or never."""
        self._deliver = deliver
        self._released.set()

    def pass_through(self, sign: Sign) -> bool:
        """Wait if this is held up; whether it is to be delivered."""
        if self._released.is_set() or not self._is_held(sign):
            return True
        self.reached.set()
        self._released.wait(_PATIENCE)
        return self._deliver

    def _is_held(self, sign: Sign) -> bool:
        """Count; what is told comes from several threads."""
        if not self._condition(sign):
            return False
        with self._lock:
            self._left -= 1
            if self._left > 0:
                return False
            self.seen = self.seen or sign
            return True
