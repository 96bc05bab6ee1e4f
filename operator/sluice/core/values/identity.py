"""Names that follow from a copy's identity.

Everything a copy leaves in a store is named from its copy id, so a driver that knows nothing but
the resource finds what an earlier one left, and two drivers of one copy meet at the same segments.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OURS = "sluice.dev/"
"""How every tag of Sluice begins."""

TAG_MANAGED = OURS + "managed"
"""On every stream that Sluice made."""

TAG_COPY = OURS + "copy="
"""Followed by the copy id, on the copy's target."""

TAG_COMPLETE = OURS + "complete="
"""Followed by the copy's digest, on a target that is published whole."""

TAG_APPENDING = OURS + "appending="
"""Followed by the copy id and the scaling policy that a stream has when nobody appends to it.

It stands on the stream as long as the policy is another one, so whoever finds it can set it right.
"""

ABORTED = -1
"""Value of the publish attribute that shuts a target segment to its copy for good."""


def copy_id(*, cluster: str, namespace: str, name: str, identity: Mapping[str, Any]) -> str:
    """The copy's id: 32 hexadecimal digits.

    Args:
        cluster: tells clusters apart that share a store.
        namespace: the resource's namespace.
        name: the resource's name.
        identity: the immutable part of the spec; equal content in any order gives equal ids.
    """
    text = json.dumps([cluster, namespace, name, identity], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stream_copy_id(scope_id: str, stream: str) -> str:
    """The copy id of one stream of a scope's copy.

    Args:
        scope_id: the identity of the whole.
        stream: the stream's name in the source's scope.
    """
    text = json.dumps([scope_id, stream], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _key(copy: str, *parts: object) -> str:
    return hashlib.sha256("/".join((copy, *map(str, parts))).encode()).hexdigest()[:32]


def staging_key(copy: str, segment: int, part: int, salt: str = "") -> str:
    """The key of a staging segment: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        segment: the segment's place in the plan, from 0, which is its place in the target.
        part: the part's number within the segment, from 0.
        salt: tells attempts apart, where a segment is staged more than once.
    """
    return _key(copy, "staging", segment, part, *([salt] if salt else []))


def attempt_salt(attempt: int) -> str:
    """The salt of the staging segments of a segment that was begun anew so often."""
    return f"attempt {attempt}" if attempt else ""


def journal_key(copy: str, generation: int = 0) -> str:
    """The key of the copy's journal segment: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        generation: the next one is taken where a store does not give a deleted name back at once.
    """
    return _key(copy, "journal", generation)


def scope_log_key(scope_id: str, generation: int = 0) -> str:
    """The key of the log of a scope's copy: 32 hexadecimal digits.

    Args:
        scope_id: the identity of the whole copy.
        generation: see `journal_key`.
    """
    return _key(scope_id, "scope", generation)


def receipt_key(copy: str, number: int = 0) -> str:
    """The key of the segment that says that an append is done: 32 hexadecimal digits."""
    return _key(copy, "receipt", number)


def reading_key(copy: str, manifest: str) -> str:
    """The owner of the lease by which a copy keeps a run that it reads: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        manifest: the SHA-256 of the run's manifest.
    """
    return _key(copy, "reading", manifest)


def turns_key() -> str:
    """The key of the log that says which copy scales a stream: 32 hexadecimal digits."""
    return _key("", "turns")


def writer_id(copy: str, staging: str) -> UUID:
    """The writer id that fences appends to one staging segment, by the segment's key."""
    return uuid5(UUID(copy), staging)


def publish_attribute(copy: str) -> UUID:
    """Attribute of a target segment: the bytes this copy published into it, or ABORTED."""
    return uuid5(UUID(copy), "publish")


def origin_attributes(copy: str) -> tuple[UUID, UUID, UUID]:
    """Attributes of a target segment that say what was copied to it.

    They are the place of its stream among the sources, the source segment's id, and the first
    offset copied. With the publish attribute they tell which position of a source is which of the
    target.
    """
    return uuid5(UUID(copy), "source"), uuid5(UUID(copy), "origin"), uuid5(UUID(copy), "start")


def events_attribute(copy: str) -> UUID:
    """Attribute of a target segment: the events this copy published into it."""
    return uuid5(UUID(copy), "events")


def gap_attributes(copy: str) -> tuple[UUID, UUID]:
    """Attributes of a target segment before whose first byte the source had lost bytes.

    They are how many bytes, and how often the segment was begun anew.
    """
    return uuid5(UUID(copy), "lost"), uuid5(UUID(copy), "attempt")


def stitch_attribute(copy: str) -> UUID:
    """Attribute of a segment's first part: its length after the last part merged into it."""
    return uuid5(UUID(copy), "stitch")


def verified_attribute(copy: str) -> UUID:
    """Attribute of a whole staging segment: the length at which it was verified.

    ABORTED where it was given up, since its source has lost bytes that it lacks.
    """
    return uuid5(UUID(copy), "verified")


def group_identity(copy: str, scope: str, group: str, number: int) -> UUID:
    """What a store is to know a reader group by that this copy makes.

    Its upper half follows from the copy and the group's name, by which the copy knows it again. The
    lower half is the number, below 2^64, which has to be another one each time: a store (0.13.0)
    does not make a group again under the identity of one that was deleted.
    """
    return UUID(int=uuid5(UUID(copy), f"group/{scope}/{group}").int >> 64 << 64 | number)


def same_maker(one: UUID, other: UUID) -> bool:
    """Whether two identities of reader groups were made by one copy for one name."""
    return one.int >> 64 == other.int >> 64


def owner_tags(copy: str) -> tuple[str, str]:
    """The tags of a target from its creation on."""
    return (TAG_MANAGED, TAG_COPY + copy)


def without_ours(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags that are not Sluice's."""
    return tuple(tag for tag in tags if not tag.startswith(OURS))


def is_copy(tags: Iterable[str]) -> bool:
    """Whether some copy made a stream with these tags, or is making it."""
    return any(tag.startswith(TAG_COPY) for tag in tags)


def is_ours(tags: tuple[str, ...], copy: str) -> bool:
    """Whether a stream with these tags was made by this copy."""
    return TAG_COPY + copy in tags


def completed(tags: tuple[str, ...], copy: str) -> str | None:
    """The digest under which this copy finished the stream with these tags; None if it has not."""
    if not is_ours(tags, copy):
        return None
    return next(
        (tag.removeprefix(TAG_COMPLETE) for tag in tags if tag.startswith(TAG_COMPLETE)), None
    )


def is_unfinished(tags: tuple[str, ...]) -> bool:
    """Whether a stream with these tags is a target that some copy is still making."""
    return is_copy(tags) and not any(tag.startswith(TAG_COMPLETE) for tag in tags)
