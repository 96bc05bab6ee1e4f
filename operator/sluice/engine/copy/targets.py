"""Make a copy's target stream, scale it as its source was scaled, and configure it at the end.

While a copy works on its target, the target has a fixed number of segments and no retention. So the
store neither scales nor truncates it. A target that follows its source has the source's retention.
Each call is safe to repeat. A scale event names the segments that it replaces, so the store refuses
one that comes late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.next_step import has_shape
from sluice.core.follow.position import LEFT
from sluice.core.values import identity, marks
from sluice.core.values.model import (
    ROUNDING,
    KeyRange,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.errors import StoreBusy, StoreRejected, StreamNotFound, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import StreamName
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream, Topology
    from sluice.stores.writing import Admin

_NEVER: Final = 2_000_000_000
"""Events per second that no segment reaches, so the store never splits one with this target."""


def claim(plan: StreamPlan, store: Store) -> bool:
    """Make the target, with this copy's tags from the start. Return False if it exists."""
    config = _at_rest(plan, len(plan.generations[0]))
    scope = plan.target.scope
    # Look first: a user who may not make scopes can still copy to one that exists.
    if plan.make_scope and not store.scope_exists(scope):
        store.create_scope(scope)
    return store.create_stream(plan.target, config)


def shape(plan: StreamPlan, segments: Sequence[int], store: Store) -> None:
    """Scale the empty target to the key ranges of the plan's first generation.

    Args:
        plan: the plan.
        segments: ids of the target's segments.
        store: the target store.

    Raises:
        TargetReplaced: the segments that it had before hold data.
    """
    wanted = [plan.segments[i].keys for i in plan.generations[0]]
    stream = _unfinished(plan, store)
    if stream is not None and not has_shape(plan, stream.tail):
        stream = _scaled(plan, segments, wanted, store)
    if stream is None or not has_shape(plan, stream.tail):
        return  # another driver or another client changes it: the next look decides
    if has_shape(plan, stream.head):
        return  # another driver has truncated it already, and may have published since
    older = [segment.id for segment in stream.head]
    infos = store.infos([store.segment_name(plan.target, segment) for segment in older])
    if any(info is not None and info.length for info in infos):
        raise TargetReplaced(
            f"{plan.target} has other segments than its source, with data in them",
            remedy="Delete this copy and make one to a name that no other client writes to.",
        )
    store.truncate_stream(plan.target, {segment.id: 0 for segment in stream.tail})


def scale(plan: StreamPlan, bound: Sequence[int], generation: int, store: Store) -> None:
    """Scale the target to a generation: replace the segments that have its keys.

    Args:
        plan: the plan.
        bound: ids of the target's segments, of later generations too, in the plan's order.
        generation: the number of the generation.
        store: the target store.
    """
    before, after = plan.active[generation - 1], plan.active[generation]
    made = plan.generations[generation]
    stream = _unfinished(plan, store)
    if stream is None:
        return
    if stream.config.scaling.min_segments > len(after):
        # A store refuses fewer segments than a policy wants, and scales to the number of a fixed
        # policy by itself. So the target gets a policy by events until it is scaled.
        _update(plan, _in_work(plan, stream, 1, ScaleType.BY_EVENTS), store)
    _scaled(
        plan,
        [bound[i] for i in before if i not in after],
        [plan.segments[i].keys for i in made],
        store,
    )


def _always() -> bool:
    return True


def settle(plan: StreamPlan, store: Store, *, in_time: Callable[[], bool] = _always) -> None:
    """Fix the target's number of segments at the present one, so that the store does not scale.

    Args:
        plan: the plan.
        store: the target store.
        in_time: asked directly before the change. If it says no, nothing is changed.
    """
    stream = _unfinished(plan, store)
    if stream is not None and in_time():
        _update(plan, _in_work(plan, stream, len(stream.tail)), store)


