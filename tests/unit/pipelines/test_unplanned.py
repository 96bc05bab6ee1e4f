"""The work of a driver for the operator, which cannot read volumes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

import pytest
from pydantic import ValidationError

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.config import Settings
from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.scope.request import RestoreFrom, ScopeRequest
from sluice.core.values.model import StoreAddress, StreamConfig, StreamName
from sluice.core.workloads import plan as plan_module
from sluice.core.workloads.answers import Planned, ScopeEnded
from sluice.core.workloads.unplanned import (
    Unplanned,
    UnplannedArchiveRun,
    UnplannedCopy,
    UnplannedScopeCopy,
    read_plan,
)
from sluice.engine.workloads.choice import workload_of
from sluice.engine.workloads.scope import ScopeWorkload
from sluice.engine.workloads.stream import StreamWorkload
from sluice.errors import ArchiveNotFound, PlanTooLarge
from sluice.kube.stores.connections import unseen
from sluice.pipelines.driver import driver, termination
from sluice.pipelines.driver.driver import DriverOptions, drive
from sluice.pipelines.programs import stores
from support.archiving.archive_runs import PATH, REQUEST, archive_once, root_of
from support.archiving.scope_roots import root_in
from support.engine.plans import SOURCE, TARGET, segment_plan, stream_plan, whole_plan
from support.engine.scope_drivers import SharedStore
from support.engine.sources import put_source
from support.model import ModelStore, World
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.core.archive.recorded import Recorded
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place

LIVE = StoreAddress(uri="tcp://model:1")
VOLUME = StoreAddress(backend="volume", uri="volume://archives")
RUN = UnplannedArchiveRun(sources=(LIVE,), target=VOLUME, archiving=REQUEST)


class Stores(stores.Stores):
    """A stand-in for `stores.Stores` with a model store and a volume in memory."""

    def __init__(self, store: ModelStore, root: ArchiveRoot) -> None:
        super().__init__(Settings())
        self._store = store
        self._root = root

    def __call__(self, _: Settings) -> Self:
        """Return this object, in place of the constructor."""
        return self

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def __getitem__(self, _: StoreAddress) -> ModelStore:
        """Return the model store."""
        return self._store

    def root(self, _: StoreAddress) -> ArchiveRoot:
        """Return the archives in the volume."""
        return self._root

    def place(self, address: StoreAddress) -> Place:
        """Return the store or the archives, by the kind of the address."""
        return self._store if address.backend == "pravega" else self._root


class Bench:
    """A pod that has mounted a volume."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World()
        self.world.scopes |= {SOURCE.scope, TARGET.scope}
        put_source(self.world, [40, 40], [9], name=SOURCE)
        self.store, self.objects = ModelStore(self.world), MemoryObjects()
        self.stores = Stores(self.store, root_of(self.objects))
        monkeypatch.setattr(driver, "Stores", self.stores)

    def planned(self, wanted: Unplanned) -> Plan | None:
        """Return the plan that a driver makes for a request."""
        return driver._planned(wanted, self.stores)

    def recorded(self, wanted: Unplanned) -> Recorded | None:
        """Return the record that a driver reports for a request."""
        return workload_of(wanted.request).tell(self.stores.place(wanted.target))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a pod with a stream that has no archive."""
    return Bench(monkeypatch)


def test_a_run_is_planned_by_its_driver(bench: Bench) -> None:
    """A recorded run leaves nothing to plan, and the driver reports it."""
    plan = bench.planned(RUN)
    assert plan is not None
    assert plan.archive is not None
    assert plan.archive.copy_id == REQUEST.copy_id
    assert bench.recorded(RUN) is None
    keyed = RUN.model_copy(update={"archiving": REQUEST.model_copy(update={"run_key": "first"})})
    assert keyed.archiving is not None
    archive_once(bench.store, bench.objects, keyed.archiving)
    assert bench.planned(keyed) is None
    told = bench.recorded(keyed)
    assert told is not None
    assert (told.run, told.count, told.verified) == (1, 1, True)


def test_what_is_told_of_a_run_fits_into_a_termination_message(bench: Bench) -> None:
    """This holds for any number of runs, since only 20 are listed."""
    for number in range(30):
        keyed = REQUEST.model_copy(update={"run_key": f"scheduled:{number}"})
        archive_once(bench.store, bench.objects, keyed)
    wanted = RUN.model_copy(update={"archiving": keyed})
    told = bench.recorded(wanted)
    assert told is not None
    assert (told.count, len(told.runs)) == (30, 20)
    assert len(termination.message(None, told)) < termination.MAX_BYTES


def restore() -> StreamWorkload:
    """Return the work of a copy of the archive in the volume."""
    source = SourceRequest(stream=SOURCE, archive=ArchiveChoice(path=PATH))
    return StreamWorkload(CopyRequest(copy_id="cd" * 16, sources=(source,), target=TARGET))


def test_a_restore_is_planned_by_its_driver(bench: Bench) -> None:
    """The operator sees only the target until the driver has planned the copy."""
    archive_once(bench.store, bench.objects)
    workload = restore()
    hidden = ((VOLUME, ArchiveRoot(VOLUME.uri, unseen)),)
    answer = workload.ask(hidden, (LIVE, bench.store), known=None, again=False)
    assert isinstance(answer.plan, Unplanned)  # type: ignore[union-attr]
    wanted = answer.plan  # type: ignore[union-attr]
    watch = workload.watch(wanted, bench.store)
    assert watch.measure().published is False
    plan = bench.planned(wanted)
    assert plan is not None
    assert plan.sources[0].archive is not None
    assert plan.sources[0].archive.run == 1


FOLDER = ScopeRequest(scope_id="ef" * 16, source="team", target=TARGET.scope, restore=RestoreFrom())


def scoped(bench: Bench, request: ScopeRequest = FOLDER) -> Unplanned:
    """Return a restore of a folder's archives, as the operator leaves it to a driver."""
    hidden = ((VOLUME, ArchiveRoot(VOLUME.uri, unseen)),)
    answer = ScopeWorkload(request).ask(hidden, (LIVE, bench.store), known=None, again=True)
    assert isinstance(answer, Planned)
    assert isinstance(answer.plan, Unplanned)
    return answer.plan


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a pod whose volume has a folder with one archive."""
    bench = Bench(monkeypatch)
    archive_once(bench.store, bench.objects)
    there = MemoryObjects()
    for name, data in bench.objects.held.items():
        there.put(f"team/orders/{name}", data)
    bench.stores = Stores(SharedStore(bench.world), root_in(there))
    monkeypatch.setattr(driver, "Stores", bench.stores)
    return bench


def test_a_scope_is_planned_by_its_driver(folder: Bench, tmp_path: Path) -> None:
    """The driver carries the plan out. Afterwards all facts are in the target's store."""
    wanted = scoped(folder)
    plan = folder.planned(wanted)
    assert plan is not None
    assert [one.name for one in plan.items] == ["orders"]
    file, end = tmp_path / "plan.json", tmp_path / "end"
    file.write_text(wanted.model_dump_json())
    options = DriverOptions(plan=file, termination_log=end, patience=0.1)
    assert drive(options, Settings()) is None
    assert json.loads(end.read_bytes()) == {"outcome": "Succeeded"}
    hidden = ((VOLUME, ArchiveRoot(VOLUME.uri, unseen)),)
    workload = ScopeWorkload(FOLDER)
    answer = workload.ask(hidden, (LIVE, folder.store), known=wanted, again=False)
    assert isinstance(answer, ScopeEnded)
    assert [(one.stream, one.state) for one in answer.results] == [("orders", "Copied")]
    assert workload.watch(wanted, folder.store).measure().published
    assert drive(options, Settings()) is None
    workload.abandon([hidden[0][1]], folder.store, known=wanted)
    assert folder.world.staging() == []


