"""Make scopes, and remove the scopes that Sluice made once they are empty.

A scope has no tags. So a scope that Sluice made holds a stream of ours, the scope marker, and only
such a scope is removed. A store leaves three problems, and each is decided for the safe side:

- A scope and its marker are not made, nor deleted, in one step. A process that dies in between
  leaves an empty scope without a marker. It stays.
- A store may refuse to delete a scope that is in use, and damage it all the same: Pravega 0.13
  drops the scope's index of tags, after which no tagged stream can be made there. So streams and
  key-value tables are listed directly before, and this process makes no stream of ours there
  meanwhile.
- A refusal means that the scope is in use again. Its marker is put back.

One store may have several addresses, and Sluice cannot tell which addresses are of the same store.
So a call that uses or removes a scope waits a while for calls at other addresses with a scope of
that name. If these are of another store, nothing but that wait is lost. One gap is left: another
process may make a stream in the few milliseconds between the listing and the deletion, in a scope
that was empty until then.
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
    from sluice.stores.reading import Topology
    from sluice.stores.writing import Admin


MAKERS: Final = 16
"""How many threads make streams in one scope at once. Each stream changes the scope's list of each
of its tags. So with more threads and a common tag, Pravega 0.13 keeps some waiting: longer than
15 s when 64 threads made 200 streams."""


ELSEWHERE: Final = 2.0
"""Seconds to wait for calls with a scope of the same name at another address. A store needs less
for its few calls, and the wait is short enough if the address is of another store that hangs."""


class _Name:
    """The scopes of one name at all addresses, which may be one scope.

    Attributes:
        changed: the condition that guards the other attributes.
        users: how many calls use the scope, by address.
        removing: the addresses at which the scope is being removed.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.users: Counter[str] = Counter()
        self.removing: set[str] = set()

    @contextmanager
    def using(self, address: str) -> Iterator[None]:
        """Wait a while for removals at other addresses; those that follow wait for the block."""
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
        """Wait a while for users at other addresses; those that follow wait for the block."""
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
    """A lock on a scope: many threads may use the scope at a time, or one may remove it.

    Args:
        address: the store's address.
        name: the scopes of that name at all addresses.

    Attributes:
        unmarked: whether the scope is ours though it has no marker. So it is if making the marker
            failed, or if deleting the scope failed after the marker was deleted.
        making: held by the thread that makes the scope.
        few: held by each thread that makes a stream.
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
        """Keep the scope from being removed while the block runs."""
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
        """Note that a thread begins to delete streams in the scope."""
        with self._changed:
            self._leaving += 1

    def leave(self) -> bool:
        """Note that a thread has ended deleting streams. Tell whether it was the last."""
        with self._changed:
            self._leaving -= 1
            return self._leaving == 0

    @contextmanager
    def removing(self) -> Iterator[None]:
        """Keep the scope from being used while the block runs. Wait for its users first."""
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
        """Wait until a condition holds. Raise StoreTimeout at the calling thread's deadline."""
        if not self._changed.wait_for(over, deadline.left(threading.TIMEOUT_MAX)):
            raise StoreTimeout("others took too long to make or delete streams in the scope")


_gates: Final[dict[tuple[str, str], _Gate]] = {}
_names: Final[dict[str, _Name]] = {}
_lock: Final = threading.Lock()


def _gate(store: Store, scope: str) -> _Gate:
    """Return the gate of a scope. Connections to the same address share it."""
    address = repr(store)  # a connection's text has its address
    with _lock:
        name = _names.setdefault(scope, _Name())
        return _gates.setdefault((address, scope), _Gate(address, name))


def _marker(scope: str) -> StreamName:
    return StreamName(scope=scope, stream=SCOPE_MARKER)


@contextmanager
def used(scope: str, store: Store, *, cluster: str, make: bool) -> Iterator[None]:
    """Keep a scope from being removed while the block makes a stream in it.

    Args:
        scope: the scope.
        store: the store that holds it.
        cluster: tells clusters apart that share the store.
        make: whether to make the scope if it does not exist.
    """
    gate = _gate(store, scope)
    with deadline.held(gate.few), gate.using():
        if make:
            _make(scope, store, cluster, gate)
        yield


def _make(scope: str, store: Store, cluster: str, gate: _Gate) -> None:
    """Make a scope and its marker, unless the scope exists."""
    if not gate.unmarked and store.scope_exists(scope):
        return
    # One thread at a time: several that make the same stream keep a store busy for seconds.
    with deadline.held(gate.making):
        if store.create_scope(scope):
            gate.unmarked = True
        if gate.unmarked:
            _mark(scope, store, cluster, gate)


def _mark(scope: str, store: Admin, cluster: str, gate: _Gate) -> None:
    """Make the marker that says that a scope is ours."""
    store.create_stream(_marker(scope), StreamConfig(tags=scope_tags(cluster)))
    gate.unmarked = False


@contextmanager
def left(scope: str, store: Store, *, cluster: str) -> Iterator[None]:
    """Remove a scope after the block, which deletes streams in it, if it is ours and empty.

    Args:
        scope: the scope.
        store: the store that holds it.
        cluster: tells clusters apart that share the store.
    """
    gate = _gate(store, scope)
    gate.enter()
    try:
        yield
    except BaseException:
        gate.leave()  # a failed call is repeated, and looks at the scope then
        raise
    # Only the last of many concurrent calls looks at the scope: hundreds of looks would be costly.
    if gate.leave():
        remove(scope, store, cluster=cluster)


@contextmanager
def unused(scope: str, store: Store) -> Iterator[None]:
    """Keep this process from making streams of ours in a scope while the block deletes the scope.

    The scope need not be one that Sluice made.

    Args:
        scope: the scope.
        store: the store that holds it.
    """
    with _gate(store, scope).removing():
        yield


def remove(scope: str, store: Store, *, cluster: str) -> bool:
    """Delete a scope if this cluster's Sluice made it and it is empty.

    A scope with internal streams, as of a reader group, is not empty. Neither is a scope with
    key-value tables.

    Returns:
        Whether the scope was deleted.
    """
    gate = _gate(store, scope)
    try:
        if not gate.unmarked and not _only_ours(scope, store, cluster):
            return False  # the usual case, in which no other thread has to wait
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


def _only_ours(scope: str, store: Topology, cluster: str) -> bool:
    """Tell whether a scope holds our marker and nothing else. Raise ScopeNotFound if it is gone."""
    marker = store.configuration(_marker(scope))
    if marker is None or not set(scope_tags(cluster)) <= set(marker.tags):
        return False
    if store.list_streams(scope, internal=True, most=2) != [SCOPE_MARKER]:
        return False
    return not store.list_key_value_tables(scope)


def _delete_marker(scope: str, store: Admin) -> None:
    try:
        store.seal_stream(_marker(scope))
    except StreamNotFound:
        return
    store.delete_stream(_marker(scope))
