"""Whose a stream is: the marks that an EphemeralStream leaves in a store, and what they mean.

A stream that Sluice makes carries tags. Streams that an application makes under a prefix are left
as they are; a marker, an empty stream of ours that no reader's listing shows, remembers the claim:
its tags say whose it is, and attributes of its segment which streams were there before the claim,
and which ones were seen to be new. So nothing that decides about deleting is kept anywhere but
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
"""On a marker that has a list of what was there before the claim. It counts once that is whole."""

MARKER: Final = "_sluice-"
"""How the names of markers begin, followed by the uid of the resource that claims a prefix."""

SCOPE_MARKER: Final = "_sluice-scope"
"""The stream in a scope that Sluice made. Scopes have no tags."""

IN_DOUBT: Final = 300_000
"""Milliseconds after a resource's creation in which a stream that was there before the claim may be
older than the resource: it is left alone. Nobody compares the clocks of two segment stores or of
two API servers; where these differ by more, logins do not work either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """The resource that claims streams.

    Attributes:
        cluster: tells clusters apart that share a store.
        namespace, name, uid: of the resource.
        created: when it was made, in milliseconds since 1970, by the API server's clock.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    created: int

    def tags(self) -> tuple[str, ...]:
        """What marks a stream as this resource's, sorted."""
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
        """Whether tags are this resource's, and of this cluster.

        What a copy made is the copy's, even if it was made with all tags of its source.
        """
        tags = set(tags)
        ours = {_CLUSTER + cluster_mark(self.cluster), _UID + self.uid}
        return ours <= tags and not is_copy(tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an EphemeralStream claims: one stream, or all under a prefix.

    Attributes:
        claimant: who.
        scope: where.
        make_scope: whether the scope is made if there is none.
        stream: the one stream, or None.
        prefix: how the streams' names begin, or None.
        config: of the one stream, with the user's tags.
        existing: whether streams under the prefix count that are older than the resource.
        known: the creation time of the one stream as the status remembers it, in the store's
            milliseconds: it is ours even if somebody took our tags away.
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
        """The stream that remembers a claim to a prefix."""
        return StreamName(scope=self.scope, stream=f"{MARKER}{self.claimant.uid}")

    def marker_tags(self, now: int) -> tuple[str, ...]:
        """The marker's tags; `now` is the API server's time in milliseconds, before it is made."""
        lists = () if self.existing else (_LISTS,)
        return (*self.claimant.tags(), f"{_PREFIX}{self.prefix}", f"{_MARKED}{now}", *lists)

    @property
    def listed(self) -> UUID:
        """The attribute of the marker's segment that says that its list is whole."""
        return uuid5(UUID(self.claimant.uid), "/listed")

    def older(self, stream: str) -> UUID:
        """The attribute that says when a stream was made that was there before the claim."""
        return uuid5(UUID(self.claimant.uid), f"/older/{stream}")

    def mark(self, stream: str) -> UUID:
        """The attribute of the marker's segment that says that a stream is claimed."""
        return uuid5(UUID(self.claimant.uid), stream)


class Ownership(StrEnum):
    """Whose one stream is."""

    ABSENT = "Absent"
    OURS = "Ours"
    UNOWNED = "Unowned"
    """It is there, and no resource of Sluice has it."""
    OTHERS = "Others"
    """Another resource, a copy or another cluster's Sluice has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What a store says about a claim.

    Attributes:
        scope: whether the scope exists.
        marked: whether the claim to a prefix is remembered there.
        ownership: of the one stream; with a prefix, OURS once it is marked.
        streams: names of the streams that are ours, sorted.
        left_alone: streams under the prefix that are not ours.
        holder: whose the one stream is otherwise, for people.
        holder_uid: the uid of the EphemeralStream that has it, of this cluster.
        holder_resource: the `namespace/name` of that one.
        created: when the one stream was made, in the store's milliseconds.
        drift: what of the one stream is not as the claim has it, for people.
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
        """Whether nothing of ours is left."""
        return not self.streams and not self.marked


def cluster_mark(cluster: str) -> str:
    """What tags say of a cluster: 16 hexadecimal digits, whatever its name looks like."""
    return hashlib.sha256(cluster.encode()).hexdigest()[:16]


def cluster_tag(cluster: str) -> str:
    """The tag by which a store lists what a cluster's resources have there."""
    return _CLUSTER + cluster_mark(cluster)


def scope_tags(cluster: str) -> tuple[str, ...]:
    """The tags of the stream that marks a scope as made by this cluster's Sluice."""
    return (TAG_MANAGED, cluster_tag(cluster))


def resource_of(tags: Iterable[str]) -> tuple[str, str] | None:
    """The `namespace/name` and uid of the EphemeralStream that tags name; None of a copy's."""
    tags = tuple(tags)
    found = {tag.partition("=")[0] + "=": tag.partition("=")[2] for tag in tags}
    if _UID not in found or is_copy(tags):
        return None
    return found.get(_OWNER, "?/?"), found[_UID]


def is_ephemeral(tags: Iterable[str]) -> bool:
    """Whether an EphemeralStream, of whatever cluster, has the stream with these tags.

    Those that it has under a prefix are not tagged: see `engine.claims.ownership.claimed_prefixes`.
    """
    return resource_of(tags) is not None


def prefix_of(tags: Iterable[str]) -> str | None:
    """The prefix that a marker's tags claim."""
    return next((tag.removeprefix(_PREFIX) for tag in tags if tag.startswith(_PREFIX)), None)


def marked_at(tags: Iterable[str]) -> int | None:
    """The API server's time, in milliseconds, when the marker with these tags was made."""
    told = next((tag.removeprefix(_MARKED) for tag in tags if tag.startswith(_MARKED)), "")
    return int(told) if told.isdigit() else None


def has_list(tags: Iterable[str]) -> bool:
    """Whether a marker with these tags has a list of what was there before the claim."""
    return _LISTS in tags


def came_later(created: int | None, older: int | None) -> bool:
    """Whether a stream was certainly made after the list of what was there before the claim.

    Args:
        created: when the store made it, in the store's milliseconds; None where nobody knows.
        older: when one of its name was made that is in the list, 0 where nobody knew; None where
            none is.
    """
    return older is None or (created is not None and older not in {0, created})


def is_owned(tags: Iterable[str]) -> bool:
    """Whether any resource of any Sluice has a stream with these tags."""
    return any(tag.startswith(OURS) for tag in tags)


def holder(tags: Iterable[str], cluster: str) -> tuple[str, str | None]:
    """Who has a stream, for people, and the uid if it is an EphemeralStream of this cluster."""
    tags = tuple(tags)
    resource = resource_of(tags)
    if resource is None:
        return "another resource of Sluice, such as a StreamCopy", None
    if cluster_tag(cluster) not in tags:
        return f"EphemeralStream {resource[0]} of another cluster", None
    return f"EphemeralStream {resource[0]}", resource[1]


def is_new(created: int | None, claim: Claim, *, marker_tags: Iterable[str], marked: int) -> bool:
    """Whether a stream under a prefix was certainly made after the resource that claims it.

    Args:
        created: when the store made it, in the store's milliseconds; None where nobody knows.
        claim: the claim.
        marker_tags: of the claim's marker, which hold the API server's time when it was made.
        marked: when the store made the marker, in the store's milliseconds. The difference of the
            two is how far the store's clock is ahead, and at most a call's length too much.
    """
    told = marked_at(marker_tags)
    if created is None or told is None:
        return False
    ahead = marked - told
    return created >= claim.claimant.created + ahead + IN_DOUBT


def drift(wanted: StreamConfig, found: StreamConfig) -> tuple[str, ...]:
    """What of a stream's configuration is not as wanted, for people; tags of Sluice aside."""
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
    """A policy in a few words."""
    return "/".join(str(value) for value in policy.model_dump(mode="json").values())
