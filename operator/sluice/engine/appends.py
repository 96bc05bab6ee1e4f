"""Appending to a stream that is there: what is seen of it, and the steps of `core.appending`.

Transactions are the store's, and have a lease: whoever looks while some are open keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core import identity, journal, rolling
from sluice.core.appending import has_layout, is_reshaped, layout_of
from sluice.core.copying import Observed, SeenRoll, SeenSegment, SeenTarget, staged
from sluice.core.model import KeyRange, ScaleType, Scaling, StreamName, TransactionState
from sluice.core.rolling import Opened
from sluice.core.steps import (
    Certify,
    Commit,
    Decide,
    Foresee,
    Forget,
    Join,
    Loosen,
    Note,
    Open,
    Remember,
    Reshape,
    Restart,
    Return,
    Stage,
    Tighten,
)
from sluice.engine import receipts
from sluice.engine.clearing import clear_names
from sluice.engine.observe import observe_sources, observe_staged
from sluice.engine.receipts import Receipt
from sluice.errors import (
    AbortRefused,
    NoSuchSegment,
    SegmentSealed,
    StoreRejected,
    StoreUnavailable,
    StreamNotFound,
    TargetSealed,
)
from sluice.stores.base import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from sluice.core.journal import Journal
    from sluice.core.plan import Part, StreamPlan
    from sluice.core.rolling import Roll
    from sluice.core.steps import Step
    from sluice.engine.ledger import Ledger
    from sluice.stores.base import Store, Stream

LEASE: Final = 300.0
"""Seconds for which a transaction stays open while nobody looks. Stores allow 600."""

TRIES: Final = 10
"""Looks at an append that another driver goes on with meanwhile."""

_DECIDED: Final = frozenset({TransactionState.COMMITTING, TransactionState.COMMITTED})

_NEVER: Final = 2_000_000_000


def salt(plan: StreamPlan, ledger: Ledger, attempt: int | None = None) -> str:
    """What tells an attempt's staging from that of every other one, of other plans too.

    Nothing else does: the target and so its segments' ids are the same after an abort. The name of
    the journal is never used twice while the store still keeps the names of what was deleted.
    """
    number = _roll(ledger).attempt if attempt is None else attempt
    return f"{number} {ledger.name} {plan.hash}"


def staging_name(plan: StreamPlan, ledger: Ledger, store: Store, *, index: int, part: int) -> str:
    """The name of a part's staging segment in the present attempt."""
    loaded = ledger.loaded
    if loaded is None or loaded.target is None:
        raise StoreUnavailable(f"it is not foreseen yet where {plan.target} is appended to")
    return _staging_names(plan, ledger, store, loaded.roll.attempt, loaded.target)[index][part]


def _staging_names(
    plan: StreamPlan, ledger: Ledger, store: Store, attempt: int, bound: Sequence[int]
) -> list[list[str]]:
    with_salt = salt(plan, ledger, attempt)
    return [
        [
            store.staging_name(
                plan.target,
                target,
                identity.staging_key(plan.copy_id, index, part.number, with_salt),
            )
            for part in segment.parts
        ]
        for index, (segment, target) in enumerate(zip(plan.segments, bound, strict=True))
    ]


def transaction_segment(plan: StreamPlan, roll: Roll, index: int) -> tuple[int, str] | None:
    """The segment of a transaction into which a segment of the plan goes.

    Returns:
        The id of the target's segment beside which it lies, and its key; None while it is not open.
    """
    generation = plan.segments[index].generation
    opened = roll.transactions.get(generation)
    if opened is None:
        return None
    return opened.segments[plan.active[generation].index(index)], opened.key


# -- looking


