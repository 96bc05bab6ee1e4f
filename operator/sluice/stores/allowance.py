"""Limit the memory of stores' answers in a process that serves many resources.

A look is all that the process asks of stores for one resource at a time. Bounds on single answers
refuse a huge one, but do not bound the sum when many looks take in large answers at a time. So each
look counts the memory of its answers.

A small look never waits. A large look waits for its turn: only a few run at a time, and only one of
each tenant. A look that would be larger still is refused. Drivers and the command line work for one
resource alone: they have no allowance and count nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import TIMEOUT_MAX, Condition, Lock, RLock
from typing import TYPE_CHECKING, Final, TypeVar

from sluice.core.values.text import size
from sluice.errors import ProtocolError, StoreTimeout
from sluice.stores.deadline import left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_A = TypeVar("_A")
_T = TypeVar("_T")

SMALL: Final = 1 << 20
"""Bytes of memory that a small look takes at most: the journal of a copy of some 100 GB."""

LARGE: Final = 80 << 20
"""Bytes of memory that a large look takes at most: the plan of ten thousand streams."""

AT_ONCE: Final = 2
"""Large looks that run at a time."""

KEPT: Final = 32 << 20
"""Bytes that may be kept between looks to save calls, for all resources together."""

_TENANT: Final = ContextVar("tenant", default="")


@contextmanager
def tenant(name: str) -> Iterator[None]:
    """Count the looks that begin in the block as this tenant's."""
    before = _TENANT.set(name)
    try:
        yield
    finally:
        _TENANT.reset(before)


def current_tenant() -> str:
    """Return the tenant for whom looks begin here; empty if none is set."""
    return _TENANT.get()


class Allowance:
    """The memory that a process may use for stores' answers. Several threads may use it.

    Args:
        small: bytes that a look may take without waiting.
        large: bytes that a look may take at most.
        at_once: looks of more than `small` bytes that run at a time.
        kept: bytes that may be kept between looks.
    """

    def __init__(
        self,
        *,
        small: int = SMALL,
        large: int = LARGE,
        at_once: int = AT_ONCE,
        kept: int = KEPT,
    ) -> None:
        self.small, self.large = small, large
        self._at_once, self._kept = at_once, kept
        self._changed = Condition(RLock())
        self._let_in: set[str] = set()
        self._held = 0

    @contextmanager
    def look(self, name: str) -> Iterator[None]:
        """Count the answers that the block takes in as one look of this tenant."""
        look = _Look(self, name)
        before = _LOOK.set(look)
        try:
            with part():
                yield
        finally:
            _LOOK.reset(before)
            look.end()

    @property
    def has_room(self) -> bool:
        """Whether there is room to keep more when a look is over."""
        return self._held <= self._kept

    def count(self, more: int) -> None:
        """Count so many more bytes as held; fewer if negative."""
        with self._changed:
            self._held += more

    def enter(self, name: str, seconds: float) -> bool:
        """Wait for a turn for a tenant's large look; False if none came within `seconds`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_turn(name), timeout=seconds):
                return False
            self._let_in.add(name)
            return True

    def leave(self, name: str) -> None:
        """End the turn of a tenant's large look."""
        with self._changed:
            self._let_in.discard(name)
            self._changed.notify_all()

    def _has_turn(self, name: str) -> bool:
        return name not in self._let_in and len(self._let_in) < self._at_once


class Kept:
    """The memory of a value that is kept between looks. It counts as long as this object lives.

    Args:
        allowance: the process's allowance.
        amount: bytes of memory.
    """

    def __init__(self, allowance: Allowance, amount: int) -> None:
        self._allowance, self._bytes = allowance, amount
        allowance.count(amount)

    def __del__(self) -> None:
        """Stop counting the memory."""
        self._allowance.count(-self._bytes)


