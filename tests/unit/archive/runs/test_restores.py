"""Runs of archives restored into the model store by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.archive.runs.archive import Archive
from sluice.core.archive.names import Format
from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import Outcome
from sluice.errors import ArchiveNotFound, InvalidSpec, StoreUnavailable, TargetScopeNotFound
from support.archiving.archives import STREAM
from support.archiving.restore_env import BLOCK, Env
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import put_source
from support.model import Fate, ModelStore
from support.model.memory_objects import MemoryObjects
from support.search import searches, some

if TYPE_CHECKING:
    from sluice.archive.objects.objects import Buffer

FORMATS = list(Format)


@pytest.mark.parametrize("form", FORMATS)
def test_each_run_is_restored_as_the_stream_was(form: Format) -> None:
    """Bytes, key ranges and configuration are those at the end of the run."""
    for number in range(1, 4):
        env = Env(form).three()
        report = env.restore(env.request(run=number))
        assert report.outcome is Outcome.COPIED, report.error
        assert env.restored == env.then[number - 1]
        stream = env.world.streams[TARGET]
        assert f"run={number - 1}" in stream.config.tags
        assert stream.config.retention.minimum == 10**9
        assert len(stream.segments) == 2 ** (number - 1)
        assert [one.keys for one in stream.readable] == [
            one.keys for one in env.source.segments[: len(stream.readable)]
        ]
        assert report.source == str(STREAM)


def test_the_last_run_before_a_time_is_restored() -> None:
    """For a time between two runs it is the first one, and for a time before all it is none."""
    env = Env().three()
    head = env.archive.head()
    assert head is not None
    assert env.restore(env.request(until=head.runs[2].time - 1)).outcome is Outcome.COPIED
    assert env.restored == env.then[1]
    with pytest.raises(ArchiveNotFound) as caught:
        Env().three().restore(env.request(until=head.runs[0].time - 1))
    assert caught.value.field == "spec.source.archive.until"


def test_a_run_is_appended_to_a_stream() -> None:
    """Existing events stay in front, and the run follows."""
    env = Env()
    env.take()
    before = put_source(env.world, [5, 9], name=TARGET)
    report = env.restore(env.request(append=True))
    assert report.outcome is Outcome.COPIED, report.error
    assert b"".join(env.restored) == b"".join(before) + env.then[0][0]


def test_a_restore_makes_the_scope_where_it_is_asked_to() -> None:
    """Otherwise the error names the missing scope, and nothing is made."""
    env = Env()
    env.take()
    env.world.scopes.remove(TARGET.scope)
    with pytest.raises(TargetScopeNotFound):
        env.restore()
    assert TARGET.scope not in env.world.scopes
    report = env.restore(env.request(make_scope=True))
    assert report.outcome is Outcome.COPIED, report.error
    assert env.restored == env.then[0]
    assert TARGET.scope in env.world.scopes


def test_of_drivers_that_have_chosen_two_runs_both_read_the_recorded_one() -> None:
    """A run was recorded between their plans, and the first recorded plan holds."""
    env = Env()
    env.take()
    store = ModelStore(env.world, block=BLOCK)
    first = env.plan(store, env.request())
    env.take()
    second = env.plan(store, env.request())
    assert second.sources != first.sources
    env.runner(store, first)._runs[0].copy.journal.begin(first)
    runner = env.runner(store, second)
    (report,) = runner.run()
    assert report.outcome is Outcome.COPIED, report.error
    assert env.restored == env.then[0]
    assert repr(runner._runs[0].copy.sources) == "[ArchivedStore(run 1 of the archive team/orders)]"


def test_what_was_begun_stays_with_its_run() -> None:
    """A later run does not change the restore, nor does the end of the archive."""
    env = Env()
    env.take()
    store = ModelStore(env.world, block=BLOCK)
    plan = env.plan(store, env.request())
    assert plan.sources[0].archive is not None
    assert plan.sources[0].archive.run == 1
    runner = env.runner(store, plan)
    runner._runs[0].copy.journal.begin(plan)
    env.take()
    assert env.plan(store, env.request()) == plan
    assert env.restore().outcome is Outcome.COPIED
    assert env.restored == env.then[0]
    env.objects.held.clear()
    assert resolve(env.request(), [env.root], store).digest is not None


def test_a_store_of_archives_that_is_away_is_waited_for() -> None:
    """Failed calls are repeated, and no byte is lost or doubled."""
    env = Env(Format.EVENT_OBJECTS).three()

    class Flaky(MemoryObjects):
        calls = 0

        def get(self, name: str, start: int = 0, end: int | None = None) -> bytes | None:
            self._called(name)
            return super().get(name, start, end)

        def put(self, name: str, data: Buffer) -> None:
            self._called(name)
            super().put(name, data)

        def _called(self, name: str) -> None:
            self.calls += 1
            if self.calls in {1, 2, *range(20, 25), *range(60, 65)}:
                raise StoreUnavailable(name)

    store = ModelStore(env.world, block=BLOCK)
    plan = env.plan(store, env.request())
    flaky = Flaky()
    flaky.held, flaky.modified = env.objects.held, env.objects.modified
    env.objects, env.archive = flaky, Archive(flaky)
    (report,) = env.runner(store, plan, patience=300).run()
    assert report.outcome is Outcome.COPIED, report.error
    assert env.restored == env.then[-1]


class Killed(BaseException):
    """Ends a driver for good."""


@searches
def test_a_driver_is_killed_at_every_call() -> None:
    """The next driver goes on with the same run, and the target equals the stream."""
    calls = 0
    while True:
        env = Env().three()
        left = calls

        def gate(_call: str) -> Fate:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return Fate.DONE

        dying = ModelStore(env.world, gate, block=BLOCK)
        try:
            env.runner(dying, env.plan(dying, env.request())).run()
        except Killed:
            env.take()
            if resolve(env.request(), [env.root], ModelStore(env.world)).digest is None:
                report = env.restore()
                assert report.outcome is Outcome.COPIED, report.error
            assert env.restored in env.then
        else:
            break
        calls += some(29)
    assert calls > 30


def test_an_archive_is_not_moved_and_no_stream_is_sought_in_one() -> None:
    """Requests that fit no archive name the field."""
    env = Env().three()
    with pytest.raises(InvalidSpec) as caught:
        env.restore(env.request(move=True))
    assert caught.value.field == "spec.sourceOnComplete"
    live = CopyRequest(copy_id=COPY, sources=(SourceRequest(stream=SOURCE),), target=TARGET)
    with pytest.raises(InvalidSpec, match="holds archives") as caught:
        env.restore(live)
    assert caught.value.field == "spec.source.storeRef"
    with pytest.raises(ArchiveNotFound, match="no archive at 'team/other'") as missing:
        env.restore(env.request(path="team/other"))
    assert missing.value.field == "spec.source.archive.path"
    with pytest.raises(ArchiveNotFound, match="there is no such run") as run:
        env.restore(env.request(run=9))
    assert run.value.field == "spec.source.archive.run"
