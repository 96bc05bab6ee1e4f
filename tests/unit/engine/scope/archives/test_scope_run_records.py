"""Records of a scope's runs among failures, other resources and foreign objects."""

from __future__ import annotations

import itertools

import pytest

from sluice.core.archive.manifest import Maker
from sluice.core.archive.retention import Retention
from sluice.core.scope.runs import MOST_RUNS, scope_run_name, scope_run_number
from sluice.core.scope.scope import StreamState
from sluice.core.values.archive_layout import RUNS
from sluice.core.workloads.answers import ScopeEnded
from sluice.engine.scope.planners import base as planner
from sluice.engine.scope.recorded_runs import needed_runs, records_of, restored_runs
from sluice.engine.scope.series import record_scope_run
from sluice.engine.tasks.limits import Limits
from sluice.errors import ArchiveDamaged, ArchiveNotFound, InvalidSpec, StoreBusy
from sluice.pipelines.programs import run as program
from support.archiving.nightly_scopes import (
    ALL,
    COPIED,
    NAMES,
    NIGHTLY,
    OTHER,
    back,
    keep,
    lose,
    night,
    nightly_as_driven,
    record,
    restored,
    write,
)
from support.archiving.scope_roots import BACK, FOLDER, Env
from support.engine.scope_drivers import damage, source_name
from support.engine.scope_requests import drop, states_of


@pytest.fixture(autouse=True)
def later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock tell a time one second after the last one."""
    clock = itertools.count(1_000_000_000_000, 1000)
    monkeypatch.setattr(planner, "_now", lambda: next(clock))


@pytest.mark.parametrize("last", [1, 2])
def test_the_runs_of_the_last_complete_run_stay_while_streams_fail(env: Env, last: int) -> None:
    """This holds for any number of failed runs. A newer complete run replaces it."""
    rules = Retention(keep_last=last)
    nightly_as_driven(env, "one", rules)
    first = env.content("in")
    damage(env.world, 1)
    for number in range(4):
        for stream in (0, 2, 3):
            write(env, stream)
        nightly_as_driven(env, f"bad{number}", rules)
    assert len(env.manifests("s000")) == last + 1
    assert restored(env) == first


def test_the_last_complete_run_stays_until_the_next_one_is_recorded(env: Env) -> None:
    """The driver's retention runs before, so a stopped operator costs no backup."""
    rules = Retention(keep_last=1)
    nightly_as_driven(env, "one", rules)
    first = env.content("in")
    write(env)
    request = NIGHTLY.as_run("two")
    report = env.run(request)
    program._tidy_all(report, env.root, rules, Limits)
    assert restored(env) == first
    keep(env, request, rules)
    nightly_as_driven(env, "three", rules)
    assert len(env.manifests("s000")) == 2


def test_runs_that_a_record_may_need_are_not_let_go(env: Env) -> None:
    """If too many records follow it, the driver removes no run."""
    night(env, "one")
    found = record(env, 1)
    other = Maker(id="6f" * 16, name="ScopeCopy team/other")
    for number in range(2, 67):
        made = found.model_copy(update={"number": number, "maker": other})
        env.objects.put(f"{FOLDER}/{scope_run_name(number)}", made.model_dump_json().encode())
    write(env)
    report = env.run(NIGHTLY.as_run("two"))
    with pytest.raises(StoreBusy, match="the last 64 runs"):
        needed_runs(report.plan.scope, env.root)
    program._tidy_all(report, env.root, Retention(keep_last=1), Limits)
    assert len(env.manifests("s000")) == 2


def test_a_restore_that_is_tried_again_stays_with_its_run(env: Env) -> None:
    """All streams are of one time, even if a later run was recorded meanwhile."""
    night(env, "one")
    first = env.content("in")
    lost = lose(env, "s001")
    env.world.scopes.add("out")
    assert states_of(env.run(BACK))["s001"] == "ArchiveNotFound"
    env.objects.held.update(lost)
    for number in range(4):
        write(env, number)
    night(env, "two")
    report = env.run(BACK, again=True)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    assert report.plan.scope.restored == 1
    assert env.content("out") == first


def test_a_restore_whose_record_is_gone_takes_no_other_run(env: Env) -> None:
    """The remaining streams fail and name the run. Restored streams stay."""
    night(env, "one")
    lost = lose(env, "s001")
    env.world.scopes.add("out")
    env.run(BACK)
    env.objects.held.update(lost)
    write(env, 1)
    night(env, "two", Retention(keep_last=1))
    found = env.resolved(BACK, again=True)
    assert isinstance(found, ScopeEnded)
    (failed,) = [one for one in found.results if one.state is not StreamState.COPIED]
    assert failed.stream == "s001"
    assert failed.trouble is not None
    assert "is of run 1 of the scope" in failed.trouble.message
    assert found.plan.scope.restored == 1