def observe(
    plan: StreamPlan, ledger: Ledger, source: Store, target: Store, *, tries: int = TRIES
) -> Observed:
    """One observation.

    The journal before the receipt: a copy leaves it before it deletes that. Staging before the
    states of transactions: those that are open still had not taken it away for good.
    """
    loaded = ledger.load()
    receipt = receipts.find(plan.copy_id, plan.target, target)
    described = target.describe(plan.target)
    seen_target = None if described is None else _seen(described)
    digest = None if receipt is None else receipt.digest
    if loaded is None or loaded.target is None or receipt is not None or described is None:
        return Observed(journal=loaded, target=seen_target, roll=SeenRoll(digest=digest))
    roll = loaded.roll
    segments = _segments(plan, ledger, loaded, target)
    states = {} if roll.aborted else _states(plan, roll, target)
    if tries and not roll.decided and any(state in _DECIDED for state in states.values()):
        return observe(plan, ledger, source, target, tries=tries - 1)  # another driver has
    sources = None
    if any(
        state.published is None and state.verified is None and segment.length
        for state, segment in zip(segments, plan.segments, strict=True)
    ):
        sources = observe_sources(plan, source)
    gone = sources is not None and not any(sources)
    return Observed(
        journal=loaded,
        target=seen_target,
        segments=segments,
        sources=sources,
        renewed=gone and source.describe(plan.source) is not None,
        roll=SeenRoll(digest=digest, states=states, misplaced=_is_misplaced(plan, loaded, target)),
    )


def _seen(stream: Stream) -> SeenTarget:
    return SeenTarget(
        tags=stream.config.tags,
        segments=tuple(segment.id for segment in stream.tail),
        head=stream.head,
        tail=stream.tail,
        least=stream.config.scaling.min_segments,
        sealed=stream.sealed,
    )


def _states(plan: StreamPlan, roll: Roll, store: Store) -> dict[int, TransactionState]:
    """The states of transactions that are not noted as committed; open ones are kept."""
    states = {}
    try:
        for number, opened in sorted(roll.transactions.items()):
            if number in roll.committed:
                continue
            if store.keep_transaction(plan.target, opened.key, lease=LEASE):
                states[number] = TransactionState.OPEN
            else:
                states[number] = store.transaction(plan.target, opened.key)
    except StreamNotFound:
        return {}
    return states


def _segments(
    plan: StreamPlan, ledger: Ledger, loaded: Journal, store: Store
) -> tuple[SeenSegment, ...]:
    """Staging of each segment, and whether it is under its transaction."""
    bound, roll = loaded.target or (), loaded.roll
    into = [store.segment_name(plan.target, segment) for segment in bound]
    for index in range(len(plan.segments)):
        found = transaction_segment(plan, roll, index)
        if found is not None:
            into[index] = store.staging_name(plan.target, *found)
    names = _staging_names(plan, ledger, store, roll.attempt, bound)
    seen = observe_staged(plan, names, into, store)
    return tuple(
        SeenSegment(
            parts=(None,) * len(segment.parts),
            stitched=None,
            verified=None,
            published=segment.length,
            target=None,
        )
        if segment.generation in roll.committed
        else state
        for segment, state in zip(plan.segments, seen, strict=True)
    )


def _is_misplaced(plan: StreamPlan, loaded: Journal, store: Store) -> bool:
    """Whether a transaction that is open came to lie elsewhere than was foreseen."""
    bound = loaded.target or ()
    for index, segment in enumerate(plan.segments):
        found = transaction_segment(plan, loaded.roll, index)
        if segment.length and found is not None and segment.generation not in loaded.roll.committed:
            if not store.is_beside(bound[index], found[0]):
                return True
    return False


def progress(plan: StreamPlan, ledger: Ledger, store: Store) -> tuple[int, bool]:
    """Bytes that are in the target store, and whether they are appended, as the journal says."""
    loaded = ledger.loaded
    if loaded is None:
        done = receipts.find(plan.copy_id, plan.target, store) is not None
        return (plan.bytes if done else 0), done
    if loaded.target is None:
        return 0, False
    seen = _segments(plan, ledger, loaded, store)
    if loaded.roll.decided:
        return plan.bytes, loaded.roll.committed >= set(plan.filled)
    return sum(staged(*pair) for pair in zip(plan.segments, seen, strict=True)), False


# -- steps


