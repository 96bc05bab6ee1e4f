"""Streams in a store whose EphemeralStream is gone: found by the tags, and released.

Ask for `tagged` first and list the resources afterwards: a resource that comes in between is then
seen, and its stream is not taken for stale. Streams under a prefix count as far as the marker has
them noted, or as they are newer than the marker; older ones belong to somebody else.
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

    from sluice.stores.base import Store


class Tagged(NamedTuple):
    """A stream, or a prefix, that has the tags of an EphemeralStream.

    Attributes:
        scope: where it is.
        stream: the stream; of a prefix, its marker.
        prefix: the prefix, if it is one.
        resource: `namespace/name` of the EphemeralStream.
        uid: its uid.
        streams: the streams that it is about.
    """

    scope: str
    stream: str
    prefix: str | None
    resource: str
    uid: str
    streams: tuple[str, ...]


def stale(store: Store, cluster: str, live: Collection[str]) -> list[Tagged]:
    """What has the tags of this cluster's EphemeralStreams, but of none of the uids in `live`."""
    return [found for found in tagged(store, cluster) if found.uid not in live]


def tagged(store: Store, cluster: str) -> list[Tagged]:
    """What has the tags of this cluster's EphemeralStreams, by scope and name."""
    return [found for scope in store.list_scopes() for found in _tagged_in(scope, store, cluster)]


def _tagged_in(scope: str, store: Store, cluster: str) -> Iterator[Tagged]:
    try:
        names = store.list_streams(scope, marks.cluster_tag(cluster))
        names += ownership.markers(store, scope)
    except ScopeNotFound:
        return  # it was deleted meanwhile
    for name in sorted(names):
        found = _look(scope, name, store, cluster)
        if found is not None:
            yield found


def _look(scope: str, name: str, store: Store, cluster: str) -> Tagged | None:
    """What the stream itself says: an index may be behind."""
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
    """Seal and delete one of them, as its EphemeralStream would have done.

    Its tags are looked at anew: what has another owner by now is left alone.

    Returns:
        How many streams were deleted.
    """
    made = 0
    if found.prefix is not None:
        marker = store.describe(StreamName(scope=found.scope, stream=found.stream))
        made = 0 if marker is None else marks.marked_at(marker.config.tags) or 0
    return claims.release(_claim(found, cluster, made), store, delete=True)


def _claim(found: Tagged, cluster: str, created: int) -> Claim:
    """The claim that the tags stand for. The resource is older than its marker, at least."""
    namespace, _, name = found.resource.partition("/")
    return Claim(
        claimant=Claimant(
            cluster=cluster, namespace=namespace, name=name, uid=found.uid, created=created
        ),
        scope=found.scope,
        stream=found.stream if found.prefix is None else None,
        prefix=found.prefix,
    )
