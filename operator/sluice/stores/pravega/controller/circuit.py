"""A circuit breaker for a store that does not answer.

Each call to a silent store takes its whole deadline. Thousands of resources may name the store, and
each would pay that in every look. So only one thread asks a silent store now and then, until it
answers.
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
    """A circuit breaker that opens when a store is silent.

    A store is silent if a call timed out after at least `patience` seconds, and no other call was
    answered meanwhile. A call that timed out sooner, since its caller had little time, proves
    nothing.

    Args:
        rest: seconds for which a silent store is not asked; 0 turns the circuit breaker off, for
            processes in which no other resource has to wait.
        patience: least seconds without an answer that count as silence.
        clock: monotonic time in seconds.
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
        """Guard a call to the store, which the block makes.

        Raises:
            StoreTimeout: the store is silent, and was asked a moment ago or is being asked by
                another thread.
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
            raise  # a failed connection is neither an answer nor a silence
        except BackendError:
            self._answer()
            raise
        else:
            self._answer()
        finally:
            if tries:
                self._trier = None

    def _try(self, now: float) -> bool:
        """Tell whether the store is silent, and this thread now asks it on behalf of all.

        Raises:
            StoreTimeout: the store is silent, and it is not this thread's turn to ask.
        """
        with self._lock:
            if self._silent_until is None or self._trier == threading.get_ident():
                return False
            if now < self._silent_until or self._trier is not None:
                raise StoreTimeout("the store has not answered lately, and is asked now and then")
            self._trier = threading.get_ident()
            return True

    def _answer(self) -> None:
        self._answered, self._silent_until = self._clock(), None
