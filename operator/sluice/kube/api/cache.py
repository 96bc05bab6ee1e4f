"""Keep objects in memory as the watches last showed them.

The mirror serves to find objects and to wake resources. It may lag behind, so the operator asks the
API server itself before it decides to make something.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from sluice.kube.api.kinds import OWN
from sluice.kube.api.slim import pack, slim, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from sluice.kube.api.kinds import Kind, Object

    Place = Callable[[Object], Hashable]
    _Index = dict[Hashable, dict[tuple[str, str], Object]]


class _Entry(NamedTuple):
    """An object at hand, the clock's time when it was seen, and all of it, packed."""

    body: Object
    at: float
    packed: bytes | None


class Mirror:
    """The objects that were seen, by kind, namespace and name.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._objects: dict[Kind, dict[tuple[str, str], _Entry]] = {}
        self._indices: dict[Kind, dict[Place, _Index]] = {}

    def see(self, kind: Kind, body: Object, *, gone: bool) -> Object | None:
        """Store an object that was seen, or drop one that is gone.

        News of two objects that had the same name one after the other may come in any order. News
        of the older object does not change the newer one.

        Returns:
            The object as it was known before; None if it was unknown.
        """
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        known = self._objects.setdefault(kind, {})
        before = known.get(key)
        if before is not None and _precedes(body, before.body):
            return before.body
        self._drop(kind, key)
        if not gone:
            packed = pack(body) if kind.name in OWN else None
            body = slim(kind, body)
            known[key] = _Entry(body, self._clock(), packed)
            for place, index in self._indices.get(kind, {}).items():
                _enter(index, place, key, body)
        return before.body if before else None

    def keep_only(self, kind: Kind, live: Iterable[Object], since: float) -> list[Object]:
        """Drop objects that were last seen before `since` and are not in the later list `live`.

        A watch that was interrupted begins again with the objects that then exist. It never shows
        the deletions in between.

        Returns:
            The dropped objects.
        """
        there = {(body["metadata"]["namespace"], body["metadata"]["name"]) for body in live}
        known = self._objects.get(kind, {})
        gone = [key for key, entry in known.items() if entry.at < since and key not in there]
        dropped = [known[key].body for key in gone]
        for key in gone:
            self._drop(kind, key)
        return dropped

    def where(self, kind: Kind, place: Place, value: Hashable) -> list[Object]:
        """Return the objects of a kind for which `place` gives a value, by an index.

        Args:
            kind: the kind.
            place: the function of the index. Pass the same function object each time: each one gets
                an index of its own. If it gives a frozenset, an object is found by each of its
                values.
            value: the value to look up.
        """
        return list(self._index(kind, place).get(value, {}).values())

    def count(self, kind: Kind, place: Place, value: Hashable) -> int:
        """Count the objects of a kind for which `place` gives a value, by an index as `where`."""
        return len(self._index(kind, place).get(value, {}))

    def _index(self, kind: Kind, place: Place) -> _Index:
        """Return an index. It is made when it is used for the first time."""
        indices = self._indices.setdefault(kind, {})
        if place not in indices:
            index = indices[place] = {}
            for key, entry in self._objects.get(kind, {}).items():
                _enter(index, place, key, entry.body)
        return indices[place]

    def _drop(self, kind: Kind, key: tuple[str, str]) -> None:
        """Forget an object, if it is known."""
        entry = self._objects.get(kind, {}).pop(key, None)
        if entry is None:
            return
        for place, index in self._indices.get(kind, {}).items():
            for value in _values(place, entry.body):
                index[value].pop(key)
                if not index[value]:
                    del index[value]

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object as it was last seen; None if it is unknown."""
        entry = self._objects.get(kind, {}).get((namespace, name))
        return entry.body if entry else None

    def whole(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object of our own kinds as it was last seen, with all fields that Sluice reads.

        None if it is unknown.
        """
        entry = self._objects.get(kind, {}).get((namespace, name))
        return None if entry is None or entry.packed is None else unpack(entry.packed)

    def version(self, kind: Kind, namespace: str, name: str) -> str | None:
        """Return the resource version in which an object was last seen; None if it is unknown."""
        body = self.get(kind, namespace, name)
        return None if body is None else body["metadata"].get("resourceVersion")

    def all(self, kind: Kind, namespace: str | None = None) -> Iterator[Object]:
        """Return the objects of a kind, of one namespace if given."""
        for (owner, _), entry in list(self._objects.get(kind, {}).items()):
            if namespace is None or owner == namespace:
                yield entry.body

    def is_behind(self, kind: Kind, live: Object, since: float) -> bool:
        """Tell whether the mirror lacks an object's state that was read at `since`, or a later one.

        This means that the watch is behind the list.
        """
        key = (live["metadata"]["namespace"], live["metadata"]["name"])
        entry = self._objects.get(kind, {}).get(key)
        return entry is None or (not is_same(entry.body, live) and entry.at < since)


def is_same(one: Object, other: Object) -> bool:
    """Tell whether two objects of one name are the same one, in the same state."""
    metas = one["metadata"], other["metadata"]
    return all(metas[0].get(it) == metas[1].get(it) for it in ("uid", "resourceVersion"))


def _enter(index: _Index, place: Place, key: tuple[str, str], body: Object) -> None:
    """Enter an object into an index."""
    for value in _values(place, body):
        index.setdefault(value, {})[key] = body


def _values(place: Place, body: Object) -> Iterable[Hashable]:
    """Return the values by which an index finds an object."""
    found = place(body)
    return found if isinstance(found, frozenset) else (found,)


def _precedes(body: Object, other: Object) -> bool:
    """Tell whether `body` is an older object than `other`, whose name it had before."""
    one, two = body["metadata"], other["metadata"]
    versions = [str(meta.get("resourceVersion", "")) for meta in (one, two)]
    if one.get("uid") == two.get("uid") or not all(version.isdigit() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])
