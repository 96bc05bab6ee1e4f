"""Plans that another client has put where a copy records its own.

A driver may have the login of a store that the copy's users do not have. They may write into the
target's scope or folder by a login of their own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.runs.archive import Archive
from sluice.archive.runs.notes import Notes
from sluice.core.archive.notes import Note
from sluice.core.copy.plan import SourceStream
from sluice.core.copy.planner import ArchiveChoice, SourceRequest
from sluice.core.copy.steps import Publish
from sluice.core.scope.scope import ScopePlan
from sluice.core.values.model import ArchivedRun, StreamName
from sluice.core.workloads.scope_work import ScopeWork
from sluice.engine.archive.planning import begun as begun_run
from sluice.engine.archive.planning import make_archive_plan, noted_plan
from sluice.engine.copy.planning import begun
from sluice.engine.copy.query import How, end
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.journal.copy_journal import CopyJournal
from sluice.engine.scope.object_log import log_of
from sluice.engine.workloads.stream import StreamWorkload
from sluice.errors import AbortRefused, JournalDamaged, StoreUnavailable
from support.archiving import archive_runs
from support.engine.plans import COPY, SOURCE, TARGET, segment_plan, stream_plan, whole_scope
from support.engine.scope_drivers import SCOPE_ID
from support.engine.sources import (
    BEFORE_PUBLISHING,
    REQUEST,
    copy_all,
    drive,
    planned,
    put_source,
)
from support.model import Fate, ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.core.copy.plan import StreamPlan
    from sluice.core.copy.planner import CopyRequest
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
    "another store": {"sources": (SourceStream(stream=SOURCE, store=1),)},
    "a store that is not there": {"sources": (SourceStream(stream=SOURCE, store=99),)},
    "a store from behind": {"sources": (SourceStream(stream=SOURCE, store=-1),)},
    "a move": {"move": True},
    "a copy that goes on": {"follow": True},
    "another target": {"target": SECRET},
    "another copy": {"copy_id": "cd" * 16},
}


@pytest.fixture
def world() -> World:
    """Return a world with the copy's source, and with the stream that must not be read."""
    made = World()
    put_source(made, [40, 40], [9])
    put_source(made, [40], name=SECRET)
    return made


@pytest.fixture
def store(world: World) -> ModelStore:
    """Return a client of the world's store."""
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
    """The driver ends before it reads a byte, though the first recorded plan usually holds."""
    own = forge(store, changes)
    with pytest.raises(JournalDamaged, match="the plan of another copy"):
        StreamCopyWork(own, 0, [store], store).begin(permit=None)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_the_operator_tells_no_plan_of_another_copy(
    store: ModelStore, changes: dict[str, Any]
) -> None:
    """The operator gets an error, and does not ask the stores that the plan names."""
    forge(store, changes)
    with pytest.raises(JournalDamaged):
        begun(REQUEST, store)


@pytest.mark.parametrize("source", [1, 99, -1])
def test_each_segment_is_of_a_source_that_the_plan_has(store: ModelStore, source: int) -> None:
    """A segment of any other source would crash driver and operator."""
    own = planned(store)
    alien = own.segments[1].model_copy(update={"source": source})
    with pytest.raises(JournalDamaged, match="a segment without a source"):
        CopyJournal(store, COPY, TARGET).begin(own.of([own.segments[0], alien]))
    with pytest.raises(JournalDamaged):
        begun(REQUEST, store)


MOVE = REQUEST.model_copy(update={"move": True})
RESTORE = REQUEST.model_copy(
    update={"sources": (SourceRequest(stream=SOURCE, archive=ArchiveChoice(path="in/orders")),)}
)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("wanted", [REQUEST, MOVE, RESTORE], ids=["copy", "move", "restore"])
def test_a_plan_of_another_copy_keeps_none_from_its_end(
    world: World, store: ModelStore, wanted: CopyRequest, changes: dict[str, Any]
) -> None:
    """The operator or a user can delete such a journal. No stream is deleted."""
    before = set(world.streams)
    forge(store, changes)
    assert end(wanted, sources=[store], target=store).how in {How.DROPPED, How.UNREAD}
    assert end(wanted, sources=[store], target=store).how is How.NOTHING
    forge(store, changes)
    assert StreamWorkload(wanted).abort(lambda: [store], store).startswith("aborted")
    assert world.staging() == []
    assert set(world.streams) == before


def damage(driver: StreamCopyWork, store: ModelStore) -> None:
    """Append garbage to a driver's journal, as any client with a login to the scope may."""
    (info,) = store.infos([driver.journal.name])
    assert info is not None
    assert store.append_at(driver.journal.name, info.length, b"garbage!" * 4)


@pytest.mark.parametrize("wanted", [REQUEST, MOVE], ids=["copy", "move"])
@pytest.mark.parametrize("steps", range(BEFORE_PUBLISHING + 1))
def test_a_copy_with_a_damaged_journal_ends_without_a_trace(
    world: World, store: ModelStore, steps: int, wanted: CopyRequest
) -> None:
    """After any step, the end deletes the target and all staged bytes. The source stays."""
    damage(drive(world, steps, wanted), store)
    assert end(wanted, sources=[store], target=store).how is How.UNREAD
    assert end(wanted, sources=[store], target=store).how is How.NOTHING
    assert world.staging() == []
    assert set(world.streams) == {SOURCE, SECRET}


