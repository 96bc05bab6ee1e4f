"""Looking at what the stores hold of a copy.

The order of looking matters where other drivers act meanwhile: the journal before the target, since
a copy says on its target that it is whole before it deletes its journal; staging segments before
attributes, since a segment that is gone was merged, and the attribute then says so already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.copy.next_step import generation_of, is_behind
from sluice.core.copy.observed import Observed, SeenSource, SeenStaging, SeenTarget
from sluice.core.values import identity
from sluice.core.values.model import ScaleType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import StreamName
    from sluice.engine.journal.ledger import Ledger
    from sluice.stores.base import Source, Store


TRIES = 10
"""Looks at a target that another driver scales meanwhile; each time it has gone on."""


def staging_names(
    store: Store,
    copy_id: str,
    target: StreamName,
    *,
    segment: int,
    index: int,
    parts: int,
    attempt: int = 0,
) -> list[str]:
    """The full names of a segment's staging segments, by the target segment's id and place."""
    salt = identity.attempt_salt(attempt)
    return [
        store.staging_name(target, segment, identity.staging_key(copy_id, index, part, salt))
        for part in range(parts)
    ]


def part_names(store: Store, plan: StreamPlan, bound: Sequence[int]) -> list[list[str]]:
    """The full names of all staging segments: one list a segment of the plan, empty if it is."""
    return [
        staging_names(
            store,
            plan.copy_id,
            plan.target,
            segment=target,
            index=i,
            parts=len(segment.parts),
            attempt=segment.attempt,
        )
        for i, (segment, target) in enumerate(zip(plan.segments, bound, strict=True))
    ]


def observe(
    plan: StreamPlan, ledger: Ledger, stores: Sequence[Source], target: Store, *, tries: int = TRIES
) -> Observed:
    """One observation, in the order that the module's text explains.

    Args:
        plan: the plan.
        ledger: its journal.
        stores: where the sources are.
        target: where the target is.
        tries: how often it is looked again because another driver went on meanwhile.
    """
    journal = ledger.load()
    if journal is not None:
        plan = journal.current
    segments: tuple[SeenStaging, ...] = ()
    if journal is not None and journal.target is not None:
        segments = observe_segments(plan, journal.target, target)
    described = target.describe(plan.target)
    if described is None and journal is not None:
        # An abort deletes the target first and the journal last; and a target that was made and
        # finished since has no journal any more.
        bound, journal = journal.target, ledger.load()
        if journal is not None and journal.target != bound:
            # Another driver has made and bound it since: a look at the old state and the new one
            # would say that it was deleted.
            return observe(plan, ledger, stores, target, tries=tries)
        if journal is None:
            described = target.describe(plan.target)
    seen_target = None
    if described is not None:
        seen_target = SeenTarget(
            tags=described.config.tags,
            segments=tuple(segment.id for segment in described.tail),
            head=described.head,
            restless=described.config.scaling.type is not ScaleType.FIXED,
            sealed=described.sealed,
        )
    if tries and journal is not None and _has_moved_on(journal, ledger, seen_target, segments):
        return observe(plan, ledger, stores, target, tries=tries - 1)
    sources = None
    if any(
        state.published is None and state.verified != segment.length and segment.length
        for state, segment in zip(segments, plan.segments, strict=False)
    ):
        sources = observe_sources(plan, stores)
    renewed, outrun = missing_sources(plan, sources, stores)
    return Observed(
        journal=journal,
        target=seen_target,
        segments=segments,
        sources=sources,
        renewed=renewed,
        outrun=outrun,
    )


def _has_moved_on(
    journal: Journal,
    ledger: Ledger,
    target: SeenTarget | None,
    segments: Sequence[SeenStaging],
) -> bool:
    """Whether another driver went on while this one looked, so that what it saw does not agree.

    What is published of a segment may be what was planned since, where its source had lost bytes.
    """
    plan = journal.current
    if target is not None and journal.target is not None:
        at = generation_of(plan, journal.target, target.segments)
        if at is not None and is_behind(plan, segments, at):
            return True
    if plan.on_truncation == "Fail" and not plan.move:
        return False
    now = ledger.load()
    return now is None or (now.amended, now.drained) != (journal.amended, journal.drained)


def observe_segments(
    plan: StreamPlan, bound: Sequence[int], store: Store
) -> tuple[SeenStaging, ...]:
    """Staging and target of each segment of the plan."""
    targets = [store.segment_name(plan.target, segment) for segment in bound]
    return observe_staged(plan, part_names(store, plan, bound), targets, store)


def observe_staged(
    plan: StreamPlan, names: Sequence[Sequence[str]], targets: Sequence[str], store: Store
) -> tuple[SeenStaging, ...]:
    """Each segment of the plan, by the names of its parts and of what they are published into.

    Args:
        plan: the plan.
        names: of staging segments: one list a segment of the plan.
        targets: what they are merged into at last.
        store: the target store.
    """
    infos = iter(store.infos([*targets, *(name for parts in names for name in parts)]))
    target_infos = [next(infos) for _ in targets]
    part_infos = [tuple(next(infos) for _ in parts) for parts in names]
    asked = []
    for name, parts in zip(targets, names, strict=True):
        whole = parts[0] if parts else name
        asked += [
            (whole, identity.stitch_attribute(plan.copy_id)),
            (whole, identity.verified_attribute(plan.copy_id)),
            (name, identity.publish_attribute(plan.copy_id)),
        ]
    values = iter(store.attributes(asked))
    return tuple(
        SeenStaging(
            parts=parts,
            stitched=next(values),
            verified=next(values),
            published=next(values),
            target=info,
        )
        for parts, info in zip(part_infos, target_infos, strict=True)
    )


def observe_sources(plan: StreamPlan, stores: Sequence[Source]) -> tuple[SeenSource | None, ...]:
    """The sources' segments as they are now; each store is asked once for all of its own."""
    found: list[SeenSource | None] = [None] * len(plan.segments)
    for number, store in enumerate(stores):
        places = [
            i for i, segment in enumerate(plan.segments) if plan.source_of(segment).store == number
        ]
        names = [
            store.segment_name(plan.source_of(plan.segments[i]).stream, plan.segments[i].id)
            for i in places
        ]
        infos = store.infos(names)
        created = store.attributes([(name, store.creation_time) for name in names])
        for place, info, when in zip(places, infos, created, strict=True):
            found[place] = None if info is None else SeenSource(info, when or 0)
    return tuple(found)


