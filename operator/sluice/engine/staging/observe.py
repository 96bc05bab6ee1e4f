"""Observe what the stores hold of a copy.

Other drivers may act meanwhile, so the order of the reads matters. The journal is read before the
target, since a copy marks its target complete before it deletes its journal. Staging segments are
read before attributes: if a segment is gone, it was merged, and the attribute says so already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.core.copy.effects import is_as_known
from sluice.core.copy.next_step import generation_of, is_behind
from sluice.core.copy.observed import Observed, SeenSource, SeenStaging, SeenTarget
from sluice.core.values import identity
from sluice.core.values.model import ScaleType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.journal import Journal
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.values.model import StreamName
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import SegmentReader, Stream, Topology
    from sluice.stores.writing import SegmentSink


TRIES = 10
"""How often a copy is observed again because another driver has gone on meanwhile."""


def staging_names(
    store: SegmentSink,
    copy_id: str,
    target: StreamName,
    *,
    segment: int,
    index: int,
    parts: int,
    attempt: int = 0,
) -> list[str]:
    """Return the full names of a segment's staging segments, one for each part.

    Args:
        store: the target store.
        copy_id: the copy.
        target: its target stream.
        segment: id of the target's segment, beside which staging lies.
        index: the segment's place in the plan.
        parts: how many parts the segment has.
        attempt: how often the segment was restarted.
    """
    salt = identity.attempt_salt(attempt)
    return [
        store.staging_name(target, segment, identity.staging_key(copy_id, index, part, salt))
        for part in range(parts)
    ]


def part_names(store: SegmentSink, plan: StreamPlan, bound: Sequence[int]) -> list[list[str]]:
    """Return the full names of all staging segments: a list for each segment of the plan.

    The list of a segment without bytes is empty.
    """
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
    plan: StreamPlan,
    copy_journal: CopyJournal,
    stores: Sequence[Source],
    target: Store,
    *,
    tries: int = TRIES,
) -> Observed:
    """Observe a copy once, in the order that the module's docstring explains.

    Args:
        plan: the plan.
        copy_journal: its journal.
        stores: the stores of the sources.
        target: the target store.
        tries: how often to look again because another driver has gone on meanwhile.
    """
    journal = copy_journal.load()
    if journal is not None:
        plan = journal.current
    segments: tuple[SeenStaging, ...] = ()
    if journal is not None and journal.target is not None:
        segments = observe_segments(plan, journal.target, target)
    described = target.describe(plan.target)
    if described is None and journal is not None:
        # Read the journal again. An abort deletes the target first and the journal last. A target
        # that was made and completed since has no journal any more.
        bound, journal = journal.target, copy_journal.load()
        if journal is not None and journal.target != bound:
            # Another driver has made and bound the target since. Old and new state together would
            # look as if the target had been deleted.
            return observe(plan, copy_journal, stores, target, tries=tries)
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
            config=described.config if plan.follow else None,
        )
    if (
        tries
        and journal is not None
        and _has_moved_on(journal, copy_journal, seen_target, segments)
    ):
        return observe(plan, copy_journal, stores, target, tries=tries - 1)
    seen = Observed(
        journal, seen_target, segments, scopeless=is_scopeless(journal, described, plan, target)
    )
    return with_sources(seen, plan, stores)


def is_scopeless(
    journal: Journal | None, described: Stream | None, plan: StreamPlan, store: Topology
) -> bool:
    """Tell whether the target's scope is missing too, if journal and target are."""
    missing = journal is None and described is None
    return missing and not store.scope_exists(plan.target.scope)


def observe_known(
    known: Observed, plan: StreamPlan, copy_journal: CopyJournal, stores: Sequence[Source]
) -> Observed | None:
    """Complete what a driver knows of a copy from its own steps: look at the journal and sources.

    A copy that is complete or aborted has no journal. So if the journal is as it was, the copy goes
    on, and no driver has amended its plan.

    Args:
        known: what the stores hold after this driver's last step, but for the sources.
        plan: the plan with its amendments.
        copy_journal: its journal, as this driver has read and written it.
        stores: the stores of the sources.

    Returns:
        None if the journal is another one, or tells of what another driver did.
    """
    if not (copy_journal.is_same() and is_as_known(copy_journal.loaded, known.journal)):
        return None
    return with_sources(replace(known, journal=copy_journal.loaded), plan, stores)


def with_sources(seen: Observed, plan: StreamPlan, stores: Sequence[Source]) -> Observed:
    """Add the sources to an observation, if bytes may have to be read from them."""
    if not any(
        state.published is None and state.verified != segment.length and segment.length
        for state, segment in zip(seen.segments, plan.segments, strict=False)
    ):
        return seen
    sources = observe_sources(plan, stores)
    renewed, outrun = missing_sources(plan, sources, stores)
    return replace(seen, sources=sources, renewed=renewed, outrun=outrun)


def _has_moved_on(
    journal: Journal,
    copy_journal: CopyJournal,
    target: SeenTarget | None,
    segments: Sequence[SeenStaging],
) -> bool:
    """Tell whether another driver went on during the observation, so that its parts do not fit.

    The journal is read again if the plan can be amended: the bytes that are published of a segment
    may be those of an amended plan.
    """
    plan = journal.current
    if target is not None and journal.target is not None:
        at = generation_of(plan, journal.target, target.segments)
        if at is not None and is_behind(plan, segments, at):
            return True
    if plan.on_truncation == "Fail" and not plan.move and not plan.follow:
        return False
    now = copy_journal.load()
    return now is None or now.current.segments != plan.segments


def observe_segments(
    plan: StreamPlan, bound: Sequence[int], store: Store
) -> tuple[SeenStaging, ...]:
    """Observe staging and target of each segment of the plan."""
    targets = [store.segment_name(plan.target, segment) for segment in bound]
    return observe_staged(plan, part_names(store, plan, bound), targets, store)


def observe_staged(
    plan: StreamPlan, names: Sequence[Sequence[str]], targets: Sequence[str], store: SegmentReader
) -> tuple[SeenStaging, ...]:
    """Observe staging and target of each segment of the plan, by their names.

    Args:
        plan: the plan.
        names: names of the parts' staging segments: a list for each segment of the plan.
        targets: for each segment of the plan, the name of the segment that it is published into.
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
    """Observe the sources' segments, in the plan's order. Each store is asked for all at once."""
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
    """Return the sources that exist without any of the plan's segments.

    Returns:
        Numbers of the sources that were deleted and made again, and of those that were truncated
        past the plan's segments: `Observed.renewed` and `Observed.outrun`.
    """
    if sources is None:
        return frozenset(), frozenset()
    strange = _strange(plan, sources, stores)
    outrun = frozenset(number for number in strange if _is_outrun(plan, number, stores))
    return strange - outrun, outrun


def _strange(
    plan: StreamPlan, sources: Sequence[SeenSource | None], stores: Sequence[Source]
) -> frozenset[int]:
    """Return the numbers of the sources that exist and have none of the plan's segments.

    A stream that was made again may be one of them: stores may go on counting its segments from
    where the deleted stream ended.
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
    """Tell whether a source once had the plan's segments, and so was truncated past all of them."""
    source = plan.sources[number]
    planned = next(one.id for one in plan.segments if one.source == number)
    return stores[source.store].had(source.stream, planned)