@pytest.mark.parametrize("call", range(1, 25))
def test_such_an_end_can_be_cut_off_anywhere(world: World, store: ModelStore, call: int) -> None:
    """The next attempt finishes such an end, since the journal is deleted last."""
    damage(drive(world, BEFORE_PUBLISHING), store)
    calls: list[str] = []

    def gate(what: str) -> Fate:
        calls.append(what)
        return Fate.REPLY_LOST if len(calls) == call else Fate.DONE

    broken = ModelStore(world, gate)
    with suppress(StoreUnavailable):
        end(REQUEST, sources=[broken], target=broken)
    end(REQUEST, sources=[store], target=store)
    assert world.staging() == []
    assert TARGET not in world.streams


def test_half_a_target_with_a_damaged_journal_is_left_to_people(
    world: World, store: ModelStore
) -> None:
    """Readers may have its bytes, and the rest is unknown. So nothing is deleted."""
    driver = drive(world, BEFORE_PUBLISHING)
    driver.perform(Publish((0,)))
    damage(driver, store)
    before = (set(world.streams), world.staging())
    with pytest.raises(JournalDamaged):
        end(REQUEST, sources=[store], target=store)
    with pytest.raises(AbortRefused):
        StreamWorkload(REQUEST).abort(lambda: [store], store)
    assert (set(world.streams), world.staging()) == before


def test_an_append_with_a_damaged_journal_is_left_to_people(store: ModelStore) -> None:
    """Without the journal, the former key ranges of the target are unknown."""
    wanted = REQUEST.model_copy(update={"append": True})
    forge(store, {"copy_id": "cd" * 16})
    with pytest.raises(JournalDamaged):
        end(wanted, sources=[store], target=store)
    with pytest.raises(JournalDamaged):
        StreamWorkload(wanted).abort(lambda: [store], store)


def test_a_whole_target_stays_though_its_journal_is_damaged(
    world: World, store: ModelStore
) -> None:
    """Only the journal is deleted."""
    copy_all(store, planned(store))
    before = set(world.streams)
    journal = CopyJournal(store, COPY, TARGET)._names[1]  # the store blocks the first for a while
    assert store.create(journal)
    store.append_at(journal, 0, b"garbage!" * 4)
    assert end(REQUEST, sources=[store], target=store).how is How.NOTHING
    assert world.staging() == []
    assert set(world.streams) == before


def test_other_bounds_are_those_of_the_same_copy(store: ModelStore) -> None:
    """Another driver may have taken its bounds earlier, and then its plan holds."""
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
        ({}, {"sources": (SourceStream(stream=SOURCE, store=1),)}, False),
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
    """This holds for the plan as a whole, and for each of its streams."""
    plan = of_scope(**changes)
    plan = plan.model_copy(update={"streams": (plan.streams[0].model_copy(update=items),)})
    assert ScopeWork(SCOPE_ID, "out", "in", move=False).has(plan) == own


@pytest.mark.parametrize(
    ("changes", "own"),
    [
        ({}, True),
        ({"store": 1}, False),
        ({"source": SECRET}, False),
        ({"path": "payroll/s"}, False),
    ],
)
def test_the_runs_of_a_scope_stay_in_its_folder(
    store: ModelStore, changes: dict[str, Any], *, own: bool
) -> None:
    """The run must also be of that scope, in the store that the copy names."""
    run = make_archive_plan(archive_runs.REQUEST, store, Archive(MemoryObjects()))
    run = run.model_copy(update={"path": "out/s"} | changes)
    plan = of_scope().model_copy(update={"runs": (run,)})
    assert ScopeWork(SCOPE_ID, "out", "in", move=False).has(plan) == own


def test_a_log_with_the_plan_of_another_scope_is_damaged(store: ModelStore) -> None:
    """Driver and operator both read the log by `log_of`, which refuses the plan."""
    forged = of_scope(source="payroll")
    payroll = (SourceStream(stream=SECRET),)
    forged = forged.model_copy(
        update={"streams": (forged.streams[0].model_copy(update={"sources": payroll}),)}
    )
    log_of(store, SCOPE_ID, forged.scope).begin(forged)
    with pytest.raises(JournalDamaged, match="the plan of another copy"):
        log_of(store, SCOPE_ID, scope()).load()


def test_the_notes_of_a_run_have_the_plan_of_that_run(store: ModelStore) -> None:
    """A plan of another stream, archive, copy or store is refused."""
    objects, request = MemoryObjects(), archive_runs.REQUEST
    plan = make_archive_plan(request, store, Archive(objects))
    forged = [{"source": SECRET}, {"path": "payroll"}, {"copy_id": "cd" * 16}, {"store": 1}]
    for changes in (*forged, {}):
        objects.held.clear()
        noted = plan.model_copy(update=changes)
        Notes(objects, request.copy_id).begin(Note(of=noted.hash, plan=noted))
        if changes:
            with pytest.raises(JournalDamaged, match="the plan of another run"):
                begun_run(request, Archive(objects))
            with pytest.raises(JournalDamaged):
                noted_plan([Note(of=noted.hash, plan=noted)], plan)
        else:
            assert begun_run(request, Archive(objects)).plan == plan
