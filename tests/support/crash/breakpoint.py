"""A breakpoint that holds up frames, calls or requests, and delivers them late or never."""

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
    """A breakpoint at the nth frame, call or request that meets a condition, and at all later ones.

    Args:
        condition: whether a frame, call or request counts.
        number: number of the first one to hold, counted from 1.

    Attributes:
        reached: event, set when something is held up.
        seen: the first one that was held up.
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
        """Release everything that is held up, and deliver it late or never."""
        self._deliver = deliver
        self._released.set()

    def pass_through(self, sign: Sign) -> bool:
        """Wait if this sign is held up. Return whether to deliver it."""
        if self._released.is_set() or not self._is_held(sign):
            return True
        self.reached.set()
        self._released.wait(_PATIENCE)
        return self._deliver

    def _is_held(self, sign: Sign) -> bool:
        """Tell whether to hold up a sign. Signs are counted under a lock, for several threads."""
        if not self._condition(sign):
            return False
        with self._lock:
            self._left -= 1
            if self._left > 0:
                return False
            self.seen = self.seen or sign
            return True
