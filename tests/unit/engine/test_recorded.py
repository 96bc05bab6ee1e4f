"""Work that an earlier version began is continued: plans, journals, logs and archives."""

from __future__ import annotations

import base64
import json

import pytest

from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.core.copy.planner import ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.workloads.plan import expanded
from sluice.core.workloads.unplanned import Unplanned, read_plan
from sluice.engine.access.source_runs import run_stores
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.engine.tasks.executor import InlineExecutor
from support.archiving.archive_runs import archive_once, make_objects_small, root_of
from support.engine.appends import appended, run_append
from support.engine.plans import SOURCE, TARGET, whole_plan
from support.engine.runners import copy_runner
from support.engine.scope_drivers import SharedStore, copy_scope, source_name, target_name
from support.engine.sources import ManualClock, copy_all
from support.model import ModelStore
from support.model.recorded import objects_of, recorded, world_of


@pytest.mark.parametrize("name", ["staged", "verified", "published"])
def test_a_copy_is_gone_on_with(name: str) -> None:
    """The recorded plan holds at any progress. The copy ends whole, with nothing left beside it."""
    body = recorded(f"v1/copy-{name}")
    world, request = world_of(body["world"]), CopyRequest.model_validate(body["request"])
    store = ModelStore(world)
    found = resolve(request, [store], store)
    assert found.recorded
    assert found.plan is not None
    (report,) = copy_all(store, found.plan)
    assert report.outcome is Outcome.COPIED
    assert world.bytes_of(TARGET) == world.bytes_of(SOURCE)
    assert world.staging() == []


def test_an_append_is_gone_on_with() -> None:
    """The killed driver left an open transaction. All bytes are appended, and none twice."""
    body = recorded("v1/append")
    world, request = world_of(body["world"]), CopyRequest.model_validate(body["request"])
    contents = world.bytes_of(SOURCE)
    assert run_append(request, ModelStore(world), ManualClock()) is Outcome.COPIED
    assert appended(world, contents) == [1] * len([one for one in contents if one])


def test_a_scope_is_gone_on_with() -> None:
    """The log and the compressed plan tell the copied streams. All other streams are copied."""
    body = recorded("v1/scope")
    world, plan = world_of(body["world"]), expanded(base64.b64decode(body["plan"]))
    report = copy_scope(plan, SharedStore(world))
    assert (report.counts.copied, report.counts.failed) == (3, 0)
    for number in range(3):
        assert world.bytes_of(target_name(number)) == world.bytes_of(source_name(number))


@pytest.mark.parametrize("form", list(Format))
def test_an_archive_gets_another_run(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on by the notes of a killed driver. Then both runs verify."""
    make_objects_small(monkeypatch)
    body = recorded(f"v1/archive-{form.value.lower()}")
    objects, store = objects_of(body["objects"]), ModelStore(world_of(body["world"]))
    request = ArchiveRequest.model_validate(body["request"])
    report = archive_once(store, objects, request)
    assert (report.outcome, report.run) == (Outcome.ARCHIVED, 2)
    found = verify_archive(root_of(objects).archive(request.path))
    assert found.runs == (1, 2)
    assert not found.problems


@pytest.mark.parametrize("form", list(Format))
def test_an_archive_is_restored(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded run is restored, without the bytes of a later unfinished run."""
    make_objects_small(monkeypatch)
    body = recorded(f"v1/archive-{form.value.lower()}")
    root, world = root_of(objects_of(body["objects"])), world_of(body["world"])
    choice = ArchiveChoice(path=body["request"]["path"])
    source = SourceRequest(stream=SOURCE, archive=choice)
    request = CopyRequest(copy_id="cd" * 16, sources=(source,), target=TARGET)
    store = ModelStore(world)
    plan = resolve(request, [root], store).plan
    assert plan is not None
    runner = copy_runner(
        whole_plan(plan),
        sources=[root],
        target=store,
        executor=InlineExecutor(run_stores(plan, [root]), store),
        clock=ManualClock(),
    )
    (report,) = runner.run()
    assert (report.outcome, report.error) == (Outcome.COPIED, None)
    pairs = list(zip(world.bytes_of(SOURCE), world.bytes_of(TARGET), strict=True))
    assert all(now.startswith(then) for now, then in pairs)
    assert [len(then) for _, then in pairs] == [94, 26]


@pytest.mark.parametrize("name", ["stream", "archive", "unplanned"])
def test_a_plan_is_read_and_written_as_it_was(name: str) -> None:
    """The JSON stays equal, since a ConfigMap may be older than the operator."""
    body = recorded(f"v1/plan-{name}")
    plan = read_plan(json.dumps(body))
    assert isinstance(plan, Unplanned) == (name == "unplanned")
    assert plan.model_dump(mode="json") == body
