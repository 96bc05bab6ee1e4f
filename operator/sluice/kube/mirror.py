"""What the watches have told: the objects that Sluice knows of, as they were last seen.

Good for finding things and for waking up; a decision to make something looks at the API server
itself, since a mirror may lag behind.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sluice.kube.client import Kind, Object


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

    def see(self, kind: Kind, body: Object, *, gone: bool) -> Object | None:
        """Take in an object; what was known of it before.

        Of two objects that followed each other under one name, news may come in any order: that of
        the former changes nothing of the latter.
        """
        key = (body["metadata"]["namespace"], body["metadata"]["name"])
        known = self._objects.setdefault(kind, {})
        before = known.get(key)
        if before is not None and _precedes(body, before.body):
            return before.body
        known.pop(key, None)
        if not gone:
            known[key] = _Entry(body, self._clock())
        return before.body if before else None

    def keep_only(self, kind: Kind, live: Iterable[Object], since: float) -> None:
        """Drop what was last seen before `since` and is not in a list that was read after that.

        A watch that was cut off begins again with what is there then; what was deleted meanwhile
        it never tells.
        """
        there = {(body["metadata"]["namespace"], body["metadata"]["name"]) for body in live}
        known = self._objects.get(kind, {})
        for key in [key for key, entry in known.items() if entry.at < since and key not in there]:
            del known[key]

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object as it was last seen."""
        entry = self._objects.get(kind, {}).get((namespace, name))
        return entry.body if entry else None

    def all(self, kind: Kind, namespace: str | None = None) -> Iterator[Object]:
        """The objects of a kind, of one namespace if given."""
        for (owner, _), entry in list(self._objects.get(kind, {}).items()):
            if namespace is None or owner == namespace:
                yield entry.body

    def labelled(self, kind: Kind, namespace: str, label: str, value: str) -> list[Object]:
        """The objects of a kind with a label."""
        return [
            body
            for body in self.all(kind, namespace)
            if body["metadata"].get("labels", {}).get(label) == value
        ]

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
