"""Plans that another client has put where a copy records its own.

A driver may have the login of a store that the copy's users do not have. They may write into the
target's scope or folder by a login of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.notes import Notes
from sluice.core.archive.notes import Note
from sluice.core.copy.plan import SourceStream
from sluice.core.scope.scope import ScopePlan
from sluice.core.values.model import ArchivedRun, StreamName
from sluice.core.workloads.scope_work import ScopeWork
from sluice.engine.archive.planning import begun as begun_run
from sluice.engine.archive.planning import make_archive_plan
from sluice.engine.copy.planning import begun
from sluice.engine.copy.query import end
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.scope.object_log import log_of
from sluice.errors import JournalDamaged
from support.engine import archive_runs
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan, whole_scope
from support.engine.scope_drivers import SCOPE_ID
from support.engine.sources import REQUEST, planned, put_source
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import ScopeCopyPlan

SECRET = StreamName(scope="payroll", stream="salaries")
"""A stream that the copy's users may not read."""

PAYROLL = ArchivedRun(path="payroll", run=1, sha256="0" * 64)

OTHERS: dict[str, dict[str, Any]] = {
    "another source": {"sources": (SourceStream(stream=SECRET),)},
    "one more source": {"sources": (SourceStream(stream=SOURCE), SourceStream(stream=SECRET))},
    "an archive": {
        "sources": (
            SourceStream(
                stream=SOURCE, archive=ArchivedRun(path="payroll", run=1, sha256="0" * 64)
            ),
        )
    },
    "a move": {"move": True},
    "another target": {"target": SECRET},
    "another copy": {"copy_id": "cd" * 16},
}


@pytest.fixture
def store() -> ModelStore:
    """Gives a store with the copy's source, and with the stream that is not to be read."""
    world = World()
    put_source(world, [40, 40])
    put_source(world, [40], name=SECRET)
    return ModelStore(world)


def forge(store: ModelStore, changes: dict[str, Any]) -> StreamPlan:
    """Record a changed plan in the copy's journal, and return the copy's own plan."""
    own = planned(store)
    changed = own.model_copy(update=changes)
    forged = CopyJournal(store, changed.copy_id, changed.target)
    forged._names = CopyJournal(store, COPY, TARGET)._names
    forged.name = forged._names[0]
    forged.begin(changed)
    return own


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_driver_carries_out_no_plan_of_another_copy(
    store: ModelStore, changes: dict[str, Any]
) -> None:
    """It ends before it reads a byte, though the first recorded plan counts otherwise."""
    own = forge(store, changes)
    with pytest.raises(JournalDamaged, match="the plan of another copy"):
        StreamCopyWork(own, 0, [store], store).begin(permit=None)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_the_operator_publishes_and_ends_no_plan_of_another_copy(
    store: ModelStore, changes: dict[str, Any]
) -> None:
    """Neither is it told as the plan, nor finished."""
    forge(store, changes)
    with pytest.raises(JournalDamaged):
        begun(REQUEST, store)
    if "move" in changes or "archive" in str(changes):
        return  # without a request for a move or an archive, an abort needs no journal
    if {"target", "copy_id"} & changes.keys():
        with pytest.raises(JournalDamaged):
            end(REQUEST, sources=[store], target=store)


def test_other_bounds_are_those_of_the_same_copy(store: ModelStore) -> None:
    """Another driver may have taken them earlier."""
    own = planned(store)
    first = own.of([own.segments[0].until(8, None)])
    CopyJournal(store, COPY, TARGET).begin(first)
    work = StreamCopyWork(own, 0, [store], store)
    assert work.begin(permit=None) is None
    assert work.plan.hash == first.hash


def scope(**changes: Any) -> ScopePlan:
    """Return the plan of a scope's copy as a whole, with some fields changed."""
    own: dict[str, Any] = {"scope_id": SCOPE_ID, "source": "in", "target": "out"}
    return ScopePlan(**(own | {"begin": 1, "end": 2} | changes))


def of_scope(**changes: Any) -> ScopeCopyPlan:
    """Return the plan of a scope's copy with one stream."""
    return whole_scope(scope(**changes), stream_plan(segment_plan(8)))


IN_FOLDER = ArchivedRun(path="in/s", run=1, sha256="0" * 64)
BESIDE = ArchivedRun(path="in-2/s", run=1, sha256="0" * 64)


@pytest.mark.parametrize(
    ("changes", "items", "own"),
    [
        ({}, {}, True),
        ({}, {"sources": (SourceStream(stream=SOURCE, archive=IN_FOLDER),)}, True),
        ({}, {"sources": (SourceStream(stream=SOURCE, archive=BESIDE),)}, False),
        ({}, {"sources": (SourceStream(stream=SECRET),)}, False),
        ({}, {"target": SECRET}, False),
        ({}, {"move": True}, False),
        ({"move": True}, {"move": True}, False),
        ({"source": "payroll"}, {"sources": (SourceStream(stream=SECRET),)}, False),
        ({"target": "payroll"}, {"target": SECRET}, False),
        ({"scope_id": "cd" * 16}, {}, False),
    ],
)
def test_the_plan_of_a_scope_stays_in_its_scopes(
    changes: dict[str, Any], items: dict[str, Any], *, own: bool
) -> None:
    """As a whole, and in each of its streams."""
    plan = of_scope(**changes)
    plan = plan.model_copy(update={"streams": (plan.streams[0].model_copy(update=items),)})
    assert ScopeWork(SCOPE_ID, "out", "in", move=False).has(plan) == own


def test_a_log_with_the_plan_of_another_scope_is_damaged(store: ModelStore) -> None:
    """For a driver and for the operator, which both read it by `log_of`."""
    forged = of_scope(source="payroll")
    payroll = (SourceStream(stream=SECRET),)
    forged = forged.model_copy(
        update={"streams": (forged.streams[0].model_copy(update={"sources": payroll}),)}
    )
    log_of(store, SCOPE_ID, forged.scope).begin(forged)
    with pytest.raises(JournalDamaged, match="the plan of another copy"):
        log_of(store, SCOPE_ID, scope()).load()


def test_the_notes_of_a_run_have_the_plan_of_that_run(store: ModelStore) -> None:
    """And of no stream or archive besides."""
    objects, request = MemoryObjects(), archive_runs.REQUEST
    plan = make_archive_plan(request, store, Archive(objects))
    for changes in ({"source": SECRET}, {"path": "payroll"}, {"copy_id": "cd" * 16}, {}):
        objects.held.clear()
        noted = plan.model_copy(update=changes)
        Notes(objects, request.copy_id).begin(Note(of=noted.hash, plan=noted))
        if changes:
            with pytest.raises(JournalDamaged, match="the plan of another run"):
                begun_run(request, Archive(objects))
        else:
            assert begun_run(request, Archive(objects)).plan == plan
