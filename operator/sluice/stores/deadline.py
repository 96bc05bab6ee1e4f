"""A deadline for all calls to stores that a block of code makes together.

Each call has a deadline of its own. But a store that answers each call just in time could keep a
caller for ever: a listing page by page, a message byte by byte. So a caller limits the whole block
with `within`, and each wait for a store takes at most the seconds that are `left`.
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
    """Give all calls to stores in the block so many seconds together, or an earlier deadline."""
    before = _UNTIL.set(min(_UNTIL.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


@contextmanager
def even_so(seconds: float) -> Iterator[None]:
    """Give a block that tidies up at least so many seconds, even after the deadline."""
    before = _UNTIL.set(max(_UNTIL.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(before)


def left(seconds: float = math.inf) -> float:
    """Return so many seconds, or those left until the deadline if these are fewer.

    Raises:
        StoreTimeout: no time is left.
    """
    remaining = _UNTIL.get() - monotonic()
    if remaining <= 0:
        raise StoreTimeout("the store took too long for all that was asked of it together")
    return min(seconds, remaining)


@contextmanager
def held(lock: Lock | Semaphore) -> Iterator[None]:
    """Hold a lock in the block. StoreTimeout: other threads held it until the deadline."""
    if not lock.acquire(timeout=left(TIMEOUT_MAX)):
        raise StoreTimeout("others took too long for what they asked of the store")
    try:
        yield
    finally:
        lock.release()


def carried(call: Callable[[_A], _T]) -> Callable[[_A], _T]:
    """Wrap a call so that other threads run it in this thread's context, with its deadline."""
    context = copy_context()

    def same(one: _A) -> _T:
        return context.copy().run(call, one)  # two threads cannot enter one context at a time

    return same
