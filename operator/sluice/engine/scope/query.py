"""Answer the operator's questions on a scope's copy, and end copies. Only metadata is read."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.copy.plan import StreamPlan
from sluice.core.scope.scope import MOST_CUT, Ends, StreamResult, StreamState
from sluice.core.scope.selection import Chosen
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import EndCut, Following, Planned, ScopeEnded, ScopePlanned
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.core.workloads.scope_log import ScopeState, planned_results
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import live
from sluice.engine.append import receipts
from sluice.engine.archive.moving import rest_of
from sluice.engine.archive.query import delete_notes
from sluice.engine.copy.completion import whole
from sluice.engine.copy.query import How, end
from sluice.engine.follow.state import cut_of
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.scope import moving
from sluice.engine.scope.object_log import log_of
from sluice.engine.scope.planners.archives import archive_of, done, entry_of
from sluice.engine.scope.planners.base import failed, is_for_all
from sluice.engine.scope.planners.copies import copied
from sluice.engine.scope.planning import answer, at, holds, leave_to_driver, plan_next, told_kept
from sluice.engine.scope.recorded_runs import records_of
from sluice.engine.scope.streams import ScopeStreams
from sluice.errors import (
    CopyAborted,
    InfrastructureError,
    IntegrityError,
    JournalDamaged,
    NoSuchSegment,
    ScopeNotFound,
    SluiceError,
    TargetReplaced,
)

if TYPE_CHECKING:
    from sluice.core.scope.request import ScopeRequest
    from sluice.core.workloads.answers import Complete
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.planners.base import Item
    from sluice.engine.scope.planning import Site
    from sluice.stores.base import Store

    _Said = tuple[StreamResult, Item | None]
    """A stream's recorded result, and its plan, unless an earlier run copied it."""


_NOTHING: Final = "nothing was left"


def ask_scope(
    request: ScopeRequest,
    *,
    source: Site,
    target: Site,
    known: Plan | None = None,
    again: bool = False,
    unseen: bool = False,
) -> Planned | ScopeEnded:
    """Answer as `resolve_scope` does, and verify what drivers recorded.

    The target of each copied stream is looked for and checked against its plan. A stream whose
    target is missing or differs counts as failed. Set `unseen` if only drivers can read the source.
    A driver is then left to plan the next run.
    """
    state = log_of(target[1], request.scope_id, request).load()
    if known is not None and not again and holds(known, request, source, target, state):
        if isinstance(known, ScopeCopyPlan):
            ended = _finished(request, known, source[1], target[1])
            return Planned(plan=known) if ended is None else _numbered(request, ended, target[1])
        return Planned(plan=known)
    planner = leave_to_driver if unseen else plan_next
    found = answer(
        state,
        source=source,
        target=target,
        again=again,
        plan=partial(planner, request, source=source, target=target),
        check=partial(_checked, request, source[1], target[1]),
    )
    if isinstance(found, ScopeEnded):
        return _numbered(request, found, target[1])
    if state is None or not (request.follow and found.recorded):
        return found
    # Streams that have joined are in the log alone: the plan that the operator stores stays.
    begun = at(state.begun, source, target)
    if state.live:
        return Following(plan=begun, recorded=True)
    return ScopePlanned(plan=begun, recorded=True)


def _numbered(request: ScopeRequest, ended: ScopeEnded, target: Place) -> ScopeEnded:
    """Add to the result of a scope's run how it is recorded, and which streams are gone.

    The times are those of the record: a plan that was made anew has the times of its own making.
    """
    if request.series is None:
        return ended
    record = records_of(request, target).find(request, ended)
    if record is None:
        return ended
    times = {"begin": record.begin, "end": record.end}
    scope = ended.plan.scope.model_copy(update=times)
    plan = ended.plan.model_copy(update={"scope": scope})
    return replace(ended, plan=plan, number=record.number, gone=record.gone)


def plan_run(request: ScopeRequest, run: int, *, source: Site, target: Site) -> ScopeCopyPlan:
    """Return the plan of a run that is left to its driver to plan.

    The plan in the log holds, unless it is of an earlier run that is over. A new plan may have
    nothing to do. The driver has to record it all the same, or the operator would not learn of it.

    Args:
        request: the copy.
        run: the run's number.
        source: the place to read from, with its address.
        target: the place to write to, with its address.

    Raises:
        SluiceError: as `resolve_scope`.
    """
    state = log_of(target[1], request.scope_id, request).load()
    if state is None:
        return plan_next(request, None, source=source, target=target).plan
    recorded = at(state.plan, source, target)
    if not state.is_over or state.run >= run:
        return recorded
    ended = ScopeEnded(plan=recorded, results=state.streams)
    ended = _checked(request, source[1], target[1], ended)
    return plan_next(request, ended, source=source, target=target).plan


