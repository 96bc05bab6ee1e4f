"""What an EphemeralStream does in a store: looks, makes, adopts, configures and lets go.

Nothing is remembered between two calls but what the store holds, so each may be repeated at any
point, by this process or another. Whose a stream is, is looked at in the same call and directly
before it is touched. Some gaps a store leaves open, since it changes and deletes streams by name:

- A stream that is deleted and made again by somebody else between our look and our call, a few
  milliseconds, is taken for ours.
- Two who change a stream's tags at once: the later wins. A store has no compare-and-set for them.
- A change of tags is a change of the whole configuration. A stream with a fixed number of segments
  that has another number of them, since somebody scaled it by hand, would be scaled by that to
  uniform key ranges. Adopting and retaining therefore write down the number that is there: the
  segments stay, and the configured number is the true one from then on. `configure` gives what the
  resource asks for, which may scale.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from sluice.core.claims import claim as marks
from sluice.core.claims.claim import Holding, Ownership
from sluice.core.values.identity import without_ours
from sluice.core.values.model import ScaleType, StreamConfig, StreamName
from sluice.engine.access.stream_age import made_at
from sluice.engine.claims import ownership, scope_lifecycle
from sluice.errors import (
    NoSuchSegment,
    ScopeNotFound,
    SegmentSealed,
    StoreBusy,
    StoreRejected,
    StreamExists,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.claims.claim import Claim
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream

RELEASE_SECONDS: Final = 60.0
"""For which streams are deleted in one call; thousands take longer, and the next call goes on."""

_ROUNDS: Final = 4
"""How often it is looked for streams that come while those under a prefix are deleted."""

_UNMARKED: Final = "the tags of Sluice are missing"
_SEALED: Final = "it is sealed"


def look(claim: Claim, store: Store) -> Holding:
    """What a store says about a claim.

    Streams that are new under a prefix are noted in its marker, so that they stay known as ours
    when nobody can tell any more when they were made. Nothing else is changed.
    """
    return _look_at_one(claim, store) if claim.prefix is None else _look_under(claim, store)


def _look_at_one(claim: Claim, store: Store) -> Holding:
    stream, owner, created = ownership.one(claim, store)
    if stream is None:
        return Holding(scope=store.scope_exists(claim.scope))
    found = Holding(scope=True, ownership=owner, created=created)
    match owner:
        case Ownership.OURS:
            drift = list(marks.drift(claim.config, stream.config))
            drift += [] if claim.claimant.owns(stream.config.tags) else [_UNMARKED]
            drift += [_SEALED] if stream.sealed else []
            return Holding(
                scope=True,
                ownership=owner,
                created=created,
                streams=(ownership.name_of(claim).stream,),
                drift=tuple(drift),
            )
        case Ownership.OTHERS:
            holder, uid = marks.holder(stream.config.tags, claim.claimant.cluster)
            resource = marks.resource_of(stream.config.tags)
            return Holding(
                scope=True,
                ownership=owner,
                created=created,
                holder=holder,
                holder_uid=uid,
                holder_resource=resource[0] if resource else "",
            )
    return found


def _look_under(claim: Claim, store: Store) -> Holding:
    found = ownership.under(claim, store)
    if found.marker is None or not found.marker.whole:
        return Holding(scope=store.scope_exists(claim.scope), left_alone=found.left_alone)
    for name, created in found.news:
        note = CompareAndSet(claim.mark(name), None, created or 0)
        try:
            store.set_attribute(found.marker.segment, note)
        except (NoSuchSegment, SegmentSealed):
            break  # the claim is being given up
    return Holding(
        scope=True,
        marked=True,
        ownership=Ownership.OURS,
        streams=found.claimed,
        left_alone=found.left_alone,
    )


def make(claim: Claim, store: Store, now: int) -> bool:
    """Make the stream, or the marker of a prefix, and the scope if that is wanted.

    Args:
        claim: what is claimed.
        store: where.
        now: milliseconds since 1970, by the API server's clock, before this call.

    Returns:
        Whether it was made; False when it was there and is ours.

    Raises:
        StreamExists: it is there and not ours; it was not touched.
        ScopeNotFound: there is no such scope, and it is not to be made.
    """
    cluster = claim.claimant.cluster
    with scope_lifecycle.used(claim.scope, store, cluster=cluster, make=claim.make_scope):
        return _make_one(claim, store) if claim.prefix is None else _mark(claim, store, now)


def _make_one(claim: Claim, store: Store) -> bool:
    name = ownership.name_of(claim)
    if store.create_stream(name, _with_tags(claim.config, claim.config.tags, claim)):
        return True
    stream, owner, _ = ownership.one(claim, store)
    if stream is None:
        raise StoreBusy(f"{name} was deleted while it was looked at")
    if owner is not Ownership.OURS:
        raise _not_ours(claim, stream)
    return False


def _mark(claim: Claim, store: Store, now: int) -> bool:
    """Remember the claim to a prefix."""
    _refuse_overlap(claim, store)
    config = StreamConfig(tags=claim.marker_tags(now))
    made = store.create_stream(claim.marker, config)
    found = ownership.marker(claim, store)
    if found is None:
        raise StreamExists(
            f"{claim.marker} is there, and its tags are not those of this resource",
            field="spec.streamPrefix",
            remedy="Delete that stream, if nobody needs it.",
        )
    if found.sealed:
        # Giving the claim up was cut off, and now it is wanted again.
        store.delete_stream(claim.marker)
        made = store.create_stream(claim.marker, config)
        found = ownership.marker(claim, store)
    if found is None:
        raise StoreBusy(f"{claim.marker} was deleted while it was made")
    if found.whole:
        return made
    try:
        for name, created in ownership.older_than(claim, store, found):
            store.set_attribute(found.segment, CompareAndSet(claim.older(name), None, created))
        store.set_attribute(found.segment, CompareAndSet(claim.listed, None, 1))
    except (NoSuchSegment, SegmentSealed):
        raise StoreBusy(f"{claim.marker} was given up while it was made") from None
    return True


def _refuse_overlap(claim: Claim, store: Store) -> None:
    """Claim no prefix that another cluster's Sluice has claimed, a part of it or more.

    Within a cluster the resources themselves tell who was first.
    """
    prefix, ours = claim.prefix or "", marks.cluster_tag(claim.claimant.cluster)
    for stream in ownership.markers(store, claim.scope):
        found = store.describe(StreamName(scope=claim.scope, stream=stream))
        other = None if found is None else marks.prefix_of(found.config.tags)
        if found is None or other is None or ours in found.config.tags:
            continue
        if other.startswith(prefix) or prefix.startswith(other):
            holder, _ = marks.holder(found.config.tags, claim.claimant.cluster)
            raise StreamExists(
                f"streams that begin with {other!r} are claimed by the {holder}",
                field="spec.streamPrefix",
                remedy="Choose another prefix.",
            )


def adopt(claim: Claim, store: Store, predecessor: str | None) -> None:
    """Make a stream ours that is there; but for its tags it stays as it is configured.

    Its own tags stay, those of the claim are added, and another resource's are taken off.

    Args:
        claim: the claim to one stream.
        store: where.
        predecessor: uid of this cluster's EphemeralStream that may have it now; None for nobody.

    Raises:
        StreamNotFound: it is not there.
        StreamExists: another resource has it, or it is sealed; it was not touched.
    """
    stream, owner, _ = ownership.one(claim, store)
    tags = () if stream is None else stream.config.tags
    if stream is None:
        raise StreamNotFound(f"there is no stream {ownership.name_of(claim)}")
    if owner is Ownership.OTHERS:
        _, uid = marks.holder(tags, claim.claimant.cluster)
        if uid is None or uid != predecessor:
            raise _not_ours(claim, stream)
    wanted = _with_tags(stream.config, {*tags, *claim.config.tags}, claim)
    if set(wanted.tags) == set(tags):
        return
    if stream.sealed:
        raise StreamExists(
            f"{ownership.name_of(claim)} is sealed, so it takes neither events nor tags",
            field="spec.stream",
        )
    _retag(claim, store, stream, wanted.tags)


def configure(claim: Claim, store: Store) -> None:
    """Give the stream the configuration of the claim, and our tags.

    A stream with a fixed number of segments is scaled to it, if need be.

    Raises:
        StreamNotFound: it is not there.
        StreamExists: it is not ours; it was not touched.
        StoreRejected: it is sealed, or the store refuses otherwise.
    """
    stream, owner, _ = ownership.one(claim, store)
    if stream is None:
        raise StreamNotFound(f"there is no stream {ownership.name_of(claim)}")
    if owner is not Ownership.OURS:
        raise _not_ours(claim, stream)
    if stream.sealed:
        raise StoreRejected(
            f"{ownership.name_of(claim)} is sealed, so its configuration cannot be changed",
            field="spec.config",
            remedy="Delete the stream to have it made again, if nobody needs what is in it.",
        )
    wanted = _with_tags(claim.config, claim.config.tags, claim)
    if marks.drift(wanted, stream.config) or not claim.claimant.owns(stream.config.tags):
        store.update_stream(ownership.name_of(claim), wanted)


def release(
    claim: Claim,
    store: Store,
    *,
    delete: bool,
    watch: bool = False,
    seconds: float = RELEASE_SECONDS,
) -> int:
    """Let the streams go, then what remembers them, then the scope if it is ours and empty.

    Args:
        claim: what is claimed.
        store: where.
        delete: whether they are sealed and deleted; otherwise they only lose our tags. A sealed
            stream keeps even those, since a store changes nothing of it.
        watch: whether a prefix stays claimed, for streams that come late. Then this is repeated.
        seconds: after which no more of the streams under a prefix are deleted in this call.

    Returns:
        How many streams were let go.

    Raises:
        StoreBusy: there are more to delete, or some are being made while others are deleted.
    """
    with scope_lifecycle.left(claim.scope, store, cluster=claim.claimant.cluster):
        if claim.prefix is None:
            return _release_one(claim, store, delete=delete)
        return _release_under(claim, store, delete=delete, watch=watch, seconds=seconds)


def _release_one(claim: Claim, store: Store, *, delete: bool) -> int:
    """Few questions where our tags are on it, as they mostly are."""
    config = store.configuration(ownership.name_of(claim))
    if config is None:
        return 0
    if delete and claim.claimant.owns(config.tags):
        _drop(store, ownership.name_of(claim))
        return 1
    stream, owner, _ = ownership.one(claim, store)
    if stream is None or owner is not Ownership.OURS:
        return 0
    if delete:
        _drop(store, ownership.name_of(claim))
    elif not stream.sealed:
        _retag(claim, store, stream, without_ours(stream.config.tags))
    return 1


def _release_under(claim: Claim, store: Store, *, delete: bool, watch: bool, seconds: float) -> int:
    """Streams first: while one is left, the marker says whose it is."""
    if not delete:
        found = ownership.under(claim, store)
        count = len(found.claimed)
    else:
        found, count = _drop_under(claim, store, seconds)
    if watch or found.marker is None:
        return count
    if delete and found.claimed:
        raise StoreBusy(
            f"{len(found.claimed)} streams were made under {claim.prefix!r} while others were "
            "deleted",
            remedy="Stop what makes them; it is tried again.",
        )
    if ownership.marker(claim, store) is not None:
        _drop(store, claim.marker)
    return count


def _drop_under(claim: Claim, store: Store, seconds: float) -> tuple[ownership.Under, int]:
    """Delete what is under a prefix, a part at a time, until nothing comes any more.

    Returns:
        What was there at the last look, all of it deleted since; and how many were deleted.
    """
    end, count = time.monotonic() + seconds, 0
    for _ in range(_ROUNDS):
        there = ownership.Under(None)
        for part in ownership.parts_of(claim, store, ages=True):
            if part.claimed and count and time.monotonic() > end:
                raise StoreBusy(
                    f"{count} streams under {claim.prefix!r} are deleted, and more are left",
                    remedy="Wait: it goes on.",
                )
            seen = [*zip(part.claimed, part.created, strict=True)]
            count += sum(ownership.each(partial(_drop_seen, claim, store), seen))
            there = ownership.Under(part.marker, there.claimed + part.claimed)
        if not there.claimed:
            break
    return there, count


def _drop_seen(claim: Claim, store: Store, seen: tuple[str, int | None]) -> bool:
    """Drop a stream under a prefix if it is the one that was seen: others went before it.

    Args:
        claim: the claim.
        store: where.
        seen: its name, and when it was made.
    """
    name = StreamName(scope=claim.scope, stream=seen[0])
    stream = store.describe(name)
    if stream is None or marks.is_owned(stream.config.tags):
        return False
    if made_at(name, stream, store) != seen[1]:
        return False
    _drop(store, name)
    return True


def _drop(store: Store, name: StreamName) -> None:
    """Seal and delete a stream. One that is gone already, or made again meanwhile, is no error."""
    try:
        store.seal_stream(name)
        store.delete_stream(name)
    except (StreamNotFound, ScopeNotFound, StreamNotSealed):
        return


def _retag(claim: Claim, store: Store, stream: Stream, tags: Iterable[str]) -> None:
    """Change a stream's tags and not one of its segments: see the top of this module."""
    scaling = stream.config.scaling
    if scaling.type is ScaleType.FIXED:
        scaling = scaling.model_copy(update={"min_segments": len(stream.tail)})
    changed = {"scaling": scaling, "tags": tuple(sorted(tags))}
    store.update_stream(ownership.name_of(claim), stream.config.model_copy(update=changed))


def _with_tags(config: StreamConfig, tags: Iterable[str], claim: Claim) -> StreamConfig:
    """A configuration with these tags and our own in place of any other of Sluice's."""
    ours = {*without_ours(tags), *claim.claimant.tags()}
    return config.model_copy(update={"tags": tuple(sorted(ours))})


def _not_ours(claim: Claim, stream: Stream) -> StreamExists:
    name, tags = ownership.name_of(claim), stream.config.tags
    if not marks.is_owned(tags):
        return StreamExists(
            f"{name} exists, and Sluice did not make it",
            field="spec.stream",
            remedy="Name another stream, or set spec.adopt to IfUnowned.",
        )
    holder, _ = marks.holder(tags, claim.claimant.cluster)
    return StreamExists(f"{name} belongs to {holder}", field="spec.stream")
