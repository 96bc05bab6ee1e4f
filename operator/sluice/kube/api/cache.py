"""What the watches have told: the objects that Sluice knows of, as they were last seen.

Good for finding things and for waking up; a decision to make something looks at the API server
itself, since a mirror may lag behind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from sluice.kube.api.slim import slim

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from sluice.kube.api.kinds import Kind, Object

    Place = Callable[[Object], Hashable]
    _Index = dict[Hashable, dict[tuple[str, str], Object]]


class _Entry(NamedTuple):
    """An object, and when it was seen."""

    body: Object
    at: float


class Mirror:
    """Objects by kind, namespace and name.

    Args:
        clock: seconds since some moment.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._objects: dict[Kind, dict[tuple[str, str], _Entry]] = {}
        self._indices: dict[Kind, dict[Place, _Index]] = {}

    def see(self, kind: Kind, body: Object, *, gone: bool) -> Object | None:
        """Take in as much of an object as is asked for; what was known of it before.

        Of two objects that followed each other under one name, news may come in any order: that of
        the former changes nothing of the latter.
        """
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        known = self._objects.setdefault(kind, {})
        before = known.get(key)
        if before is not None and _precedes(body, before.body):
            return before.body
        self._drop(kind, key)
        if not gone:
            body = slim(kind, body)
            known[key] = _Entry(body, self._clock())
            for place, index in self._indices.get(kind, {}).items():
                index.setdefault(place(body), {})[key] = body
        return before.body if before else None

    def keep_only(self, kind: Kind, live: Iterable[Object], since: float) -> None:
        """Drop what was last seen before `since` and is not in a list that was read after that.

        A watch that was cut off begins again with what is there then; what was deleted meanwhile
        it never tells.
        """
        there = {(body["metadata"]["namespace"], body["metadata"]["name"]) for body in live}
        known = self._objects.get(kind, {})
        for key in [key for key, entry in known.items() if entry.at < since and key not in there]:
            self._drop(kind, key)

    def where(self, kind: Kind, place: Place, value: Hashable) -> list[Object]:
        """The objects of a kind of which a function gives this value, found without a search.

        Args:
            kind: of what.
            place: the same function each time: what it gives is kept for each object.
            value: what it gives.
        """
        indices = self._indices.setdefault(kind, {})
        if place not in indices:
            index = indices[place] = {}
            for key, entry in self._objects.get(kind, {}).items():
                index.setdefault(place(entry.body), {})[key] = entry.body
        return list(indices[place].get(value, {}).values())

    def _drop(self, kind: Kind, key: tuple[str, str]) -> None:
        """Forget an object, if it is known."""
        entry = self._objects.get(kind, {}).pop(key, None)
        if entry is None:
            return
        for place, index in self._indices.get(kind, {}).items():
            value = place(entry.body)
            index[value].pop(key)
            if not index[value]:
                del index[value]

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object as it was last seen."""
        entry = self._objects.get(kind, {}).get((namespace, name))
        return entry.body if entry else None

    def all(self, kind: Kind, namespace: str | None = None) -> Iterator[Object]:
        """The objects of a kind, of one namespace if given."""
        for (owner, _), entry in list(self._objects.get(kind, {}).items()):
            if namespace is None or owner == namespace:
                yield entry.body

    def is_behind(self, kind: Kind, live: Object, since: float) -> bool:
        """Whether an object that was read at `since` has not been seen in that or a later state."""
        key = (live["metadata"]["namespace"], live["metadata"]["name"])
        entry = self._objects.get(kind, {}).get(key)
        if entry is None:
            return True
        same = entry.body["metadata"].get("resourceVersion") == live["metadata"]["resourceVersion"]
        return not same and entry.at < since


def _precedes(body: Object, other: Object) -> bool:
    """Whether an object is one that had another one's name before it."""
    one, two = body["metadata"], other["metadata"]
    versions = [str(meta.get("resourceVersion", "")) for meta in (one, two)]
    if one.get("uid") == two.get("uid") or not all(version.isdigit() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])
