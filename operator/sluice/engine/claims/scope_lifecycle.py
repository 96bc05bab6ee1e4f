"""Scopes that Sluice makes, and removes when nothing is in them any more.

A scope has no tags. One that we made has a stream of ours in it, the scope marker, and only such a
scope is removed. Three things cannot be had from a store, and each is decided for the safe side:

- A scope and its marker are not made, nor deleted, in one step. A process that dies in between
  leaves an empty scope that nobody knows to be ours: it stays.
- A store may refuse to delete a scope that is in use, and damage it all the same: Pravega 0.13
  drops the scope's index of tags, after which no tagged stream can be made there. So it is looked
  for streams and key-value tables directly before, and within a process nobody makes a stream of
  ours there meanwhile. One store may have several addresses, and none tells which are the same: so
  whoever uses or removes a scope lets those at other addresses go first who do so with a scope of
  that name, for a while. That may be another store, which keeps nobody longer. What remains is a
  stream that another process makes in the few milliseconds between the store's listing and its
  deletion, in a scope that was empty until then.
- A refusal means that the scope is in use again: its marker is put back.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sluice.core.claims.claim import SCOPE_MARKER, scope_tags
from sluice.core.values.model import StreamConfig, StreamName
from sluice.errors import ScopeNotEmpty, ScopeNotFound, StoreTimeout, StreamNotFound
from sluice.stores import deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluice.stores.base import Store


MAKERS: Final = 16
"""Who make streams in one scope at once. Of more that have a tag in common, Pravega 0.13 keeps some
waiting, since each changes the scope's list of that tag: beyond 15 s when 64 made 200."""


ELSEWHERE: Final = 2.0
"""Seconds for which a scope of the same name at another address is waited for: longer than a store
takes for the few calls, and short enough where that is another store, which may say nothing."""


