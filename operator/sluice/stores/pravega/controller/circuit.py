"""Leaving a store alone that says nothing.

Each call to such a store costs its whole deadline, and of thousands of resources that name it each
would pay that in every look. So one at a time asks it, now and then, until it has answered.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from sluice.errors import BackendError, StoreTimeout, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Circuit:
    """Knows whether a store is silent: nothing of it has answered while a call waited in vain.

    One call that takes too long, while others are answered, is no silence; nor is one that whoever
    asked had no time for.

    Args:
        rest: seconds for which nobody asks a silent store; 0 where nobody else would suffer.
        patience: seconds without an answer that are a silence.
        clock: seconds that only go forward.
    """

    def __init__(
        self, rest: float, *, patience: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._rest = rest
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._answered = -math.inf
        self._silent_until: float | None = None
        self._trier: int | None = None

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Something of the store is asked in the block.

        Raises:
            StoreTimeout: it is silent, and was asked a moment ago or is asked by somebody else.
        """
        if not self._rest:
            yield
            return
        begun = self._clock()
        tries = self._try(begun)
        try:
            yield
        except StoreTimeout:
            now = self._clock()
            if self._answered < begun <= now - self._patience:
                self._silent_until = now + self._rest
            raise
        except StoreUnavailable:
            raise  # nobody was there to answer
        except BackendError:
            self._answer()
            raise
        else:
            self._answer()
        finally:
            if tries:
                self._trier = None

    def _try(self, now: float) -> bool:
        """Whether this thread is the one that asks a silent store, as it was not before."""
        with self._lock:
            if self._silent_until is None or self._trier == threading.get_ident():
                return False
            if now < self._silent_until or self._trier is not None:
                raise StoreTimeout("the store has not answered lately, and is asked now and then")
            self._trier = threading.get_ident()
            return True

    def _answer(self) -> None:
        self._answered, self._silent_until = self._clock(), None