def mirror(
    plan: StreamPlan,
    source: StreamConfig,
    store: Store,
    *,
    in_time: Callable[[], bool] = _always,
) -> None:
    """Give a target that follows its source the source's retention and tags.

    Args:
        plan: the plan with its amendments.
        source: the source's configuration.
        store: the target store.
        in_time: asked directly before the change. If it says no, nothing is changed.
    """
    stream = _unfinished(plan, store)
    if stream is not None and in_time():
        _update(plan, marks.followed(source, plan.copy_id, len(stream.tail)), store)


def _unfinished(plan: StreamPlan, store: Topology) -> Stream | None:
    """Return the target; None if it is gone, complete, or another stream of its name."""
    stream = store.describe(plan.target)
    if stream is None or not identity.is_ours(stream.config.tags, plan.copy_id):
        return None
    complete = identity.completed(stream.config.tags, plan.copy_id) is not None
    return None if complete else stream


def mend(plan: StreamPlan, copy_journal: CopyJournal, digest: str, store: Store) -> None:
    """Restore the configuration of a target that was complete when this driver changed it.

    A store replaces a configuration unconditionally. A driver that is held up between looking and
    changing may come after another driver has completed the copy. That shows afterwards: the
    journal is gone, and a target of this copy lacks the mark of a complete one.

    Args:
        plan: the plan.
        copy_journal: the copy's journal. It is not loaded again.
        digest: the copy's digest.
        store: the target store.
    """
    if copy_journal.is_there():
        return
    stream = _unfinished(plan, store)
    if stream is None:
        return  # the copy was aborted, or another driver has restored the configuration
    if plan.follow and is_left(plan.copy_id, plan.target, store):
        release(plan.copy_id, plan.target, stream, plan.config, store)
        return
    if not copy_journal.is_there():  # else another run has begun after an abort
        # A followed source may have been scaled since this driver's plan was read.
        configure(plan, digest, store, count=len(stream.tail) if plan.follow else None)


def is_left(copy_id: str, target: StreamName, store: Source) -> bool:
    """Tell whether the copy that made a stream was ended while it was live."""
    places = sources_of(copy_id, target, store)
    asked = [
        (store.segment_name(target, segment), identity.position_attribute(copy_id, source))
        for segment, source in places.items()
    ]
    return LEFT in store.attributes(asked)


def sources_of(copy_id: str, target: StreamName, store: Source) -> dict[int, int]:
    """Return the ids of the source's segments, by those of the target's segments for them.

    The segments of the target say so themselves. One that lies idle says so, too.
    """
    try:
        segments = [segment.id for made in store.generations(target) for segment in made]
    except StreamNotFound:
        return {}
    _, origin, _ = identity.origin_attributes(copy_id)
    asked = [(store.segment_name(target, segment), origin) for segment in segments]
    found = zip(segments, store.attributes(asked), strict=True)
    return {segment: source for segment, source in found if source is not None}


def release(
    copy_id: str, target: StreamName, stream: Stream, planned: StreamConfig | None, store: Admin
) -> None:
    """Give a target that was live its final configuration, without any mark of the copy.

    It keeps the retention and the tags that it has from its source.

    Args:
        copy_id: the copy.
        target: its target stream.
        stream: the target, as it was described just now.
        planned: the source's configuration in the plan; None if there is no plan any more.
        store: the target store.
    """
    if stream.sealed or not identity.is_ours(stream.config.tags, copy_id):
        return  # a store does not change the configuration of a sealed stream
    planned = stream.config if planned is None else marks.plain(planned)
    config = stream.config if identity.is_live(stream.config.tags, copy_id) else planned
    least = _least(planned.scaling, len(stream.tail))
    changed = {
        "scaling": planned.scaling.model_copy(update={"min_segments": least}),
        "tags": identity.without_ours(config.tags),
    }
    store.update_stream(target, config.model_copy(update=changed))