def test_a_scope_that_cannot_be_planned_is_refused_by_its_driver(
    folder: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal comes before anything is begun, even for a plan that is only too long."""
    with pytest.raises(ArchiveNotFound, match="there are no archives in the folder 'other'"):
        folder.planned(scoped(folder, FOLDER.model_copy(update={"source": "other"})))
    monkeypatch.setattr(plan_module, "MOST_PLAN_BYTES", 100)
    with pytest.raises(PlanTooLarge, match="the plan for 1 streams takes"):
        folder.planned(scoped(folder))


def test_what_is_to_be_planned_reads_back_as_it_was() -> None:
    """It is read from the JSON that the operator has written."""
    for wanted in (
        RUN,
        UnplannedCopy(sources=(VOLUME,), target=LIVE, copying=restore().request),
        UnplannedScopeCopy(sources=(VOLUME,), target=LIVE, scoping=FOLDER, run=2),
    ):
        assert read_plan(wanted.model_dump_json()) == wanted
        assert wanted.hash != RUN.model_copy(update={"archiving": None}).hash
        assert (wanted.bytes, wanted.events) == (0, 0)


def test_a_plan_stays_a_plan_whatever_its_streams_are_called() -> None:
    """A stream, a scope or a tag may have the name of a request's field."""
    name = StreamName(scope="copying", stream="copying")
    stream = stream_plan(segment_plan(1000), source=name, target=name)
    tagged = stream.model_copy(update={"config": StreamConfig(tags=("copying", "archiving"))})
    plan = whole_plan(tagged)
    read = read_plan(plan.model_dump_json())
    assert type(read) is type(plan)
    assert (read, read.hash) == (plan, plan.hash)


@pytest.mark.parametrize("text", ["", "[]", '"copying"', "{"])
def test_what_is_no_json_of_a_plan_is_refused(text: str) -> None:
    """It gives a ValidationError, which each reader turns into an error of its own."""
    with pytest.raises(ValidationError):
        read_plan(text)


def test_a_plan_without_a_request_is_refused() -> None:
    """A user may have damaged the file."""
    with pytest.raises(ValidationError, match="copying"):
        read_plan(RUN.model_dump_json().replace('"archiving":{', '"archiving":null,"else":{'))
    with pytest.raises(ValidationError, match="copying"):
        read_plan(RUN.model_copy(update={"archiving": None}).model_dump_json())
