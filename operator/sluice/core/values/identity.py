"""Names and marks in a store that follow from a copy's identity.

Everything that a copy leaves in a store is named from its copy id. So a driver that knows only the
resource finds what an earlier driver left, and two drivers of one copy use the same segments.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KEPT: Final = 4096
"""Number of names and marks that are remembered: each look asks for the same ones."""

OURS = "sluice.dev/"
"""Prefix of every tag of Sluice."""

TAG_MANAGED = OURS + "managed"
"""Tag of every stream that Sluice made, or adopted for an EphemeralStream."""

TAG_COPY = OURS + "copy="
"""Prefix of the tag of a copy's target; the copy id follows."""

TAG_COMPLETE = OURS + "complete="
"""Prefix of the tag of a target that is wholly published; the copy's digest follows."""

TAG_FOLLOWING = OURS + "following="
"""Prefix of the tag of a target that follows its source; the copy id follows.

All planned bytes are readable in it. The copy appends what comes in the source, so the target takes
no appends of others. The tag `complete=` takes its place at the copy's end.
"""

TAG_QUERY = OURS + "query="
"""Prefix of the tag of a stream that takes a query's results; the query's id follows."""

TAG_APPENDING = OURS + "appending="
"""Prefix of the tag of a stream whose scaling policy an append has changed.

The copy id and the stream's own policy follow. The tag stays as long as the policy is another one,
so any later append or clean-up can restore it.
"""

ABORTED = -1
"""Value of an attribute of a segment, instead of a length: the segment's copy was given up.

As publish attribute it keeps the copy from ever publishing into a target segment. As verified
attribute it keeps a staging segment, which lacks bytes that its source has lost, from publication.
"""


_INDEX_BITS = 20
"""Bits of the index of a segment in a catch-up."""


