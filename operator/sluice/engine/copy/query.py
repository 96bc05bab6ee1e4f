"""The operator's own calls about a copy: ask for its state, and end it. Only metadata is read.

The operator does not rely on a driver's report. It looks at the target itself, and compares it with
the plan, before it says that a copy is complete.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import structlog

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.copy.plan import pinned
from sluice.core.values import identity
from sluice.core.values.positions import MappedSegment, MappedSource, PositionMap
from sluice.core.workloads.answers import UNVERIFIED, Planned
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.access.source_runs import named
from sluice.engine.append import appends
from sluice.engine.copy.abort import abort, abort_unread, finish_abort, sweep
from sluice.engine.copy.completion import whole
from sluice.engine.copy.leaving import leave
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.until_live import UntilLive
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.positions.position_map import position_map
from sluice.engine.slices.read_leases import release
from sluice.engine.tasks.runner import Runner
from sluice.errors import (
    AbortRefused,
    InfrastructureError,
    InvalidSpec,
    JournalDamaged,
    SluiceError,
    StreamNotFound,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import StoreAddress, StreamName
    from sluice.core.workloads.answers import Answer
    from sluice.engine.access.source_runs import Place
    from sluice.engine.tasks.slices import Slice, SliceResult
    from sluice.stores.base import Segments, Source, Store
    from sluice.stores.reading import Topology


_log = structlog.get_logger()

PUBLISH_PATIENCE = 20.0
"""Seconds for which store errors are retried while publishing is finished."""


def ask(
    request: CopyRequest,
    *,
    sources: Sequence[tuple[StoreAddress, Place]],
    target: tuple[StoreAddress, Store],
    known: StreamPlan | None,
) -> Answer:
    """Return the result of a copy that is complete, otherwise its plan. Nothing is changed.

    Args:
        request: the copy.
        sources: the stores of its sources, each with its address.
        target: the target store and its address.
        known: the recorded plan, to compare a complete target with.

    Raises:
        SpecError, BackendError, IntegrityError: as `resolve` does. TargetReplaced also where a
            target that is marked complete does not hold what the plan asked for.
    """
    found = resolve(request, [place for _, place in sources], target[1])
    if found.plan is not None:
        addresses = pinned(found.plan, [address for address, _ in sources])
        plan = StreamCopyPlan(sources=addresses, target=target[0], streams=(found.plan,))
        return Planned(plan=plan, recorded=found.recorded)
    digest = found.digest or UNVERIFIED
    complete = whole(request, target[1], digest, known=known, receipt=found.receipt)
    if found.receipt is not None:
        return replace(complete, held=held(request.target, target[1]))
    return replace(complete, positions=positions(named(request, known), target[1]))


def held(name: StreamName, store: Source) -> int | None:
    """Return the bytes that a stream holds now, between its head and its tail; None if unknown.

    Other programs write, truncate and delete the stream meanwhile. It may have a history that is
    too long to look at. A copy that is complete does not fail for that.
    """
    try:
        made = store.generations(name)
        names = [store.segment_name(name, segment.id) for one in made for segment in one]
        infos = store.infos(names)
    except SluiceError as error:
        _log.warning("a stream's size is unknown", stream=str(name), error=str(error))
        return None
    return sum(info.length - info.start for info in infos if info is not None)


def positions(request: CopyRequest, store: Store) -> PositionMap | None:
    """Return the map of positions of a complete target; None if no copied segment is left."""
    try:
        mapped = position_map(request.copy_id, request.target, store, follow=request.follow)
    except (StreamNotFound, InvalidSpec):  # deleted or made again since it was found complete
        return None
    if not mapped:
        return None
    return PositionMap(
        target=str(request.target),
        same_positions=all(one.shift == 0 and one.source == one.target for one in mapped),
        sources=tuple(
            MappedSource(
                stream=str(source.stream),
                segments=tuple(
                    MappedSegment(
                        segment=one.source,
                        start=one.start,
                        end=one.end,
                        target_segment=one.target,
                        shift=one.shift,
                    )
                    for one in mapped
                    if one.stream == number
                ),
            )
            for number, source in enumerate(request.sources)
        ),
    )


class How(StrEnum):
    """How a copy was ended."""

    NOTHING = "nothing was left"
    DROPPED = "what was staged was dropped"
    SEALED = "what was staged was dropped, and the source is sealed and stays so"
    FINISHED = "publishing had begun and was finished"
    BEGINNING = "a beginning is appended and stays; a copy of this name would append the rest"
    SWEPT = "left-over segments were dropped"
    LEFT = "it was live: the target stays as far as it has come, and nothing follows its source"
    UNREAD = "what was found was dropped, though the journal could not be read; the source stays"


class CopyEnded(NamedTuple):
    """How a copy was ended, and how many left-over segments were dropped."""

    how: How
    swept: int = 0


def abandon(request: CopyRequest, *, sources: Sequence[Place] | None, target: Store) -> str:
    """End a copy as `end` does, and return in words what was done."""
    ended = end(request, sources=sources, target=target)
    match ended.how:
        case How.SEALED:
            return f"{How.DROPPED}; {request.origin} is sealed and stays so"
        case How.SWEPT:
            return f"{ended.swept} {How.SWEPT}"
        case _:
            return ended.how.value


def end(request: CopyRequest, *, sources: Sequence[Place] | None, target: Store) -> CopyEnded:
    """End a copy: abort it, or finish it where publishing has begun.

    If it is live, its target stays as far as it has come.

    This is safe to repeat. No driver of the copy must run meanwhile. A journal that cannot be read,
    or is not the copy's, does not keep an unpublished copy from its end: see `abort_unread`.

    Args:
        request: the copy.
        sources: the stores of its sources, if they can be reached. Nothing is written to live
            streams; leases on runs of archives are given back.
        target: the target store.

    Raises:
        InfrastructureError: publishing could not be finished.
        JournalDamaged: publishing has begun, or the copy appends: a person has to decide.
    """
    try:
        return _end(request, sources=sources, target=target)
    except JournalDamaged as damaged:
        if request.append:
            raise
        _log.warning("the copy's journal is not believed", target=str(request.target))
        try:
            dropped = abort_unread(request.copy_id, request.target, target)
        except AbortRefused:
            raise damaged from None
        return CopyEnded(How.UNREAD if dropped else How.NOTHING)


def _end(request: CopyRequest, *, sources: Sequence[Place] | None, target: Store) -> CopyEnded:
    """End a copy as `end` does, by its journal. Raise JournalDamaged if that cannot be read."""
    if request.follow and leave(request.copy_id, request.target, target):
        return CopyEnded(How.LEFT)
    finish_abort(request.copy_id, request.target, target)
    remembered = request.move or any(source.archive for source in request.sources)
    journal = _journal(request, target).load() if remembered else None
    try:
        if abort(request.copy_id, request.target, target):
            if journal is not None and sources is not None:
                release(journal.plan, sources)
            sealed = journal is not None and journal.drained is not None
            return CopyEnded(How.SEALED if sealed else How.DROPPED)
    except AbortRefused:
        return _finish(request, sources=sources, target=target)
    if not (request.append or _ours(request, target)):
        return CopyEnded(How.NOTHING)
    journal = _journal(request, target).load()
    if journal is not None and journal.target is not None:  # complete, but perhaps not sealed
        return _finish(request, sources=sources, target=target)
    swept = sweep(request.copy_id, request.target, target)
    return CopyEnded(How.SWEPT if swept else How.NOTHING, swept)


def _journal(request: CopyRequest, target: Segments) -> CopyJournal:
    return CopyJournal(target, request.copy_id, request.target, request)


def _ours(request: CopyRequest, target: Topology) -> bool:
    stream = target.describe(request.target)
    return stream is not None and identity.is_ours(stream.config.tags, request.copy_id)


class _NoSlices:
    """An executor that refuses to move bytes: once publishing has begun, only metadata is left."""

    slots = 1

    def submit(self, work: Slice) -> Future[SliceResult]:
        """Return no result but InfrastructureError."""
        future: Future[SliceResult] = Future()
        error = InfrastructureError(f"{work.size} bytes would have to be moved")
        future.set_exception(error)
        return future

    def check(self, rate: float | None) -> None:
        """Do nothing: no task runs."""

    def stop(self, grace: float) -> None:
        """Do nothing: no task runs."""


def _finish(request: CopyRequest, *, sources: Sequence[Place] | None, target: Store) -> CopyEnded:
    """Publish the remaining segments, and carry out the steps after that."""
    copy_journal = _journal(request, target)
    journal = copy_journal.load()
    if journal is None:
        return CopyEnded(How.FINISHED)
    if journal.plan.append and appends.leave_beginning(journal.plan, copy_journal, target):
        return CopyEnded(How.BEGINNING)
    count = 1 + max(source.store for source in journal.plan.sources)
    # All bytes are staged and verified, so no source is read. Any store can stand for one.
    stores = [
        target if isinstance(one, ArchiveRoot) else one for one in sources or [target] * count
    ]
    work = UntilLive(journal.plan, 0, stores, target, keep=True)
    (report,) = Runner([work], executor=_NoSlices(), patience=PUBLISH_PATIENCE).run()
    if report.error is not None:
        raise InfrastructureError(
            f"publishing could not be finished: {report.error.message}",
            remedy=report.error.remedy,
        )
    if journal.plan.follow and leave(request.copy_id, request.target, target, ready=True):
        return CopyEnded(How.LEFT)
    return CopyEnded(How.FINISHED)
