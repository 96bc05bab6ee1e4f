"""Plan a copy: find what is recorded of it in the target store, or make a new plan."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from sluice.core.copy.planner import Range, plan_stream
from sluice.core.values import identity
from sluice.core.values.groups import GroupName
from sluice.engine.access.source_runs import choose, with_what_is_lost, writable
from sluice.engine.append import receipts
from sluice.engine.copy.bounds import take_bounds
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.errors import (
    InvalidSpec,
    ReaderGroupNotFound,
    SourceNotFound,
    StoreBusy,
    TargetExists,
    TargetScopeNotFound,
    TargetSealed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.values.model import StreamName
    from sluice.engine.access.source_runs import Place
    from sluice.engine.append.receipts import Receipt
    from sluice.stores.base import Source, Store
    from sluice.stores.reading import Stream, Topology


class Resolved(NamedTuple):
    """What the stores say of a request: a plan, a digest, or neither.

    Attributes:
        plan: the plan. None if the copy is complete with nothing left to do, or is not planned yet.
        recorded: whether the plan is recorded in the target store.
        digest: the digest under which the copy is complete.
        receipt: the receipt of a copy that has appended.
        append: without plan and digest, whether the copy appends to the target.
    """

    plan: StreamPlan | None
    recorded: bool = False
    digest: str | None = None
    receipt: Receipt | None = None
    append: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the copy is yet to be planned."""
        return self.plan is None and self.digest is None


def resolve(request: CopyRequest, sources: Sequence[Place], target: Store) -> Resolved:
    """Return the recorded plan of a copy, or a new one, or its result. Nothing is changed.

    Args:
        request: the copy.
        sources: the stores of its sources. Runs of archives are chosen for a new plan only.
        target: the store to write to.

    Raises:
        StoreBusy, TargetExists, TargetSealed, TargetScopeNotFound, SourceNotFound,
        SourceUnsupported, SourceReplaced: as `check_target` and `make_plan` do.
        ArchiveNotFound, ArchiveDamaged, SourceTruncated, InvalidSpec: as `choose` does.
    """
    found = begun(request, target)
    if not found.is_new:
        return found
    chosen, stores = choose(request, sources)
    plan = make_plan(chosen, stores, append=found.append)
    refuse_itself(plan, target)
    refuse_strange_groups(request, stores)
    return Resolved(plan)


def begun(request: CopyRequest, target: Store) -> Resolved:
    """Return what the target store has of a copy: plan, digest, or neither. Nothing is changed.

    Raises:
        StoreBusy, TargetExists, TargetScopeNotFound: as `is_others` and `check_target` do.
    """
    # Read the journal before the target: a copy marks its target complete, then deletes its
    # journal.
    copy_journal = CopyJournal(target, request.copy_id, request.target, request)
    journal = copy_journal.load()
    if journal is not None and journal.plan.append:
        return Resolved(journal.plan, recorded=True)
    append, receipt = False, None
    if request.append and journal is None:
        append = is_others(request.copy_id, request.target, target)
    if append:
        receipt = receipts.find(request.copy_id, request.target, target)
        digest = None if receipt is None else receipt.digest
    else:
        there = target.describe(request.target)
        digest = check_target(
            request.copy_id, request.target, there, target, make_scope=request.make_scope
        )
    if digest is not None:
        # Read the journal again: as long as there is one, steps are left to do after the mark. And
        # another driver may have begun one since.
        journal = copy_journal.load()
        if journal is None or journal.target is None:
            return Resolved(None, digest=digest, receipt=receipt)
    if journal is not None:
        return Resolved(journal.plan, recorded=True)
    return Resolved(None, append=append)


def is_others(copy_id: str, name: StreamName, target: Topology) -> bool:
    """Tell whether the target exists and was not made by this copy.

    Raises:
        StoreBusy: another copy is still making it. That copy would take appended bytes for damage.
    """
    there = target.describe(name)
    if there is None or identity.is_ours(there.config.tags, copy_id):
        return False
    if identity.is_followed(there.config.tags):
        raise taken(name)
    if identity.is_unfinished(there.config.tags):
        raise StoreBusy(
            f"{name} is being made by another copy",
            remedy="Nothing: this copy is appended when that one is done.",
        )
    return True


def taken(name: StreamName) -> StoreBusy:
    """Return the error that a stream follows its source by another copy."""
    return StoreBusy(
        f"{name} follows its source by another copy, and takes no other events meanwhile",
        remedy="Take another target, or end that copy: set its cutover or stopWhen, or delete it. "
        "This copy is appended when that one has ended.",
    )


def check_append(plan: StreamPlan, copy_journal: CopyJournal, there: Stream | None) -> None:
    """Check that an append without a receipt may start.

    Args:
        plan: the plan of the append.
        copy_journal: its journal.
        there: the target, described after the search for a receipt.

    Raises:
        TargetSealed: the target takes no appends, and no journal of this copy is there. A copy with
            a journal goes on, so that it can clean up.
    """
    if there is not None and there.sealed and not copy_journal.is_there():
        raise TargetSealed(
            f"{plan.target} is sealed, so nothing is appended to it", field="spec.target.stream"
        )