def configure(
    plan: StreamPlan, digest: str, store: Store, *, hurry: bool = False, count: int | None = None
) -> None:
    """Mark the target as complete, and give it the source's configuration.

    A fixed number of segments is set to the number that the target has: the store would scale to
    it. The source's policy may have another number, since streams can be scaled by hand.

    Args:
        plan: the plan.
        digest: the copy's digest.
        store: the target store.
        hurry: whether the store is asked more often, to know earlier that this is done.
        count: the number of segments that the target has; None for that of the plan.
    """
    # Plans recorded by older versions hold the source's marks, which their hash covers.
    config = marks.plain(plan.config)
    complete = identity.TAG_COMPLETE + digest
    tags = (*config.tags, *identity.owner_tags(plan.copy_id), complete)
    scaling = config.scaling
    count = len(plan.active[-1]) if count is None else count
    least = _least(scaling, count)
    changed = {"scaling": scaling.model_copy(update={"min_segments": least}), "tags": tags}
    # A target that is sealed next must not be busy with this update any more.
    early = complete if hurry and not plan.seal else None
    _update(plan, config.model_copy(update=changed), store, until_listed=early)


def _least(scaling: Scaling, count: int) -> int:
    """Return the least number of segments of a policy, for a target that has so many of them."""
    fixed = scaling.type is ScaleType.FIXED
    return count if fixed else min(scaling.min_segments, count)


def _update(
    plan: StreamPlan, config: StreamConfig, store: Store, *, until_listed: str | None = None
) -> None:
    """Configure the target, unless another driver has meanwhile completed and sealed it."""
    try:
        store.update_stream(plan.target, config, until_listed=until_listed)
    except StoreRejected:
        stream = store.describe(plan.target)
        if (
            stream is None
            or not stream.sealed
            or identity.completed(stream.config.tags, plan.copy_id) is None
        ):
            raise


def _at_rest(plan: StreamPlan, segments: int, type_: ScaleType = ScaleType.FIXED) -> StreamConfig:
    """Return the configuration of a target while a copy works on it."""
    scaling = Scaling(min_segments=segments)
    if type_ is not ScaleType.FIXED:
        scaling = Scaling(type=type_, target_rate=_NEVER, scale_factor=2, min_segments=segments)
    tags = identity.owner_tags(plan.copy_id)
    return StreamConfig(scaling=scaling, retention=StreamRetention(), tags=tags)


def _in_work(
    plan: StreamPlan, stream: Stream, segments: int, type_: ScaleType = ScaleType.FIXED
) -> StreamConfig:
    """Return the configuration of a target for a scale event, with what it has from its source."""
    config = _at_rest(plan, segments, type_)
    if not identity.is_live(stream.config.tags, plan.copy_id):
        return config
    return stream.config.model_copy(update={"scaling": config.scaling})


def _scaled(
    plan: StreamPlan, sealed: Sequence[int], ranges: Sequence[KeyRange], store: Store
) -> Stream | None:
    """Scale the target, unless another driver has. Return the target as it is then.

    Raises:
        StoreBusy: the store refused, though the segments to seal are still there.
    """
    before = store.describe(plan.target)
    if before is None:
        return None
    edges = {edge for segment in before.tail for edge in (segment.keys.low, segment.keys.high)}
    try:
        store.scale(plan.target, sealed, [_snapped(keys, edges) for keys in ranges])
    except StoreRejected as error:
        stream = store.describe(plan.target)
        if stream is not None and {segment.id for segment in stream.tail} >= set(sealed):
            # Another driver may have set another policy directly before.
            raise StoreBusy(error.message) from error
        return stream
    return store.describe(plan.target)


def _snapped(keys: KeyRange, edges: Iterable[float]) -> KeyRange:
    """Return a range with the target's own edges, where its edges differ by rounding only."""

    def snap(edge: float) -> float:
        return next((known for known in edges if abs(known - edge) < ROUNDING), edge)

    return KeyRange(low=snap(keys.low), high=snap(keys.high))
