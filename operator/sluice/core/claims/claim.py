"""Ownership of streams: the marks that an EphemeralStream leaves in a store, and their meaning.

A stream that Sluice makes carries tags. Streams that an application makes under a prefix stay as
they are. Instead, a marker remembers the claim: an empty, internal stream that listings for readers
do not show. Its tags name the resource. Attributes of its segment say which streams existed before
the claim, and which streams were seen to be new. So everything that decides about deleting lies
beside the streams.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from sluice.core.values.identity import OURS, TAG_MANAGED, is_copy, without_ours
from sluice.core.values.model import StreamConfig, StreamName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.values.model import Frozen

_CLUSTER, _UID, _OWNER = f"{OURS}cluster=", f"{OURS}ephemeral=", f"{OURS}resource="
_PREFIX, _MARKED = f"{OURS}prefix=", f"{OURS}marked="
_LISTS: Final = f"{OURS}lists"
"""Tag of a marker that lists the streams from before the claim. The claim counts once the list is
whole."""

MARKER: Final = "_sluice-"
"""Prefix of the names of markers; the uid of the resource that claims a prefix follows."""

SCOPE_MARKER: Final = "_sluice-scope"
"""The stream that marks a scope as made by Sluice. Scopes have no tags."""

IN_DOUBT: Final = 300_000
"""Tolerance for clocks in milliseconds. A stream from before the claim counts as older than the
resource unless it was made this long after it. Sluice cannot compare the clocks of two segment
stores or of two API servers; if these differ by more, logins do not work either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """The resource that claims streams.

    Attributes:
        cluster: tells clusters apart that share a store.
        namespace, name, uid: of the resource.
        created: the resource's creation time, in milliseconds since 1970, by the API server's
            clock.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    created: int

    def tags(self) -> tuple[str, ...]:
        """Return the tags that mark a stream as this resource's, sorted."""
        return tuple(
            sorted(
                (
                    TAG_MANAGED,
                    _CLUSTER + cluster_mark(self.cluster),
                    _UID + self.uid,
                    f"{_OWNER}{self.namespace}/{self.name}",
                )
            )
        )

    def owns(self, tags: Iterable[str]) -> bool:
        """Tell whether a stream with these tags is this resource's, of this cluster.

        A stream that a copy made is the copy's, even if it has all tags of its source.
        """
        tags = set(tags)
        ours = {_CLUSTER + cluster_mark(self.cluster), _UID + self.uid}
        return ours <= tags and not is_copy(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The claim of an EphemeralStream: to a single stream, or to all streams under a prefix.

    Attributes:
        claimant: the resource.
        scope: the scope of the streams.
        make_scope: whether to make the scope if it does not exist.
        stream: the single stream's name; None for a prefix.
        prefix: the prefix of the streams' names; None for a single stream.
        config: the single stream's configuration, with the user's tags.
        existing: whether the claim includes streams under the prefix that are older than the
            resource.
        known: the single stream's creation time as the status remembers it, in the store's
            milliseconds. By it the stream is known to be the resource's even if a user has removed
            the tags.
    """

    claimant: Claimant
    scope: str
    make_scope: bool = False
    stream: str | None = None
    prefix: str | None = None
    config: StreamConfig = field(default_factory=StreamConfig)
    existing: bool = False
    known: int | None = None

    @property
    def marker(self) -> StreamName:
        """The marker of a claim to a prefix."""
        return StreamName(scope=self.scope, stream=f"{MARKER}{self.claimant.uid}")

    def marker_tags(self, now: int) -> tuple[str, ...]:
        """Return the marker's tags.

        Args:
            now: the API server's time in milliseconds, taken before the marker is made.
        """
        lists = () if self.existing else (_LISTS,)
        return (*self.claimant.tags(), f"{_PREFIX}{self.prefix}", f"{_MARKED}{now}", *lists)

    @property
    def listed(self) -> UUID:
        """The attribute of the marker's segment that says that its list is whole."""
        return uuid5(UUID(self.claimant.uid), "/listed")

    def older(self, stream: str) -> UUID:
        """Return the attribute of the marker's segment for a stream from before the claim.

        Its value is the stream's creation time.
        """
        return uuid5(UUID(self.claimant.uid), f"/older/{stream}")

    def mark(self, stream: str) -> UUID:
        """Return the attribute of the marker's segment that says that a stream is claimed."""
        return uuid5(UUID(self.claimant.uid), stream)


class Ownership(StrEnum):
    """The owner of a single stream, as seen by a resource."""

    ABSENT = "Absent"
    OURS = "Ours"
    UNOWNED = "Unowned"
    """It exists, and no resource of Sluice owns it."""
    OTHERS = "Others"
    """Another resource, a copy or the Sluice of another cluster owns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The state of a claim in its store.

    Attributes:
        scope: whether the scope exists.
        marked: whether the marker of a prefix exists.
        ownership: the owner of the single stream; with a prefix, OURS once it is marked.
        streams: names of the streams that are the resource's, sorted.
        left_alone: number of streams under the prefix that are not the resource's.
        holder: the other owner of the single stream, for people.
        holder_uid: the uid of the EphemeralStream of this cluster that owns the single stream.
        holder_resource: the `namespace/name` of that EphemeralStream.
        created: the single stream's creation time, in the store's milliseconds.
        drift: how the single stream's configuration differs from the claim, for people.
    """

    scope: bool
    marked: bool = False
    ownership: Ownership = Ownership.ABSENT
    streams: tuple[str, ...] = ()
    left_alone: int = 0
    holder: str = ""
    holder_uid: str | None = None
    holder_resource: str = ""
    created: int | None = None
    drift: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the store has neither streams of the resource nor its marker."""
        return not self.streams and not self.marked


def cluster_mark(cluster: str) -> str:
    """Return 16 hexadecimal digits that stand for a cluster's name in tags."""
    return hashlib.sha256(cluster.encode()).hexdigest()[:16]


def cluster_tag(cluster: str) -> str:
    """Return the tag that all streams of a cluster's resources have, to list them by."""
    return _CLUSTER + cluster_mark(cluster)


def scope_tags(cluster: str) -> tuple[str, ...]:
    """Return the tags of the stream that marks a scope as made by this cluster's Sluice."""
    return (TAG_MANAGED, cluster_tag(cluster))


def resource_of(tags: Iterable[str]) -> tuple[str, str] | None:
    """Return `namespace/name` and uid of the EphemeralStream that tags name.

    Returns:
        Both; None if the tags name no EphemeralStream, or are those of a copy's target.
    """
    tags = tuple(tags)
    found = {tag.partition("=")[0] + "=": tag.partition("=")[2] for tag in tags}
    if _UID not in found or is_copy(tags):
        return None
    return found.get(_OWNER, "?/?"), found[_UID]


def is_ephemeral(tags: Iterable[str]) -> bool:
    """Tell whether an EphemeralStream of any cluster owns the stream with these tags.

    Streams that it owns under a prefix have no tags: see
    `engine.claims.ownership.claimed_prefixes`.
    """
    return resource_of(tags) is not None


def prefix_of(tags: Iterable[str]) -> str | None:
    """Return the prefix that a marker's tags claim; None if they are not a marker's."""
    return next((tag.removeprefix(_PREFIX) for tag in tags if tag.startswith(_PREFIX)), None)


def marked_at(tags: Iterable[str]) -> int | None:
    """Return the API server's time in milliseconds when the marker with these tags was made."""
    told = next((tag.removeprefix(_MARKED) for tag in tags if tag.startswith(_MARKED)), "")
    return int(told) if told.isdigit() else None


def has_list(tags: Iterable[str]) -> bool:
    """Tell whether a marker with these tags lists the streams from before the claim."""
    return _LISTS in tags


def came_later(created: int | None, older: int | None) -> bool:
    """Tell whether a stream was certainly made after the list of streams from before the claim.

    Args:
        created: the stream's creation time, in the store's milliseconds; None if unknown.
        older: the creation time of the stream of this name in the list, 0 if it was unknown; None
            if the list has no stream of this name.
    """
    return older is None or (created is not None and older not in {0, created})


def is_owned(tags: Iterable[str]) -> bool:
    """Tell whether a stream with these tags belongs to a resource of any Sluice."""
    return any(tag.startswith(OURS) for tag in tags)


def holder(tags: Iterable[str], cluster: str) -> tuple[str, str | None]:
    """Return the owner that a stream's tags name.

    Args:
        tags: the stream's tags.
        cluster: this cluster's name.

    Returns:
        The owner, for people, and its uid if it is an EphemeralStream of this cluster.
    """
    tags = tuple(tags)
    resource = resource_of(tags)
    if resource is None:
        return "another resource of Sluice, such as a StreamCopy", None
    if cluster_tag(cluster) not in tags:
        return f"EphemeralStream {resource[0]} of another cluster", None
    return f"EphemeralStream {resource[0]}", resource[1]


def is_new(created: int | None, claim: Claim, *, marker_tags: Iterable[str], marked: int) -> bool:
    """Tell whether a stream under a prefix was certainly made after the resource that claims it.

    Args:
        created: the stream's creation time, in the store's milliseconds; None if unknown.
        claim: the claim.
        marker_tags: the tags of the claim's marker. They hold the API server's time just before the
            marker was made.
        marked: the marker's creation time, in the store's milliseconds. The difference of the two
            times is how far the store's clock is ahead, plus at most the length of one call.
    """
    told = marked_at(marker_tags)
    if created is None or told is None:
        return False
    ahead = marked - told
    return created >= claim.claimant.created + ahead + IN_DOUBT


def drift(wanted: StreamConfig, found: StreamConfig) -> tuple[str, ...]:
    """Return, for people, how a stream's configuration differs from the wanted one.

    Tags of Sluice are ignored.
    """
    differences = []
    if found.scaling != wanted.scaling:
        differences.append(f"scaling is {_short(found.scaling)}, not {_short(wanted.scaling)}")
    if found.retention != wanted.retention:
        differences.append(
            f"retention is {_short(found.retention)}, not {_short(wanted.retention)}"
        )
    if sorted(without_ours(found.tags)) != sorted(without_ours(wanted.tags)):
        differences.append(f"tags are {sorted(without_ours(found.tags))}")
    return tuple(differences)


def _short(policy: Frozen) -> str:
    """Return a policy in a few words."""
    return "/".join(str(value) for value in policy.model_dump(mode="json").values())