def copy_id(*, cluster: str, namespace: str, name: str, identity: Mapping[str, Any]) -> str:
    """Return the copy's id: 32 hexadecimal digits.

    Args:
        cluster: tells clusters apart that share a store.
        namespace: the resource's namespace.
        name: the resource's name.
        identity: the immutable part of the spec; equal content in any order gives equal ids.
    """
    text = json.dumps([cluster, namespace, name, identity], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def stream_copy_id(scope_id: str, stream: str) -> str:
    """Return the copy id of one stream of a scope's copy: 32 hexadecimal digits.

    Args:
        scope_id: the identity of the scope's copy.
        stream: the stream's name in the source's scope.
    """
    text = json.dumps([scope_id, stream], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@lru_cache(maxsize=_KEPT)
def _uuid(copy: str, name: str) -> UUID:
    return uuid5(UUID(copy), name)


@lru_cache(maxsize=_KEPT)
def _key(copy: str, *parts: object) -> str:
    return hashlib.sha256("/".join((copy, *map(str, parts))).encode()).hexdigest()[:32]


def staging_key(copy: str, segment: int, part: int, salt: str = "") -> str:
    """Return the key of a staging segment: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        segment: the segment's index in the plan, from 0, which is its place in the target.
        part: the part's number within the segment, from 0.
        salt: tells attempts apart, where a segment is staged more than once; see `attempt_salt`.
    """
    return _key(copy, "staging", segment, part, *([salt] if salt else []))


def attempt_salt(attempt: int) -> str:
    """Return the salt of staging segments, by how often their segment was begun anew."""
    return f"attempt {attempt}" if attempt else ""


def journal_key(copy: str, generation: int = 0) -> str:
    """Return the key of the copy's journal segment: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        generation: which key, from 0. A store may refuse a deleted name for a while; then the next
            key is taken.
    """
    return _key(copy, "journal", generation)


def scope_log_key(scope_id: str, generation: int = 0) -> str:
    """Return the key of the log of a scope's copy: 32 hexadecimal digits.

    Args:
        scope_id: the identity of the scope's copy.
        generation: see `journal_key`.
    """
    return _key(scope_id, "scope", generation)


def ledger_key(query: str, generation: int = 0) -> str:
    """Return the key of a query's ledger: 32 hexadecimal digits.

    Args:
        query: the query's id.
        generation: see `journal_key`.
    """
    return _key(query, "ledger", generation)


def results_writer(query: str, version: int) -> UUID:
    """Return the writer id that fences a query's appends to the segments of its sinks.

    Event numbers of this writer are numbers of batches, from 1.

    Args:
        query: the query's id.
        version: the number of the query's version. Each one counts its batches anew.
    """
    return _uuid(query, f"results/{version}")


def receipt_key(copy: str, number: int = 0) -> str:
    """Return the key of the receipt, which says that an append is done: 32 hexadecimal digits."""
    return _key(copy, "receipt", number)


def catch_up_id(copy: str, number: int) -> str:
    """Return the identity of what a copy that follows stages when it is far behind.

    Journal, staging segments and attributes of such a catch-up are named from it, as those of a
    copy are from the copy id: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        number: how many catch-ups of the copy came before.
    """
    return _key(copy, "catch-up", number)


def catch_up_attribute(copy: str) -> UUID:
    """Return the attribute of a target segment for its place in the last catch-up of the copy.

    Its value is that of `catch_up_place`. By it, staged bytes are found without a journal.

    Args:
        copy: the copy id.
    """
    return _uuid(copy, "catch-up")


def catch_up_place(number: int, index: int) -> int:
    """Return a segment's place as one number: the catch-up's number, and the index in it."""
    return number << _INDEX_BITS | index


def catch_up_of(place: int) -> tuple[int, int]:
    """Return a catch-up's number, and the segment's index in it, from a place."""
    return place >> _INDEX_BITS, place & ((1 << _INDEX_BITS) - 1)


def reading_key(copy: str, manifest: str) -> str:
    """Return the owner of the lease with which a copy protects a run: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        manifest: the SHA-256 of the run's manifest.
    """
    return _key(copy, "reading", manifest)


def event_key(copy: str, start: int) -> str:
    """Return the key of the staging segment of a single event: 32 hexadecimal digits.

    Args:
        copy: the copy id.
        start: the source offset at which the event begins.
    """
    return _key(copy, "event", start)


def turns_key() -> str:
    """Return the key of the log that says which copy may scale a stream: 32 hexadecimal digits."""
    return _key("", "turns")


def writer_id(copy: str, staging: str) -> UUID:
    """Return the writer id that fences appends to a staging segment.

    Args:
        copy: the copy id.
        staging: the segment's key.
    """
    return _uuid(copy, staging)


def position_attribute(copy: str, segment: int) -> UUID:
    """Return the attribute of a target segment that says how far its source is followed.

    It is a writer id: the store sets it with each append of this writer, and lets a merge set it.
    Its values are those of `core.follow.position`.

    Args:
        copy: the copy id.
        segment: the source's segment.
    """
    return writer_id(copy, f"follow/{segment}")


def loss_attributes(copy: str, number: int) -> tuple[UUID, UUID]:
    """Return the two attributes of a target segment for bytes that are left out while it follows.

    They hold the source offsets at which the lost bytes begin and end.

    Args:
        copy: the copy id.
        number: how many losses of this segment came before.
    """
    key = f"loss/{number}"
    return _uuid(copy, f"{key}/start"), _uuid(copy, f"{key}/end")


def publish_attribute(copy: str) -> UUID:
    """Return the attribute of a target segment for the bytes published into it, or ABORTED."""
    return _uuid(copy, "publish")


def origin_attributes(copy: str) -> tuple[UUID, UUID, UUID]:
    """Return the three attributes of a target segment that say what was copied to it.

    They hold the index of its stream among the sources, the source segment's id, and the first
    offset copied. With the publish attribute they map positions of a source to those of the target.
    """
    return _uuid(copy, "source"), _uuid(copy, "origin"), _uuid(copy, "start")


def events_attribute(copy: str) -> UUID:
    """Return the attribute of a target segment for the number of events published into it."""
    return _uuid(copy, "events")


def gap_attributes(copy: str) -> tuple[UUID, UUID]:
    """Return the two attributes of a target segment for bytes that its source had lost.

    They hold how many bytes are missing before its first byte, and how often the segment was begun
    anew.
    """
    return _uuid(copy, "lost"), _uuid(copy, "attempt")


def stitch_attribute(copy: str) -> UUID:
    """Return the attribute of a first part for its length after the last part merged into it."""
    return _uuid(copy, "stitch")


def verified_attribute(copy: str) -> UUID:
    """Return the attribute of a whole staging segment for the length at which it was verified.

    Its value is ABORTED if the staging segment was given up, as the source has lost bytes that it
    lacks.
    """
    return _uuid(copy, "verified")


def group_identity(copy: str, scope: str, group: str, number: int) -> UUID:
    """Return the identity in the store of a reader group that this copy makes.

    The upper half follows from the copy and the group's name, so the copy recognises its group.
    The lower half is `number`, below 2^64. Each call needs a new number: a store (0.13.0) does not
    make a group under the identity of a deleted group.
    """
    return UUID(int=_uuid(copy, f"group/{scope}/{group}").int >> 64 << 64 | number)


def same_maker(one: UUID, other: UUID) -> bool:
    """Tell whether two identities of reader groups were made by one copy for one name."""
    return one.int >> 64 == other.int >> 64


def owner_tags(copy: str) -> tuple[str, str]:
    """Return the tags of a target from its creation on."""
    return (TAG_MANAGED, TAG_COPY + copy)


def without_ours(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags that are not Sluice's."""
    return tuple(tag for tag in tags if not tag.startswith(OURS))


def is_copy(tags: Iterable[str]) -> bool:
    """Tell whether a stream with these tags was made, or is being made, by any copy."""
    return any(tag.startswith(TAG_COPY) for tag in tags)


def is_ours(tags: tuple[str, ...], copy: str) -> bool:
    """Tell whether a stream with these tags was made by this copy."""
    return TAG_COPY + copy in tags


def completed(tags: tuple[str, ...], copy: str) -> str | None:
    """Return the digest with which this copy completed the stream with these tags, or None."""
    if not is_ours(tags, copy):
        return None
    return next(
        (tag.removeprefix(TAG_COMPLETE) for tag in tags if tag.startswith(TAG_COMPLETE)), None
    )


def is_unfinished(tags: tuple[str, ...]) -> bool:
    """Tell whether a stream with these tags is a target that some copy still writes to."""
    return is_copy(tags) and not any(tag.startswith(TAG_COMPLETE) for tag in tags)


def is_live(tags: tuple[str, ...], copy: str) -> bool:
    """Tell whether a stream with these tags is this copy's target, and follows its source."""
    return is_ours(tags, copy) and TAG_FOLLOWING + copy in tags and completed(tags, copy) is None


def is_followed(tags: tuple[str, ...]) -> bool:
    """Tell whether a stream with these tags is the target of any copy that follows its source."""
    return is_unfinished(tags) and any(tag.startswith(TAG_FOLLOWING) for tag in tags)


def is_unreadable(tags: tuple[str, ...]) -> bool:
    """Tell whether a stream with these tags lacks bytes that a copy has planned for it."""
    return is_unfinished(tags) and not is_followed(tags)
