"""When what is asked of stores has to be over as a whole, however many calls that takes.

Each call has a deadline of its own, and a store that answers each of them just in time could keep a
caller for ever: a listing page by page, a message byte by byte. Whoever has only so much time says
so `within` a block; whatever waits for a store takes at most what is `left` of it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import TIMEOUT_MAX
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.errors import StoreTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Lock, Semaphore

_UNTIL: Final = ContextVar("until", default=math.inf)

_A = TypeVar("_A")
_T = TypeVar("_T")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let all that the block asks of stores be over in so many seconds, or sooner."""
    before = _UNTIL.set(min(_UNTIL.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


@contextmanager
def even_so(seconds: float) -> Iterator[None]:
    """Let the block, which tidies up, have so many seconds though there may be none left."""
    before = _UNTIL.set(max(_UNTIL.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


def left(seconds: float = math.inf) -> float:
    """So many seconds, or those that are left if these are fewer.

    Raises:
        StoreTimeout: none are left.
    """
    remaining = _UNTIL.get() - monotonic()
    if remaining <= 0:
        raise StoreTimeout("the store took too long for all that was asked of it together")
    return min(seconds, remaining)


@contextmanager
def held(lock: Lock | Semaphore) -> Iterator[None]:
    """Hold a lock in the block. StoreTimeout: others had it for as long as there was time."""
    if not lock.acquire(timeout=left(TIMEOUT_MAX)):
        raise StoreTimeout("others took too long for what they asked of the store")
    try:
        yield
    finally:
        lock.release()


def carried(call: Callable[[_A], _T]) -> Callable[[_A], _T]:
    """The same call for other threads, in the context of this one: with its deadline, say."""
    context = copy_context()

    def same(one: _A) -> _T:
        return context.copy().run(call, one)  # one context is no two threads' at a time

    return same