def _checked(request: ScopeRequest, source: Place, target: Place, ended: ScopeEnded) -> ScopeEnded:
    """Return the result of a copy, with each stream checked against the target."""
    plans = ended.plan.items
    said: list[_Said] = [
        (result, plans[place] if place < len(plans) else None)
        for place, result in enumerate(ended.results)
    ]
    there = _there(request, target)
    check = partial(_check, request, source, target, there)
    checked = parallel.each_once("check", check, said, key=lambda one: repr(one[0]))
    return ScopeEnded(plan=ended.plan, results=tuple(checked))


def _there(request: ScopeRequest, target: Place) -> frozenset[str]:
    """Return the names of the streams in the target's scope, or of the archives in its folder."""
    if isinstance(target, ArchiveRoot):
        return frozenset(target.names(request.target))
    try:
        return frozenset(target.list_streams(request.target, internal=True))
    except ScopeNotFound:
        return frozenset()


def _check(
    request: ScopeRequest, source: Place, target: Place, there: frozenset[str], said: _Said
) -> StreamResult:
    """Return the result of one stream, checked against the target."""
    result, plan = said
    if result.state is not StreamState.COPIED:
        return result
    try:
        if result.target in there and (found := _found(request, result, plan, source, target)):
            return found
        raise TargetReplaced(
            f"{request.target}/{result.target} was copied, and is not there any more, or not as "
            "this copy made it",
            remedy="Have what failed tried again, to copy it anew.",
        )
    except SluiceError as error:
        if is_for_all(error):
            raise
        return failed(result.stream, result.target, error)


def _found(
    request: ScopeRequest, result: StreamResult, plan: Item | None, source: Place, target: Place
) -> StreamResult | None:
    """Return a stream's result as its target tells it; None if the target is not complete."""
    if isinstance(target, ArchiveRoot):
        one = Chosen(result.stream, result.target)
        archive = archive_of(request.run_of(*one), target)
        return done(request, one, archive, archive.head(), live(source))
    stream = plan if isinstance(plan, StreamPlan) else None
    complete = _complete(request, result, stream, target)
    if complete is None:
        return None
    found = _confirmed(result, complete)
    if not request.follow:
        return found
    cut = cut_of(request.of(result.stream, result.target), target) or EndCut()
    ends = (text if text and len(text) <= MOST_CUT else None for text in cut)
    update = {"ended": result.ended, "ends": Ends(**dict(zip(EndCut._fields, ends, strict=True)))}
    return found.model_copy(update=update)


def _complete(
    request: ScopeRequest, result: StreamResult, plan: StreamPlan | None, store: Store
) -> Complete | None:
    """Return what the target tells of a stream's copy; None if the copy is not complete."""
    wanted = request.of(result.stream, result.target)
    stream = store.describe(wanted.target)
    if stream is None:
        return None
    digest = identity.completed(stream.config.tags, wanted.copy_id)
    if digest is not None:
        return whole(wanted, store, digest, known=plan, stream=stream)
    if not wanted.append:
        return None
    receipt = receipts.find(wanted.copy_id, wanted.target, store)
    if receipt is None:
        return None
    return whole(wanted, store, receipt.digest, known=plan, receipt=receipt)


def _confirmed(result: StreamResult, complete: Complete) -> StreamResult:
    """Return a result as the target tells it. Numbers that it cannot tell any more are kept."""
    found = copied(result.stream, result.target, complete)
    unknown: dict[str, int | None] = {}
    if complete.bytes is None:
        unknown["bytes"] = result.bytes
    if complete.events is None:
        unknown["events"] = result.events
    return found.model_copy(update=unknown)


def _finished(
    request: ScopeRequest, known: ScopeCopyPlan, source: Place, target: Place
) -> ScopeEnded | None:
    """Return the result of a plan of which no log tells, if all its streams are done."""
    there = _there(request, target)
    waits = known.follows and not known.items  # for the streams that the scope gets
    if waits or not all(plan.target_name in there for plan in known.items):
        return None
    results = planned_results(known)
    pairs = [*zip(results, known.items, strict=False)]

    def look(pair: tuple[StreamResult, Item]) -> StreamResult | None:
        result, plan = pair
        try:
            return _found(request, result, plan, source, target)
        except TargetReplaced as error:
            return failed(result.stream, result.target, error)

    # Usually no stream is done, and the first one shows that.
    found = [look(pair) for pair in pairs[:1]]
    if None not in found:
        found += parallel.each_once("found", look, pairs[1:], key=lambda pair: pair[0].stream)
    ended = tuple(one for one in found if one is not None)
    if len(ended) < len(pairs):
        return None
    whole = ScopeEnded(plan=known, results=(*ended, *results[len(pairs) :]))
    return told_kept(whole, source, coming=False)