def test_a_restore_that_was_planned_without_records_stays_without_one(env: Env) -> None:
    """Another copy records a run of some streams meanwhile, but all are restored.

    A later comparison uses the restored runs, too.
    """
    env.run(NIGHTLY.as_run("one"))
    env.abandon(NIGHTLY.as_run("one"))
    first = env.content("in")
    manifests = {key for key in env.objects.held if key.startswith(f"{FOLDER}/s001/{RUNS}")}
    lost = {key: env.objects.held.pop(key) for key in manifests}
    env.world.scopes.add("out")
    assert states_of(env.run(BACK))["s001"] == "ArchiveDamaged"
    env.objects.held.update(lost)
    write(env, 3)
    night(env, "other", copy=OTHER)
    report = env.run(BACK, again=True)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    assert report.plan.scope.restored is None
    assert env.content("out") == first
    head = env.archive("s001").head()
    assert head is not None
    assert restored_runs(BACK, env.root, report.plan) == {"s001": head.runs[-1].sha256}


def test_retention_of_a_copy_leaves_the_records_of_another_one(env: Env) -> None:
    """Each copy keeps its own records, however many runs the other one makes in the folder."""
    night(env, "one")
    rules = Retention(keep_last=1)
    for number in range(3):
        night(env, f"other{number}", rules, copy=OTHER)
    assert records_of(NIGHTLY, env.root).numbers() == [1, 4]
    night(env, "two", rules)
    assert records_of(NIGHTLY, env.root).numbers() == [4, 5]


def test_a_restore_of_several_copies_names_the_last_complete_run_of_each(env: Env) -> None:
    """No copy has all streams of the folder, so the user has to choose a run."""
    night(env, "one")
    first = env.content("in")
    night(env, "two")
    night(env, "other", copy=OTHER)
    both = r"run 3 of ScopeCopy team/other, run 2 of ScopeCopy team/nightly$"
    for choice in ({}, {"until": record(env, 3).end}):
        with pytest.raises(InvalidSpec, match=both) as caught:
            env.plan(back(**choice))
        assert caught.value.field == "spec.source.archive.run"
    assert restored(env, run=2) == first
    assert restored(env, until=record(env, 1).end) == first


def test_streams_that_are_gone_are_told_after_many_runs_of_another_copy(env: Env) -> None:
    """The comparison is with the same resource's last complete run, which may lie far back."""
    night(env, "one")
    found = record(env, 1)
    other = Maker(id="6f" * 16, name="ScopeCopy team/other")
    for number in range(2, 21):
        made = found.model_copy(update={"number": number, "maker": other, "work": "a" * 32})
        env.objects.put(f"{FOLDER}/{scope_run_name(number)}", made.model_dump_json().encode())
    drop(env.world, source_name(3))
    assert night(env, "two")[1] == 21
    assert record(env, 21).gone == ("s003",)


def test_a_result_that_is_asked_for_later_has_the_times_of_its_record(env: Env) -> None:
    """A lost status must not turn an old backup into a new one."""
    night(env, "one")
    found = env.resolved(NIGHTLY.as_run("one"), ask=True)
    assert isinstance(found, ScopeEnded)
    scope = found.plan.scope
    assert (scope.begin, scope.end) == (record(env, 1).begin, record(env, 1).end)


@pytest.mark.parametrize("number", [0, MOST_RUNS, 2**64 - 1])
def test_numbers_that_no_run_has_are_ignored(env: Env, number: int) -> None:
    """Each client with access to the bucket may make such an object."""
    assert scope_run_number(scope_run_name(number)) is None
    env.objects.put(f"{FOLDER}/{scope_run_name(number)}", b"{}")
    assert night(env, "one")[1] == 1
    assert restored(env) == env.content("in")


@pytest.mark.parametrize("rules", [Retention(keep_last=1), Retention(keep_seconds=1)])
def test_records_that_cannot_be_read_keep_no_others(env: Env, rules: Retention) -> None:
    """They may be first or last in the folder, and they stay themselves."""
    env.objects.put(f"{FOLDER}/{scope_run_name(1)}", b"something else")
    night(env, "one")
    night(env, "two")
    request = NIGHTLY.as_run("three")
    env.run(request)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, ALL)
    env.objects.put(f"{FOLDER}/{scope_run_name(5)}", b"something else")
    record_scope_run(request, ended, env.root, rules)
    assert records_of(NIGHTLY, env.root).numbers() == [1, 4, 5]


def test_a_restore_reads_a_limited_number_of_records(env: Env) -> None:
    """Beyond them, the user chooses a run by its number or by a near time."""
    night(env, "one")
    first, found = env.content("in"), record(env, 1)
    for number in range(2, 101):
        changes = {"number": number, "end": found.end + number, "failed": ("s009",)}
        made = found.model_copy(update=changes)
        env.objects.put(f"{FOLDER}/{scope_run_name(number)}", made.model_dump_json().encode())
    with pytest.raises(ArchiveNotFound, match=r"no complete run .* among the last 64") as caught:
        env.plan(BACK)
    assert caught.value.field == "spec.source.archive.run"
    assert "source.archive.run" in caught.value.remedy
    assert restored(env, run=1) == first
    assert restored(env, until=found.end + 10) == first


def test_the_error_of_a_record_that_cannot_be_read_names_the_remedy(env: Env) -> None:
    """A run is restored by its number all the same."""
    night(env, "one")
    env.objects.put(f"{FOLDER}/{scope_run_name(2)}", b"something else")
    with pytest.raises(ArchiveDamaged, match="scope-0000000000000002") as caught:
        env.plan(BACK)
    assert caught.value.field == "spec.source.archive.run"
    assert "Name a run in source.archive.run" in caught.value.remedy
