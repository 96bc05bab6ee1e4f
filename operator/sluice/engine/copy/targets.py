"""The target of a copy as a stream: made, scaled as its source was, and configured at the end.

While a copy works on its target, the store neither scales it by itself nor drops anything. Each
call is safe to repeat; a scale event names the segments that it ends, so one that comes late is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.copy.next_step import has_shape
from sluice.core.values import identity, marks
from sluice.core.values.model import (
    ROUNDING,
    KeyRange,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.errors import StoreBusy, StoreRejected, TargetReplaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream

_NEVER: Final = 2_000_000_000
"""Events per second that no segment reaches: a store does not split one that is to take so many."""


def claim(plan: StreamPlan, store: Store) -> bool:
    """Make the target, ours from the first moment; False when it is there."""
    config = _at_rest(plan, len(plan.generations[0]))
    return store.create_stream(plan.target, config)


def shape(plan: StreamPlan, segments: Sequence[int], store: Store) -> None:
    """Give the target, which is empty, the key ranges of the first generation.

    Args:
        plan: the plan.
        segments: ids of the target's segments.
        store: the target store.
    """
    wanted = [plan.segments[i].keys for i in plan.generations[0]]
    stream = store.describe(plan.target)
    if stream is not None and not has_shape(plan, stream.tail):
        stream = _scaled(plan, segments, wanted, store)
    if stream is None or not has_shape(plan, stream.tail):
        return  # another driver, or somebody else, is at it: the next look tells
    if has_shape(plan, stream.head):
        return  # another driver has dropped what was there before, and may have published since
    older = [segment.id for segment in stream.head]
    infos = store.infos([store.segment_name(plan.target, segment) for segment in older])
    if any(info is not None and info.length for info in infos):
        raise TargetReplaced(
            f"{plan.target} has other segments than its source, with data in them",
            remedy="Delete this copy and make one to a name that nobody else writes to.",
        )
    store.truncate_stream(plan.target, {segment.id: 0 for segment in stream.tail})


def scale(plan: StreamPlan, bound: Sequence[int], generation: int, store: Store) -> None:
    """Make the segments of a generation, in place of those that take their keys.

    Args:
        plan: the plan.
        bound: ids of the target's segments, those of later generations too, in the plan's order.
        generation: which one.
        store: the target store.
    """
    before, after = plan.active[generation - 1], plan.active[generation]
    made = plan.generations[generation]
    stream = store.describe(plan.target)
    if stream is None or identity.completed(stream.config.tags, plan.copy_id) is not None:
        return
    if stream.config.scaling.min_segments > len(after):
        # A store takes no fewer segments than a policy wants, and brings the number of a fixed
        # policy about by itself. So the policy is another one for this moment.
        _update(plan, _at_rest(plan, 1, ScaleType.BY_EVENTS), store)
    _scaled(
        plan,
        [bound[i] for i in before if i not in after],
        [plan.segments[i].keys for i in made],
        store,
    )


def settle(plan: StreamPlan, store: Store) -> None:
    """Have the target scaled by nobody, however many segments it has."""
    stream = store.describe(plan.target)
    if stream is not None and identity.completed(stream.config.tags, plan.copy_id) is None:
        _update(plan, _at_rest(plan, len(stream.tail)), store)


def mend(plan: StreamPlan, ledger: Ledger, digest: str, store: Store) -> None:
    """Give a target back what it said of itself, if it was whole by the time it was changed.

    A store changes a configuration whatever that is by then, and who was held up between looking
    and changing may come after another driver has ended the copy: with the journal gone, a target
    of ours that does not say that it is whole was whole before.

    Args:
        plan: the plan.
        ledger: the copy's journal; what was read of it stays as it is.
        digest: the copy's.
        store: the target store.
    """
    if ledger.is_there():
        return
    stream = store.describe(plan.target)
    if stream is None or set(stream.config.tags) != set(identity.owner_tags(plan.copy_id)):
        return  # aborted, or begun or ended by others since
    if not ledger.is_there():  # else another run has begun after an abort
        configure(plan, digest, store)


def configure(plan: StreamPlan, digest: str, store: Store) -> None:
    """Say on the target that it is whole, and give it the source's configuration.

    A number of segments that is fixed is the true one, since a store would scale to it: somebody
    may have scaled the source by hand.
    """
    # Plans that were recorded before have the source's marks, and keep them with their hash.
    config = marks.plain(plan.config)
    tags = (*config.tags, *identity.owner_tags(plan.copy_id), identity.TAG_COMPLETE + digest)
    scaling, count = config.scaling, len(plan.active[-1])
    fixed = scaling.type is ScaleType.FIXED
    least = count if fixed else min(scaling.min_segments, count)
    changed = {"scaling": scaling.model_copy(update={"min_segments": least}), "tags": tags}
    _update(plan, config.model_copy(update=changed), store)


def _update(plan: StreamPlan, config: StreamConfig, store: Store) -> None:
    """Configure the target, unless another driver has meanwhile sealed it whole."""
    try:
        store.update_stream(plan.target, config)
    except StoreRejected:
        stream = store.describe(plan.target)
        if (
            stream is None
            or not stream.sealed
            or identity.completed(stream.config.tags, plan.copy_id) is None
        ):
            raise


def _at_rest(plan: StreamPlan, segments: int, type_: ScaleType = ScaleType.FIXED) -> StreamConfig:
    """What a target is configured with while it is being made."""
    scaling = Scaling(min_segments=segments)
    if type_ is not ScaleType.FIXED:
        scaling = Scaling(type=type_, target_rate=_NEVER, scale_factor=2, min_segments=segments)
    tags = identity.owner_tags(plan.copy_id)
    return StreamConfig(scaling=scaling, retention=StreamRetention(), tags=tags)


def _scaled(
    plan: StreamPlan, sealed: Sequence[int], ranges: Sequence[KeyRange], store: Store
) -> Stream | None:
    """Scale the target, unless another driver has; the target as it is then."""
    before = store.describe(plan.target)
    if before is None:
        return None
    edges = {edge for segment in before.tail for edge in (segment.keys.low, segment.keys.high)}
    try:
        store.scale(plan.target, sealed, [_snapped(keys, edges) for keys in ranges])
    except StoreRejected as error:
        stream = store.describe(plan.target)
        if stream is not None and {segment.id for segment in stream.tail} >= set(sealed):
            # Another driver may have given the target another policy directly before.
            raise StoreBusy(error.message) from error
        return stream
    return store.describe(plan.target)


def _snapped(keys: KeyRange, edges: Iterable[float]) -> KeyRange:
    """A range whose edges are the target's own, where they differ from them by rounding only."""

    def snap(edge: float) -> float:
        return next((known for known in edges if abs(known - edge) < ROUNDING), edge)

    return KeyRange(low=snap(keys.low), high=snap(keys.high))
