"""Do an EphemeralStream's work in a store: look at, make, adopt, configure and release streams.

Between two calls only the store remembers anything. So each call may be repeated at any point, by
this process or another. Each call checks the owner of a stream directly before it changes the
stream. A store changes and deletes streams by name, which leaves some gaps:

- If another client deletes a stream and makes it again between the check and the change, within a
  few milliseconds, the new stream is taken for ours.
- If two clients change a stream's tags at once, the later change wins. A store has no
  compare-and-set for tags.
- A change of tags is a change of the whole configuration. If a user scaled a stream with a fixed
  number of segments by hand, that change would scale it back to uniform key ranges. So adopting and
  retaining configure the present number of segments, and the segments stay. `configure` sets what
  the resource asks for, which may scale the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.claims import claim as marks
from sluice.core.claims.claim import Holding, Ownership
from sluice.core.values.identity import without_ours
from sluice.core.values.model import ScaleType, StreamConfig, StreamName
from sluice.engine.claims import deleting, ownership, scope_lifecycle
from sluice.errors import (
    NoSuchSegment,
    SegmentSealed,
    StoreBusy,
    StoreRejected,
    StreamExists,
    StreamNotFound,
)
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.claims.claim import Claim
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream
    from sluice.stores.writing import Admin

_UNMARKED: Final = "the tags of Sluice are missing"
_SEALED: Final = "it is sealed"


def look(claim: Claim, store: Store) -> Holding:
    """Return what a store says about a claim.

    New streams under a prefix are noted in the prefix's marker. So they stay known as ours even
    when the store cannot tell their creation time any more. Nothing else is changed.
    """
    return _look_at_one(claim, store) if claim.prefix is None else _look_under(claim, store)


def _look_at_one(claim: Claim, store: Source) -> Holding:
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
            break  # another call is releasing the claim
    return Holding(
        scope=True,
        marked=True,
        ownership=Ownership.OURS,
        streams=found.claimed,
        left_alone=found.left_alone,
    )


def make(claim: Claim, store: Store, now: int) -> bool:
    """Make the stream, or the marker of a prefix, and the scope if the claim says so.

    Args:
        claim: the claim.
        store: the store.
        now: milliseconds since 1970, by the API server's clock, before this call.

    Returns:
        Whether it was made; False if it exists and is ours.

    Raises:
        StreamExists: it exists and is not ours; it was not changed.
        ScopeNotFound: the scope does not exist, and is not to be made.
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
    """Make the marker that records a claim to a prefix. Tell whether it was made or completed."""
    _refuse_overlap(claim, store)
    config = StreamConfig(tags=claim.marker_tags(now))
    made = store.create_stream(claim.marker, config)
    found = ownership.marker(claim, store)
    if found is None:
        raise StreamExists(
            f"{claim.marker} is there, and its tags are not those of this resource",
            field="spec.streamPrefix",
            remedy="Delete that stream, if it is not needed.",
        )
    if found.sealed:
        # A release of the claim was cut off, and now the claim is wanted again.
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


def _refuse_overlap(claim: Claim, store: Source) -> None:
    """Raise StreamExists if another cluster's Sluice has claimed an overlapping prefix.

    Claims of the same cluster are not checked here: their resources tell which came first.
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
    """Make an existing stream ours. Only its tags change.

    The stream's own tags stay, those of the claim are added, and another resource's are removed.

    Args:
        claim: the claim to one stream.
        store: the store.
        predecessor: uid of this cluster's EphemeralStream that may have the stream now; None if no
            resource may have it.

    Raises:
        StreamNotFound: the stream does not exist.
        StreamExists: another resource has the stream, or it is sealed; it was not changed.
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

    If the claim has a fixed number of segments, the store scales the stream to that number.

    Raises:
        StreamNotFound: the stream does not exist.
        StreamExists: the stream is not ours; it was not changed.
        StoreRejected: the stream is sealed, or the store refuses the change.
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
            remedy="Delete the stream to have it made again, if its events are not needed.",
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
    seconds: float = deleting.SECONDS,
) -> int:
    """Release the streams, then a prefix's marker, then the scope if it is ours and empty.

    Streams and scopes that are not ours any more are left alone. Missing streams are no error.

    Args:
        claim: the claim.
        store: the store.
        delete: whether to seal and delete the streams; otherwise they only lose our tags. A sealed
            stream keeps even its tags, since a store cannot change it.
        watch: whether to keep a prefix claimed, so that a later call deletes streams that come
            late.
        seconds: after which this call deletes no more streams under a prefix.

    Returns:
        How many streams were released.

    Raises:
        StoreBusy: more streams are left, or new ones were made while others were deleted.
    """
    with scope_lifecycle.left(claim.scope, store, cluster=claim.claimant.cluster):
        if claim.prefix is None:
            return _release_one(claim, store, delete=delete)
        return _release_under(claim, store, delete=delete, watch=watch, seconds=seconds)


def _release_one(claim: Claim, store: Store, *, delete: bool) -> int:
    """Release the one stream, if it is ours. Return how many streams were released."""
    config = store.configuration(ownership.name_of(claim))
    if config is None:
        return 0
    # Usually our tags are on the stream, and deleting it needs no further question to the store.
    if delete and claim.claimant.owns(config.tags):
        deleting.drop(store, ownership.name_of(claim))
        return 1
    stream, owner, _ = ownership.one(claim, store)
    if stream is None or owner is not Ownership.OURS:
        return 0
    if delete:
        deleting.drop(store, ownership.name_of(claim))
    elif not stream.sealed:
        _retag(claim, store, stream, without_ours(stream.config.tags))
    return 1


def _release_under(claim: Claim, store: Store, *, delete: bool, watch: bool, seconds: float) -> int:
    """Release the streams under a prefix, then the marker. Return how many streams there were."""
    # The marker goes last: while a stream is left, only the marker says whose it is.
    if not delete:
        found = ownership.under(claim, store)
        count = len(found.claimed)
    else:
        found, count = deleting.drop_under(claim, store, seconds)
    if watch or found.marker is None:
        return count
    if delete and found.claimed:
        raise StoreBusy(
            f"{len(found.claimed)} streams were made under {claim.prefix!r} while others were "
            "deleted",
            remedy="Stop what makes them; it is tried again.",
        )
    if ownership.marker(claim, store) is not None:
        deleting.drop(store, claim.marker)
    return count


def _retag(claim: Claim, store: Admin, stream: Stream, tags: Iterable[str]) -> None:
    """Change a stream's tags and none of its segments; see the top of this module."""
    scaling = stream.config.scaling
    if scaling.type is ScaleType.FIXED:
        scaling = scaling.model_copy(update={"min_segments": len(stream.tail)})
    changed = {"scaling": scaling, "tags": tuple(sorted(tags))}
    store.update_stream(ownership.name_of(claim), stream.config.model_copy(update=changed))


def _with_tags(config: StreamConfig, tags: Iterable[str], claim: Claim) -> StreamConfig:
    """Return a configuration with these tags, and the claim's in place of other tags of Sluice."""
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