def check_target(
    copy_id: str, name: StreamName, there: Stream | None, target: Topology, *, make_scope: bool
) -> str | None:
    """Check that the target may be made. Return the digest of a complete target, else None.

    Args:
        copy_id: the copy.
        name: its target stream.
        there: the target as it was described just now.
        target: the store to write to.
        make_scope: whether the copy makes the scope if it does not exist.

    Raises:
        TargetExists: the stream exists, and this copy did not make it.
        TargetScopeNotFound: its scope does not exist, and the copy does not make it.
    """
    if there is None:
        if not (make_scope or target.scope_exists(name.scope)):
            raise TargetScopeNotFound(
                f"scope {name.scope!r} does not exist in the target store",
                field="spec.target.scope",
            )
        return None
    if not identity.is_ours(there.config.tags, copy_id):
        if identity.is_followed(there.config.tags):
            raise TargetExists(
                f"{name} exists, and follows its source by another copy",
                field="spec.target.stream",
                remedy="Name another target. Or end the other copy, and delete the stream or "
                "append to it.",
            )
        raise TargetExists(
            f"{name} exists and this copy did not make it", field="spec.target.stream"
        )
    return identity.completed(there.config.tags, copy_id)


def refuse_itself(plan: StreamPlan, target: Source) -> None:
    """Refuse to append a stream to itself, by way of two addresses of one store.

    Two streams of one name are the same stream if their segments have the same creation times.

    Raises:
        InvalidSpec: the target is one of the sources.
    """
    if not plan.append:
        return
    for number, source in enumerate(plan.sources):
        own = [one for one in plan.segments if one.source == number]
        if source.archive is not None or source.stream != plan.target:
            continue
        if not all(one.created for one in own):
            continue
        names = [target.segment_name(plan.target, one.id) for one in own]
        found = target.attributes([(name, target.creation_time) for name in names])
        if found == [one.created for one in own]:
            raise InvalidSpec(
                f"{plan.target} would be appended to itself: the stores of the source and of the "
                "target are one",
                field="spec.target",
                remedy="Name another stream or another store.",
            )


def refuse_strange_groups(request: CopyRequest, stores: Sequence[Source]) -> None:
    """Refuse reader groups that do not read the source, which could not go on in the target.

    Raises:
        ReaderGroupNotFound: a group does not exist, or reads other streams.
    """
    for number, (name, _) in enumerate(request.groups):
        (source,) = request.sources
        config = writable(stores[source.store]).reader_group(GroupName(source.stream.scope, name))
        if config is None or source.stream not in config.streams:
            raise ReaderGroupNotFound(
                f"no reader group {name} in scope {source.stream.scope} reads {source.stream}",
                field=f"spec.readerGroups[{number}].name",
                remedy="Correct the name, or remove it: readerGroups may be changed at any time.",
            )


def make_plan(
    request: CopyRequest, stores: Sequence[Source], *, append: bool = False
) -> StreamPlan:
    """Make the plan for what the sources hold now. Nothing is changed.

    A new target gets the configuration of the first source.

    Raises:
        SourceNotFound: a source does not exist.
        SourceReplaced: a source was deleted, or truncated again and again, meanwhile.
        SourceUnsupported: a source's generations cannot be made by scale events.
        InvalidSpec: a range does not lie in its stream, a move is not verified, or the source
            cannot be followed as it is asked for.
    """
    refuse_unverified_move(move=request.move, verify=request.verify)
    refuse_unfollowable(request)
    streams = []
    for source in request.sources:
        stream = stores[source.store].describe(source.stream)
        if stream is None:
            raise SourceNotFound(
                f"stream {source.stream} does not exist in the source store",
                field=f"{source.field}.stream",
            )
        streams.append(stream)
    seen = with_what_is_lost(
        take_bounds(request, stores, streams), [stores[source.store] for source in request.sources]
    )
    return plan_stream(request, config=streams[0].config, seen=seen, append=append)


def refuse_unverified_move(*, move: bool, verify: bool) -> None:
    """Raise InvalidSpec for a move without verification: it would delete unverified data."""
    if move and not verify:
        raise InvalidSpec(
            "a stream is not moved without verification: its source would be deleted",
            field="spec.sourceOnComplete",
            remedy="Run it without --no-verify, or with sourceOnComplete: Retain.",
        )


def refuse_unfollowable(request: CopyRequest) -> None:
    """Raise InvalidSpec for a request to follow what has an end, or is not compared."""
    if not request.follow:
        return
    source = request.sources[0]
    wrong = (
        (len(request.sources) > 1, "spec.sources", "one source, not several"),
        (source.archive is not None, "spec.source.archive", "a stream, not an archive"),
        (source.ranges != (Range(),), "spec.source.ranges", "a whole stream"),
        (
            source.stream.stream.startswith("_"),
            "spec.source.stream",
            "no stream of the store's own",
        ),
        (request.append, "spec.target.onExists", "a source into a target of its own"),
        (request.move, "spec.sourceOnComplete", "a source that is retained"),
    )
    for is_wrong, field, what in wrong:
        if is_wrong:
            raise InvalidSpec(
                f"a copy follows {what}",
                field=field,
                remedy="Change the field, or make a copy that does not follow its source.",
            )
    if not request.verify:
        raise InvalidSpec(
            "a copy follows its source only behind bytes that are verified",
            field="spec.mode",
            remedy="Run it without --no-verify, or with mode: Snapshot.",
        )
    refuse_past_end(request.stop_time)


def refuse_past_end(stop_time: int | None) -> None:
    """Raise InvalidSpec if a copy is to end at a time, in ms since 1970, that is over."""
    if stop_time is not None and stop_time <= time.time() * 1000:
        raise InvalidSpec(
            f"the copy is to end at {_stamp(stop_time)}, which is over",
            field="spec.stopWhen.time",
            remedy="Give a later time, or take mode: Snapshot for what the source has now.",
        )


def _stamp(milliseconds: int) -> str:
    """Write a time, given in ms since 1970."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