class _Look:
    """The memory that one look holds, in all of its threads."""

    def __init__(self, allowance: Allowance, name: str) -> None:
        self.allowance = allowance
        self._name = name
        self._lock = RLock()
        self._entering = Lock()
        self._held = 0
        self._large = False
        self._over = False

    def add(self, more: int, *, wait: bool) -> bool:
        """Hold so many more bytes; False if that needs a turn, there is none, and `wait` is False.

        Raises:
            ProtocolError: it is more than any look may hold.
            StoreTimeout: other looks had the turns until the deadline.
        """
        if self._added(more):
            return True
        # Wait for the turn without `_lock`: other threads may have to give memory back meanwhile.
        # With `wait` False do not even wait for `_entering`: an event loop must not wait for a
        # thread of the same look that waits for a turn.
        if not self._entering.acquire(timeout=left(TIMEOUT_MAX) if wait else 0):
            return self._late(wait=wait)
        try:
            if not self._large and not self._entered(left(TIMEOUT_MAX) if wait else 0):
                return self._late(wait=wait)
        finally:
            self._entering.release()
        return self._added(more)

    @staticmethod
    def _late(*, wait: bool) -> bool:
        """Return False if the caller did not wait for a turn; else raise StoreTimeout."""
        if wait:
            raise StoreTimeout("others took too long for what they asked of their stores")
        return False

    def _entered(self, seconds: float) -> bool:
        """Wait for a turn as a large look; False if there was none within `seconds`.

        A look that ended meanwhile hands the turn back at once.
        """
        if not self.allowance.enter(self._name, seconds):
            return False
        with self._lock:
            self._large = not self._over
        if not self._large:
            self.allowance.leave(self._name)
        return True

    def _added(self, more: int) -> bool:
        """Hold so many more bytes if that needs no further turn. ProtocolError: it is too much."""
        with self._lock:
            held = self._held + more
            if held > self.allowance.large:
                raise ProtocolError(
                    f"what the store tells takes more than {size(self.allowance.large)} of memory,"
                    " which is more than the operator takes in for one resource",
                    remedy="Look at the resource with `sluice`, which has no such bound; name"
                    " fewer streams in one resource, or narrower ranges.",
                )
            if held > self.allowance.small and not (self._large or self._over):
                return False
            self._held = held
        self.allowance.count(more)
        return True

    def give_back(self, less: int) -> None:
        """Hold so many bytes less."""
        with self._lock:
            self._held -= less
        self.allowance.count(-less)

    def end(self) -> None:
        """End the look, and its turn. Readers that outlive it give their memory back later."""
        with self._lock:
            self._over = True
            if self._large:
                self.allowance.leave(self._name)


_LOOK: Final = ContextVar[_Look | None]("look", default=None)


class Held:
    """The memory that one reader holds of stores' answers. It is given back with the reader."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._look: _Look | None = None
        self._bytes = 0

    def add(self, more: int = 0, *, wait: bool = True) -> bool:
        """Hold so many more bytes. Bytes held since an earlier look now count for this one.

        Args:
            more: bytes of memory.
            wait: whether the thread may wait for a turn.

        Returns:
            Whether the bytes are held; always True with `wait`.

        Raises:
            ProtocolError: it is more than any look may hold.
            StoreTimeout: other looks had the turns until the deadline.
        """
        look = _LOOK.get()
        if look is None:
            return True
        with self._lock:
            moved = 0 if look is self._look else self._bytes
        if not look.add(moved + more, wait=wait):
            return False
        with self._lock:
            if self._look is not None and moved:
                self._look.give_back(moved)
            self._look = look
            self._bytes += more
        return True

    def clear(self) -> None:
        """Give all memory back."""
        with self._lock:
            if self._look is not None:
                self._look.give_back(self._bytes)
            self._look, self._bytes = None, 0

    def __del__(self) -> None:
        """Give all memory back: the reader is gone."""
        self.clear()


@contextmanager
def held(amount: int = 0) -> Iterator[Held]:
    """Hold so many bytes until the end of the block, and those that the block adds."""
    holding = Held()
    try:
        holding.add(amount)
        yield holding
    finally:
        holding.clear()


_PART: Final = ContextVar[Held | None]("part", default=None)


@contextmanager
def part() -> Iterator[None]:
    """Give back the memory taken in the block when it ends. The block's result must be small."""
    holding = Held()
    before = _PART.set(holding)
    try:
        yield
    finally:
        _PART.reset(before)
        holding.clear()


def take(more: int, *, wait: bool = True) -> bool:
    """Hold so many more bytes until the `part` of the look ends, or the look. See `Held.add`."""
    holding = _PART.get()
    return holding is None or holding.add(more, wait=wait)


def apart(call: Callable[[_A], _T]) -> Callable[[_A], _T]:
    """Wrap a call so that the memory it takes is given back when it returns; see `part`."""

    def alone(one: _A) -> _T:
        with part():
            return call(one)

    return alone
