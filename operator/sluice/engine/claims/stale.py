"""Find and release streams in a store whose EphemeralStream is gone, by their tags.

Call `tagged` first and list the resources afterwards. Then a resource that is made in between is
seen, and its stream is not taken for stale. Of the streams under a prefix, those count that the
marker has noted, or that are newer than the marker. Older streams belong to other owners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice.core.claims import claim as marks
from sluice.core.claims.claim import Claim, Claimant
from sluice.core.values.model import StreamName
from sluice.engine.claims import claims, ownership
from sluice.errors import ScopeNotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sluice.stores.base import Source, Store


class Tagged(NamedTuple):
    """A stream, or a prefix, that has the tags of an EphemeralStream.

    Attributes:
        scope: the scope.
        stream: the stream; for a prefix, its marker.
        prefix: the prefix; None for a single stream.
        resource: `namespace/name` of the EphemeralStream.
        uid: the EphemeralStream's uid.
        streams: the names of the stream, or of all claimed streams under the prefix.
    """

    scope: str
    stream: str
    prefix: str | None
    resource: str
    uid: str
    streams: tuple[str, ...]


def stale(store: Source, cluster: str, live: Collection[str]) -> list[Tagged]:
    """Return the tagged streams of this cluster whose EphemeralStream's uid is not in `live`."""
    return [found for found in tagged(store, cluster) if found.uid not in live]


def tagged(store: Source, cluster: str) -> list[Tagged]:
    """Return all streams and prefixes with tags of this cluster's EphemeralStreams.

    They are ordered by scope and name.
    """
    return [found for scope in store.list_scopes() for found in _tagged_in(scope, store, cluster)]


def _tagged_in(scope: str, store: Source, cluster: str) -> Iterator[Tagged]:
    try:
        names = store.list_streams(scope, marks.cluster_tag(cluster))
        names += ownership.markers(store, scope)
    except ScopeNotFound:
        return  # it was deleted meanwhile
    for name in sorted(names):
        found = _look(scope, name, store, cluster)
        if found is not None:
            yield found


def _look(scope: str, name: str, store: Source, cluster: str) -> Tagged | None:
    """Return what a stream's own tags say; None if they are none of this cluster's."""
    # The store's index of tags may be behind the stream's configuration.
    stream = store.describe(StreamName(scope=scope, stream=name))
    tags = () if stream is None else stream.config.tags
    resource = marks.resource_of(tags)
    if resource is None or marks.cluster_tag(cluster) not in tags:
        return None
    prefix = marks.prefix_of(tags)
    found = Tagged(scope, name, prefix, resource[0], resource[1], (name,))
    if prefix is None:
        return found
    if name != f"{marks.MARKER}{found.uid}":
        return None  # a copy of a marker's tags claims nothing
    claim = _claim(found, cluster, marks.marked_at(tags) or 0)
    return found._replace(streams=ownership.under(claim, store).claimed)


def drop(found: Tagged, store: Store, cluster: str) -> int:
    """Seal and delete a stale stream or prefix, as its EphemeralStream would have done.

    The tags are read again. A stream that has another owner by now is left alone.

    Returns:
        How many streams were deleted.
    """
    made = 0
    if found.prefix is not None:
        marker = store.describe(StreamName(scope=found.scope, stream=found.stream))
        made = 0 if marker is None else marks.marked_at(marker.config.tags) or 0
    return claims.release(_claim(found, cluster, made), store, delete=True)


def _claim(found: Tagged, cluster: str, created: int) -> Claim:
    """Return the claim that the tags stand for, with `created` as the time of the resource.

    The real time is not known; the marker's is safe, since a resource is older than its marker.
    """
    namespace, _, name = found.resource.partition("/")
    return Claim(
        claimant=Claimant(
            cluster=cluster, namespace=namespace, name=name, uid=found.uid, created=created
        ),
        scope=found.scope,
        stream=found.stream if found.prefix is None else None,
        prefix=found.prefix,
    )