class _Name:
    """Scopes of one name at all addresses, which may be one scope.

    Attributes:
        changed: what follows is read and changed under it.
        users: how many use the scope, by address.
        removing: the addresses at which it is being removed.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.users: Counter[str] = Counter()
        self.removing: set[str] = set()

    @contextmanager
    def using(self, address: str) -> Iterator[None]:
        """Nobody removes it at another address meanwhile."""
        with self.changed:
            self._wait(lambda: not self.removing - {address})
            self.users[address] += 1
        try:
            yield
        finally:
            with self.changed:
                self.users[address] -= 1
                self.changed.notify_all()

    @contextmanager
    def removed(self, address: str) -> Iterator[None]:
        """Nobody uses it at another address meanwhile."""
        try:
            with self.changed:
                self.removing.add(address)
                self._wait(lambda: not any(self.users[one] for one in self.users if one != address))
            yield
        finally:
            with self.changed:
                self.removing.discard(address)
                self.changed.notify_all()

    def _wait(self, over: Callable[[], bool]) -> None:
        self.changed.wait_for(over, deadline.left(ELSEWHERE))


class _Gate:
    """Many may use a scope at a time, or one may remove it.

    Args:
        address: of the store.
        name: the scopes of that name at all addresses.

    Attributes:
        unmarked: whether the scope is ours though its marker is not there: the process was kept
            from making it, or from deleting the scope after it.
        making: held by the one user who makes the scope.
        few: held by each who makes a stream.
    """

    def __init__(self, address: str, name: _Name) -> None:
        self._address = address
        self._name = name
        self.unmarked = False
        self.making = threading.Lock()
        self.few = threading.BoundedSemaphore(MAKERS)
        self._changed = threading.Condition()
        self._users = 0
        self._leaving = 0
        self._removing = False

    @contextmanager
    def using(self) -> Iterator[None]:
        """Nobody removes the scope meanwhile."""
        with self._changed:
            self._wait(lambda: not self._removing)
            self._users += 1
        try:
            with self._name.using(self._address):
                yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def enter(self) -> None:
        """Somebody deletes streams in the scope."""
        with self._changed:
            self._leaving += 1

    def leave(self) -> bool:
        """He does not any more; whether he is the last."""
        with self._changed:
            self._leaving -= 1
            return self._leaving == 0

    @contextmanager
    def removing(self) -> Iterator[None]:
        """Nobody uses the scope meanwhile."""
        with self._changed:
            self._wait(lambda: not self._removing)
            self._removing = True
        try:
            with self._changed:
                self._wait(lambda: self._users == 0)
            with self._name.removed(self._address):
                yield
        finally:
            with self._changed:
                self._removing = False
                self._changed.notify_all()

    def _wait(self, over: Callable[[], bool]) -> None:
        """Wait until something is over, for as long as whoever asks has time."""
        if not self._changed.wait_for(over, deadline.left(threading.TIMEOUT_MAX)):
            raise StoreTimeout("others took too long to make or delete streams in the scope")


_gates: Final[dict[tuple[str, str], _Gate]] = {}
_names: Final[dict[str, _Name]] = {}
_lock: Final = threading.Lock()


def _gate(store: Store, scope: str) -> _Gate:
    """The gate of a scope. Two connections to one address, which their text has, share it."""
    address = repr(store)
    with _lock:
        name = _names.setdefault(scope, _Name())
        return _gates.setdefault((address, scope), _Gate(address, name))


def _marker(scope: str) -> StreamName:
    return StreamName(scope=scope, stream=SCOPE_MARKER)


@contextmanager
def used(scope: str, store: Store, *, cluster: str, make: bool) -> Iterator[None]:
    """A scope in which a stream is about to be made: it is not removed meanwhile.

    Args:
        scope: the scope.
        store: where it is.
        cluster: tells clusters apart that share the store.
        make: whether it is made if there is none.
    """
    gate = _gate(store, scope)
    with deadline.held(gate.few), gate.using():
        if make:
            _make(scope, store, cluster, gate)
        yield


def _make(scope: str, store: Store, cluster: str, gate: _Gate) -> None:
    """Make a scope and its marker, unless it is there."""
    if not gate.unmarked and store.scope_exists(scope):
        return
    with deadline.held(
        gate.making
    ):  # several who make the same stream at once keep a store busy for seconds
        if store.create_scope(scope):
            gate.unmarked = True
        if gate.unmarked:
            _mark(scope, store, cluster, gate)


def _mark(scope: str, store: Store, cluster: str, gate: _Gate) -> None:
    """Say in a scope that it is ours."""
    store.create_stream(_marker(scope), StreamConfig(tags=scope_tags(cluster)))
    gate.unmarked = False


@contextmanager
def left(scope: str, store: Store, *, cluster: str) -> Iterator[None]:
    """A scope in which streams are about to be deleted: the last who does that removes it.

    Several hundred at once need not all look what is in it. Who fails comes again, and looks then.

    Args:
        scope: the scope.
        store: where it is.
        cluster: tells clusters apart that share the store.
    """
    gate = _gate(store, scope)
    gate.enter()
    try:
        yield
    except BaseException:
        gate.leave()
        raise
    if gate.leave():
        remove(scope, store, cluster=cluster)


@contextmanager
def unused(scope: str, store: Store) -> Iterator[None]:
    """A scope that is about to be deleted, whoever made it: nobody makes a stream of ours there.

    Args:
        scope: the scope.
        store: where it is.
    """
    with _gate(store, scope).removing():
        yield


def remove(scope: str, store: Store, *, cluster: str) -> bool:
    """Delete a scope if this cluster's Sluice made it and nothing is in it.

    Internal streams count as something: a reader group's, for example, is in use. So do key-value
    tables.

    Returns:
        Whether it was deleted.
    """
    gate = _gate(store, scope)
    try:
        if not gate.unmarked and not _only_ours(scope, store, cluster):
            return False  # as it mostly is; nobody had to wait for this look
        with gate.removing():
            return _remove(scope, store, cluster, gate)
    except ScopeNotFound:
        gate.unmarked = False
        return False


def _remove(scope: str, store: Store, cluster: str, gate: _Gate) -> bool:
    if _only_ours(scope, store, cluster):
        gate.unmarked = True
        _delete_marker(scope, store)
    if not gate.unmarked:
        return False
    if store.list_streams(scope, internal=True, most=1):
        _mark(scope, store, cluster, gate)
        return False
    try:
        deleted = store.delete_scope(scope)
    except ScopeNotEmpty:
        _mark(scope, store, cluster, gate)
        return False
    gate.unmarked = False
    return deleted


def _only_ours(scope: str, store: Store, cluster: str) -> bool:
    """Whether a scope has our marker and nothing else. ScopeNotFound."""
    marker = store.configuration(_marker(scope))
    if marker is None or not set(scope_tags(cluster)) <= set(marker.tags):
        return False
    if store.list_streams(scope, internal=True, most=2) != [SCOPE_MARKER]:
        return False
    return not store.list_key_value_tables(scope)


def _delete_marker(scope: str, store: Store) -> None:
    try:
        store.seal_stream(_marker(scope))
    except StreamNotFound:
        return
    store.delete_stream(_marker(scope))