def abandon_scope(
    request: ScopeRequest, *, source: Place | None, target: Place, known: Plan | None
) -> str:
    """Delete all unpublished bytes of a scope's copy, and its log. Copied streams stay.

    The copy is called off first, so that a driver that still runs begins no other stream. Then
    unfinished streams are ended one by one, as by `copy.query.end`. After a complete move the
    source's scope is deleted, unless a driver has done so. Safe to repeat.

    Args:
        request: the copy.
        source: the place that is read, if it can be reached.
        target: the place that is written to.
        known: the plan that the operator stored, used if there is no readable log.

    Returns:
        What was done, for people.

    Raises:
        SluiceError: something could not be dropped or finished.
    """
    planned = None
    if isinstance(known, ScopeCopyPlan) and _is_of(request, known):
        planned = ScopeState(known)
    log = log_of(target, request.scope_id, request)
    try:
        state = log.load()
    except JournalDamaged:
        if planned is None:
            raise
        words = _end_all(request, source, target, planned)
        log.discard()
        return words
    if state is None:
        words = _NOTHING if planned is None else _end_all(request, source, target, planned)
        log.delete()
        return words
    said: list[str] = []
    while state is not None:
        with suppress(NoSuchSegment, CopyAborted):
            log.call_off()
        said.append(_end_all(request, source, target, state))
        # If a driver wrote down results meanwhile, it may have begun a stream before it was told.
        state = None if log.delete() else log.load()
    return said[0]


def _is_of(request: ScopeRequest, plan: ScopeCopyPlan) -> bool:
    """Tell whether a plan is of this copy. A user may have replaced the stored plan by another."""
    scope = plan.scope
    return (scope.scope_id, scope.source, scope.target, scope.move) == (
        request.scope_id,
        request.source,
        request.target,
        request.move,
    )


def _end_all(request: ScopeRequest, source: Place | None, target: Place, state: ScopeState) -> str:
    """End each stream's copy that is not done. Return a text about it for people.

    Raises:
        SluiceError: some streams could not be ended. Each was tried, unless an error stopped all.
    """
    results = state.streams
    left = [one for one in results if one.state is not StreamState.COPIED]
    there = _there(request, target)
    found = parallel.each(partial(_end, request, source, target, there), left)
    errors = [one for one in found if isinstance(one, SluiceError)]
    if errors:
        if len(errors) > 1:
            errors[0].add_note(f"so it is with {len(errors) - 1} other streams")
        raise errors[0]
    if source is not None:  # even streams that were not begun hold leases of the runs they read
        places = [at for at in range(len(state.plan.items)) if at not in state.results]
        ScopeStreams(state.plan, [source], target).give_back_all(places)
    parts = []
    if len(left) < len(results):
        parts.append(f"{len(results) - len(left)} of {len(results)} streams are copied and stay")
    counts = Counter(found)
    parts += [f"of {counts[how]}, {how}" for how in How if counts[how]]
    if not left and source is not None:
        kept = moving.delete_source_scope(state.plan, source)
        parts += [f"the scope {request.source} is kept: {kept}"] if kept else []
    return "; ".join(parts) or _NOTHING


def _end(
    request: ScopeRequest,
    source: Place | None,
    target: Place,
    there: frozenset[str],
    result: StreamResult,
) -> How | SluiceError:
    """End one stream's copy. Return an error of this stream, so that others are ended as well."""
    try:
        if isinstance(target, ArchiveRoot):
            if result.target not in there:
                return How.NOTHING
            return _end_archiving(request, source, target, result)
        wanted = request.of(result.stream, result.target)
        if (
            result.target not in there
            and not CopyJournal(target, wanted.copy_id, wanted.target).is_there()
        ):
            return How.NOTHING  # not begun, which may hold for thousands of streams
        return end(wanted, sources=None if source is None else [source], target=target).how
    except (InfrastructureError, IntegrityError) as error:
        return error


def _end_archiving(
    request: ScopeRequest, source: Place | None, target: ArchiveRoot, result: StreamResult
) -> How:
    """End the unfinished runs of a stream's archive. Recorded runs stay."""
    wanted = request.run_of(result.stream, result.target)
    archive = archive_of(wanted, target)
    works = (wanted.copy_id, rest_of(wanted.copy_id))
    dropped = [delete_notes(archive.objects, one) for one in works]
    # A move may have recorded its first run and sealed the stream, and noted nothing since.
    begun = any(dropped) or entry_of(archive.head(), wanted.copy_id) is not None
    if begun and request.move and source is not None:
        stream = live(source).describe(StreamName(scope=request.source, stream=result.stream))
        if stream is not None and stream.sealed:
            return How.SEALED
    return How.DROPPED if any(dropped) else How.NOTHING