def missing_sources(
    plan: StreamPlan, sources: Sequence[SeenSource | None] | None, stores: Sequence[Source]
) -> tuple[frozenset[int], frozenset[int]]:
    """The sources that are there without the plan's segments; see Observed.renewed, .outrun."""
    if sources is None:
        return frozenset(), frozenset()
    strange = _strange(plan, sources, stores)
    outrun = frozenset(number for number in strange if _is_outrun(plan, number, stores))
    return strange - outrun, outrun


def _strange(
    plan: StreamPlan, sources: Sequence[SeenSource | None], stores: Sequence[Source]
) -> frozenset[int]:
    """The sources that are there, and have none of the plan's segments.

    Stores may number the segments of a stream that is made again on from where it was deleted.
    """
    there = {
        segment.source
        for segment, source in zip(plan.segments, sources, strict=True)
        if source is not None
    }
    return frozenset(
        number
        for number, source in enumerate(plan.sources)
        if number not in there and stores[source.store].describe(source.stream) is not None
    )


def _is_outrun(plan: StreamPlan, number: int, stores: Sequence[Source]) -> bool:
    """Whether a source once had the plan's segments: then it was truncated past all of them."""
    source = plan.sources[number]
    planned = next(one.id for one in plan.segments if one.source == number)
    return stores[source.store].had(source.stream, planned)
