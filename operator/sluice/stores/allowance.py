"""How much of what peers say is in memory at once, in a process that looks for everybody.

Bounds on single answers refuse one that is huge. They do not bound the sum, when many looks take in
large answers at a time. So each look counts the memory of its answers. A small look never waits. A
large look waits for its turn: few have one at a time, and of each tenant one. A look that would be
larger still is refused. Drivers and the command line work for one resource alone: they have no
allowance and count nothing.
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
"""Bytes of memory of a look that is not large: the journal of some 100 GB."""

LARGE: Final = 80 << 20
"""Bytes of the largest look: the plan of ten thousand streams."""

AT_ONCE: Final = 2
"""Large looks at a time."""

KEPT: Final = 32 << 20
"""Bytes that may be kept between looks to spare calls, of all resources together."""

_TENANT: Final = ContextVar("tenant", default="")


@contextmanager
def tenant(name: str) -> Iterator[None]:
    """Let the looks that the block begins be this tenant's."""
    before = _TENANT.set(name)
    try:
        yield
    finally:
        _TENANT.reset(before)


def current_tenant() -> str:
    """Whose looks are begun here."""
    return _TENANT.get()


class Allowance:
    """What a process may hold of what peers say. May be used by several threads.

    Args:
        small: bytes of a look for which nobody waits.
        large: bytes of the largest look.
        at_once: looks of more than `small` bytes at a time.
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
        """Count what the block takes in as one look of this tenant."""
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
        """So much more is held, or less."""
        with self._changed:
            self._held += more

    def enter(self, name: str, seconds: float) -> bool:
        """Let a large look of a tenant in, once there is room; False if there was none in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_turn(name), timeout=seconds):
                return False
            self._let_in.add(name)
            return True

    def leave(self, name: str) -> None:
        """A large look is over."""
        with self._changed:
            self._let_in.discard(name)
            self._changed.notify_all()

    def _has_turn(self, name: str) -> bool:
        return name not in self._let_in and len(self._let_in) < self._at_once


class Kept:
    """The memory of a thing that is kept between looks. It counts as long as this object lives.

    Args:
        allowance: of the process.
        amount: bytes of memory.
    """

    def __init__(self, allowance: Allowance, amount: int) -> None:
        self._allowance, self._bytes = allowance, amount
        allowance.count(amount)

    def __del__(self) -> None:
        """It is gone."""
        self._allowance.count(-self._bytes)


class _Look:
    """One look: what it holds, in all of its threads."""

    def __init__(self, allowance: Allowance, name: str) -> None:
        self.allowance = allowance
        self._name = name
        self._lock = RLock()
        self._entering = Lock()
        self._held = 0
        self._large = False
        self._over = False

    def add(self, more: int, *, wait: bool) -> bool:
        """Hold so much more; False where that has to be waited for, and nobody may.

        Raises:
            ProtocolError: it is more than any look may hold.
            StoreTimeout: others held so much for as long as there was time.
        """
        if self._added(more):
            return True
        # Not under the other lock: any thread may have to give memory back meanwhile. And an event
        # loop must not wait for a thread of the same look that waits.
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
        """There was no turn: False, or StoreTimeout where it was waited for."""
        if wait:
            raise StoreTimeout("others took too long for what they asked of their stores")
        return False

    def _entered(self, seconds: float) -> bool:
        """Be let in as a large look, unless the look was over before that."""
        if not self.allowance.enter(self._name, seconds):
            return False
        with self._lock:
            self._large = not self._over
        if not self._large:
            self.allowance.leave(self._name)
        return True

    def _added(self, more: int) -> bool:
        """Hold so much more, if that needs nobody to let it in. ProtocolError: it is too much."""
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
        """Hold so much less."""
        with self._lock:
            self._held -= less
        self.allowance.count(-less)

    def end(self) -> None:
        """Let the next large look in. Readers that outlive this one give their memory back."""
        with self._lock:
            self._over = True
            if self._large:
                self.allowance.leave(self._name)


_LOOK: Final = ContextVar[_Look | None]("look", default=None)


class Held:
    """What one reader holds of what peers said. It is given back with the reader."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._look: _Look | None = None
        self._bytes = 0

    def add(self, more: int = 0, *, wait: bool = True) -> bool:
        """Hold so much more; what was held since an earlier look counts for this one.

        Args:
            more: bytes of memory.
            wait: whether the thread may be kept waiting.

        Returns:
            Whether it is held: always, where it may be waited for.

        Raises:
            ProtocolError: it is more than any look may hold.
            StoreTimeout: others held so much for as long as there was time.
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
        """Give all back."""
        with self._lock:
            if self._look is not None:
                self._look.give_back(self._bytes)
            self._look, self._bytes = None, 0

    def __del__(self) -> None:
        """Give all back: the reader is gone."""
        self.clear()


@contextmanager
def held(amount: int = 0) -> Iterator[Held]:
    """Hold so many bytes in the block, and those that are added there."""
    holding = Held()
    try:
        holding.add(amount)
        yield holding
    finally:
        holding.clear()


_PART: Final = ContextVar[Held | None]("part", default=None)


@contextmanager
def part() -> Iterator[None]:
    """Give back at the end of the block all that is taken in it. Its outcome must be small."""
    holding = Held()
    before = _PART.set(holding)
    try:
        yield
    finally:
        _PART.reset(before)
        holding.clear()


def take(more: int, *, wait: bool = True) -> bool:
    """Hold so much more until the part of the look is over, or all of it. See `Held.add`."""
    holding = _PART.get()
    return holding is None or holding.add(more, wait=wait)


def apart(call: Callable[[_A], _T]) -> Callable[[_A], _T]:
    """The same call, as a part of its own: see `part`."""

    def alone(one: _A) -> _T:
        with part():
            return call(one)

    return alone