def foresee(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Write down beside which segments is staged, as the store is going to number them."""
    stream = _stream(plan, store)
    ledger.write([journal.target_record(_foreseen(plan, stream, store))])


def _foreseen(plan: StreamPlan, stream: Stream, store: Store) -> tuple[int, ...]:
    """For each segment of the plan one of the target that is there, or will be."""
    now = [segment.id for segment in stream.tail]
    shape = tuple(segment.keys for segment in stream.tail)
    found: dict[int, int] = {}
    scaled: list[int] = []
    for number in plan.filled:
        wanted = layout_of(plan, number)
        if len(shape) != len(wanted) or not all(
            a.is_like(b) for a, b in zip(shape, wanted, strict=True)
        ):
            scaled.append(len(wanted))
            now = list(store.following([segment.id for segment in stream.tail], scaled)[-1])
            shape = wanted
        places = plan.active[number]
        found.update({i: now[places.index(i)] for i in plan.generations[number]})
    return tuple(found.get(i, stream.tail[0].id) for i in range(len(plan.segments)))


def remember(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Write down which key ranges the target has."""
    stream, roll = _stream(plan, store), _roll(ledger)
    ledger.write([rolling.layout_record(roll.attempt, (one.keys for one in stream.tail))])


def loosen(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Give the target a policy under which it can have one segment, and note its own on it.

    A number of segments that is fixed is noted as the true one, since a store would scale to it.
    """
    config, layout = _stream(plan, store).config, _roll(ledger).layout
    if any(tag.startswith(identity.TAG_APPENDING) for tag in config.tags):
        return
    own = config.scaling
    least = len(layout or ()) if own.type is ScaleType.FIXED else own.min_segments
    noted = f"/{own.type}/{own.target_rate}/{own.scale_factor}/{least}"
    tag = f"{identity.TAG_APPENDING}{plan.copy_id}{noted}"
    loose = Scaling(type=ScaleType.BY_EVENTS, target_rate=_NEVER, scale_factor=2, min_segments=1)
    store.update_stream(
        plan.target, config.model_copy(update={"scaling": loose, "tags": (*config.tags, tag)})
    )


def tighten(copy_id: str, name: StreamName, store: Store, *, settled: bool = False) -> bool:
    """Give a stream back the policy that is noted on it by this copy; False where none is.

    Args:
        copy_id: the copy.
        name: the stream.
        store: where it is.
        settled: whether the segments that it has are those it is to have.
    """
    stream = store.describe(name)
    if stream is None or stream.sealed:
        return False
    prefix = f"{identity.TAG_APPENDING}{copy_id}/"
    noted = next((tag for tag in stream.config.tags if tag.startswith(prefix)), None)
    if noted is None:
        return False
    kind, rate, factor, least = noted.removeprefix(prefix).split("/")
    type_ = ScaleType(kind)
    scaling = Scaling(
        type=type_,
        target_rate=int(rate),
        scale_factor=int(factor),
        min_segments=len(stream.tail) if settled and type_ is ScaleType.FIXED else int(least),
    )
    tags = tuple(tag for tag in stream.config.tags if tag != noted)
    store.update_stream(name, stream.config.model_copy(update={"scaling": scaling, "tags": tags}))
    return True


def reshape(
    plan: StreamPlan, ledger: Ledger, store: Store, generation: int, segments: Sequence[int]
) -> None:
    """Scale the target to a generation's key ranges, and back if that came too late."""
    roll = _roll(ledger)
    if not _scaled(plan, store, segments, layout_of(plan, generation)):
        return
    now = ledger.load()
    if now is None or now.roll.aborted:
        stream = store.describe(plan.target)
        if stream is not None and has_layout(stream.tail, layout_of(plan, generation)):
            _scaled(plan, store, [one.id for one in stream.tail], roll.layout or ())


def give_back(plan: StreamPlan, ledger: Ledger, store: Store, segments: Sequence[int]) -> None:
    """Scale the target to the key ranges that it had."""
    _scaled(plan, store, segments, _roll(ledger).layout or ())


def _scaled(
    plan: StreamPlan, store: Store, segments: Sequence[int], ranges: Sequence[KeyRange]
) -> bool:
    """Scale the target, unless somebody else has; whether we did."""
    try:
        store.scale(plan.target, segments, ranges)
    except StoreRejected:
        stream = store.describe(plan.target)
        if stream is not None and {one.id for one in stream.tail} >= set(segments):
            raise
        return False
    return True


def open_(plan: StreamPlan, ledger: Ledger, store: Store, generation: int) -> None:
    """Open a generation's transaction, and write it down, unless another driver has.

    One that is not written down is not used: it is aborted here, or by the store if we die.
    """
    roll = _roll(ledger)
    opened = store.open_transaction(plan.target, lease=LEASE)
    mine = Opened(opened.key, tuple(segment.id for segment in opened.segments))
    if has_layout(opened.segments, layout_of(plan, generation)):
        try:
            ledger.write([rolling.transaction_record(roll.attempt, generation, mine)])
        finally:
            loaded = ledger.loaded
            used = None if loaded is None else loaded.roll.transactions.get(generation)
            if used is not None and used != mine:
                store.abort_transaction(plan.target, opened.key)
    else:
        store.abort_transaction(plan.target, opened.key)


def restart(plan: StreamPlan, ledger: Ledger, store: Store, *, keep: bool) -> None:
    """Begin another attempt, and delete what the one before has staged."""
    loaded = ledger.loaded
    if loaded is None or loaded.target is None:
        raise StoreUnavailable(f"the journal of the copy to {plan.target} is gone")
    roll, bound = loaded.roll, list(loaded.target)
    if keep:
        for index in range(len(plan.segments)):
            found = transaction_segment(plan, roll, index)
            bound[index] = bound[index] if found is None else found[0]
    else:
        drop(plan, roll, store)
        bound = list(_foreseen(plan, _stream(plan, store), store))
    ledger.write([rolling.attempt_record(roll.attempt + 1, bound, keep=keep)])
    clear(plan, ledger, store, former=True)


def drop(plan: StreamPlan, roll: Roll, store: Store) -> None:
    """Shut transactions to being merged into, and abort them."""
    attribute = identity.publish_attribute(plan.copy_id)
    for number, opened in roll.transactions.items():
        if number in roll.committed:
            continue
        names = [store.staging_name(plan.target, one, opened.key) for one in opened.segments]
        there = [name for name, info in zip(names, store.infos(names), strict=True) if info]
        for name in there:
            _shut(store, name, attribute)
        try:
            store.abort_transaction(plan.target, opened.key)
            store.settled(plan.target, opened.key)
        except StreamNotFound:
            return


def _shut(store: Store, name: str, attribute: UUID) -> None:
    try:
        store.set_attribute(name, Condition(attribute, None, identity.ABORTED))
    except (NoSuchSegment, SegmentSealed):
        return  # it takes nothing any more


def clear(plan: StreamPlan, ledger: Ledger, store: Store, *, former: bool = False) -> int:
    """Delete what is staged, by former attempts only or by all; says how much there was."""
    loaded = ledger.loaded
    if loaded is None or loaded.target is None:
        return 0
    bounds = [*enumerate(loaded.roll.former)]
    if not former:
        bounds.append((loaded.roll.attempt, loaded.target))
    return sum(
        clear_names(plan.copy_id, _staging_names(plan, ledger, store, attempt, bound), store)
        for attempt, bound in bounds
    )


def join(plan: StreamPlan, ledger: Ledger, store: Store, index: int, events: int) -> None:
    """Merge a staged segment into its transaction's, unless that is done."""
    found = transaction_segment(plan, _roll(ledger), index)
    if found is None:
        raise StoreUnavailable(f"segment {index} has no transaction yet")
    segment = plan.segments[index]
    condition = Condition(identity.publish_attribute(plan.copy_id), None, segment.length)
    name = staging_name(plan, ledger, store, index=index, part=0)
    store.seal(name)
    store.merge(store.staging_name(plan.target, *found), name, condition, events=events)


def decide(ledger: Ledger) -> None:
    """Write down that the transactions are to be committed."""
    ledger.write([rolling.decision_record(_roll(ledger).attempt)])


def commit(plan: StreamPlan, ledger: Ledger, store: Store, generations: Sequence[int]) -> None:
    """Commit transactions in order, each only if the one before is, and wait for it."""
    roll = _roll(ledger)
    keys = [roll.transactions[number].key for number in generations]
    decided = []
    for key in keys:
        if not store.commit_transaction(plan.target, key):
            break
        decided.append(key)
    for key in decided:
        store.settled(plan.target, key)


def note(ledger: Ledger, generations: Sequence[int]) -> None:
    """Write down that generations are committed."""
    ledger.write([rolling.committed_record(generations)])


def certify(plan: StreamPlan, store: Store, *, digest: str, events: int) -> None:
    """Leave the receipt."""
    stream = _stream(plan, store)
    names = [store.segment_name(plan.target, segment.id) for segment in stream.tail]
    created = store.attributes([(name, store.creation_time) for name in names])
    at = max((value for value in created if value is not None), default=0)
    receipts.leave(plan.copy_id, plan.target, store, Receipt(digest, plan.bytes, events, at))


def forget(plan: StreamPlan, ledger: Ledger, store: Store) -> None:
    """Delete what is staged still, and the journal."""
    loaded = ledger.load()
    if loaded is not None:
        drop(plan, loaded.roll, store)
        clear(plan, ledger, store)
    ledger.delete()


def perform(  # noqa: C901, PLR0912 - one case for each step
    plan: StreamPlan,
    ledger: Ledger,
    store: Store,
    step: Step,
    *,
    digest: str,
    events: Callable[[int], int],
) -> None:
    """Carry out a step of an append that moves no bytes.

    Args:
        plan: what is appended.
        ledger: its journal.
        store: the target store.
        step: the step.
        digest: the copy's.
        events: gives the number of events of a segment of the plan.
    """
    match step:
        case Foresee():
            foresee(plan, ledger, store)
        case Stage(parts):
            _stage(plan, ledger, store, parts)
        case Remember():
            remember(plan, ledger, store)
        case Loosen():
            loosen(plan, ledger, store)
        case Reshape(generation, segments):
            reshape(plan, ledger, store, generation, segments)
        case Open(generation):
            open_(plan, ledger, store, generation)
        case Return(segments):
            give_back(plan, ledger, store, segments)
        case Tighten():
            tighten(plan.copy_id, plan.target, store, settled=True)
        case Restart(keep):
            restart(plan, ledger, store, keep=keep)
        case Join(segments):
            for index in segments:
                join(plan, ledger, store, index, events(index))
        case Decide():
            decide(ledger)
        case Commit(generations):
            commit(plan, ledger, store, generations)
        case Note(generations):
            note(ledger, generations)
        case Certify():
            total = sum(events(index) for index, one in enumerate(plan.segments) if one.length)
            certify(plan, store, digest=digest, events=total)
        case Forget():
            forget(plan, ledger, store)
        case _:
            raise TypeError(f"{step} is no step of an append")


def _stage(
    plan: StreamPlan, ledger: Ledger, store: Store, parts: Sequence[tuple[int, Part]]
) -> None:
    """Make staging segments, and delete them if their attempt is over by then."""
    attempt = _roll(ledger).attempt
    names = [
        staging_name(plan, ledger, store, index=index, part=part.number) for index, part in parts
    ]
    made = [name for name in names if store.create(name)]
    loaded = ledger.load()
    if loaded is None or loaded.roll.attempt != attempt or loaded.roll.aborted:
        for name in made:
            store.delete(name)


# -- the end of all


def abort(plan: StreamPlan, ledger: Ledger, store: Store) -> bool:
    """End an append that is not decided yet: nothing of it stays.

    The record comes first. From then on whoever looks gives the target its key ranges and its
    policy back, and nobody opens, joins or decides.

    Returns:
        Whether there was anything to end; not where all is appended.

    Raises:
        AbortRefused: the commit is decided.
    """
    if receipts.find(plan.copy_id, plan.target, store) is not None:
        tighten(plan.copy_id, plan.target, store)
        forget(plan, ledger, store)
        return False
    ledger.write([rolling.aborted_record()])
    roll = _roll(ledger)
    if not roll.aborted:
        raise AbortRefused(f"{plan.target} is being appended to, so the copy can't be aborted")
    stream = store.describe(plan.target)
    if stream is not None and not stream.sealed:
        if is_reshaped(plan, roll, _seen(stream)):
            give_back(plan, ledger, store, [segment.id for segment in stream.tail])
        tighten(plan.copy_id, plan.target, store, settled=roll.layout is not None)
    forget(plan, ledger, store)
    return True


def _stream(plan: StreamPlan, store: Store) -> Stream:
    """The target as it is now. StreamNotFound, TargetSealed."""
    stream = store.describe(plan.target)
    if stream is None:
        raise StreamNotFound(f"there is no stream {plan.target}")
    if stream.sealed:
        raise TargetSealed(f"{plan.target} is sealed", field="spec.target.stream")
    return stream


def _roll(ledger: Ledger) -> Roll:
    loaded = ledger.loaded
    if loaded is None:
        raise NoSuchSegment("the copy's journal is gone", segment=ledger.name)
    return loaded.roll
