"""Runs of a scope that is archived repeatedly: their records, and restores of one run."""

from __future__ import annotations

import itertools
import json

import pytest

from sluice.core.archive.retention import Retention
from sluice.core.scope.request import RestoreFrom, Selector
from sluice.core.scope.runs import MOST_RUNS, scope_run_name
from sluice.core.scope.scope import Why
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.archive.retention import retain
from sluice.engine.scope.planners import base as planner
from sluice.engine.scope.recorded_runs import records_of
from sluice.engine.scope.series import abandon_runs, record_scope_run
from sluice.errors import ArchiveDamaged, ArchiveNotFound
from support.archiving.nightly_scopes import (
    ALL,
    COPIED,
    NAMES,
    NIGHTLY,
    back,
    night,
    record,
    restored,
    write,
)
from support.archiving.scope_roots import BACK, FOLDER, TO, Env
from support.engine.scope_drivers import damage, source_name
from support.engine.scope_requests import drop, states_of
from support.engine.sources import put_source


@pytest.fixture(autouse=True)
def later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock tell a time one second after the last one."""
    clock = itertools.count(1_000_000_000_000, 1000)
    monkeypatch.setattr(planner, "_now", lambda: next(clock))


def test_each_run_adds_to_the_archives_and_is_recorded(env: Env) -> None:
    """Its record names the run of each stream, which no other record names."""
    assert [night(env, "one")[1], night(env, "two")[1]] == [1, 2]
    assert [len(env.manifests(name)) for name in NAMES] == [2] * 4
    for number in (1, 2):
        found = record(env, number)
        assert found.is_complete
        runs = {one.stream: one.sha256 for one in found.streams}
        heads = {name: env.archive(name).head() for name in NAMES}
        assert runs == {
            name: head.runs[number - 1].sha256 for name, head in heads.items() if head is not None
        }
    assert record(env, 1).end < record(env, 2).begin


def test_a_request_with_the_same_key_makes_no_second_run(env: Env) -> None:
    """Neither an archive nor the records get another run, however often it is requested."""
    night(env, "one")
    request = NIGHTLY.as_run("one")
    found = env.resolved(request, ask=True)
    assert isinstance(found, ScopeEnded)
    assert (states_of(found), found.number) == (dict.fromkeys(NAMES, COPIED), 1)
    assert record_scope_run(request, found, env.root, ALL) == 1
    assert [len(env.manifests(name)) for name in NAMES] == [1] * 4


def test_a_stream_joins_at_the_next_run(env: Env) -> None:
    """A deleted stream keeps its archive with all runs."""
    night(env, "one")
    first = env.content("in")
    put_source(env.world, [3], name=StreamName(scope="in", stream="young"), seed=7)
    drop(env.world, source_name(1))
    report, _ = night(env, "two")
    names = ["s000", "s002", "s003", "young"]
    assert states_of(report) == dict.fromkeys(names, COPIED)
    assert [one.stream for one in record(env, 2).streams] == names
    assert len(env.manifests("s001")) == 1
    night(env, "three")
    assert restored(env, run=2) == env.content("in")
    one = {"include": (Selector(type="Exact", value="s001"),)}
    alone = BACK.model_copy(update=one | {"scope_id": "b1" * 16})
    nothing = env.resolved(alone.model_copy(update={"restore": RestoreFrom(run=3)}))
    assert isinstance(nothing, ScopeEnded)
    assert (Why.NOT_IN_RUN, ("s001",)) in [
        (left.why, left.streams) for left in nothing.plan.scope.left_out
    ]
    report = env.run(alone.model_copy(update={"restore": RestoreFrom(run=1)}))
    assert states_of(report) == {"s001": COPIED}
    assert env.content("out")["s001"] == first["s001"]


def test_without_a_choice_the_last_complete_run_is_restored(env: Env) -> None:
    """Later runs of single archives do not count. Archives without a part in it are left out."""
    night(env, "one")
    first = env.content("in")
    write(env, 1)
    put_source(env.world, [3], name=StreamName(scope="in", stream="young"), seed=7)
    plan = env.plan(NIGHTLY.as_run("two"))
    damage(env.world, 1)
    request = NIGHTLY.as_run("two")
    report = env.run(request, known=plan)
    assert states_of(report)["s001"] == "SourceReplaced"
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, ALL)
    env.abandon(request)
    assert record(env, 2).failed == ("s001",)
    env.world.scopes.add("out")
    plan = env.plan(BACK)
    assert isinstance(plan, ScopeCopyPlan)
    assert plan.scope.restored == 1
    assert [(one.why, one.streams) for one in plan.scope.left_out] == [(Why.NOT_IN_RUN, ("young",))]
    assert restored(env) == first


def test_a_run_is_restored_by_its_number_also_if_streams_failed_in_it(env: Env) -> None:
    """The restore has the streams that the run archived, as it archived them."""
    night(env, "one")
    write(env, 1)
    plan = env.plan(NIGHTLY.as_run("two"))
    damage(env.world, 1)
    request = NIGHTLY.as_run("two")
    env.run(request, known=plan)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, ALL)
    env.abandon(request)
    assert sorted(restored(env, run=2)) == ["s000", "s002", "s003"]
    with pytest.raises(ArchiveNotFound, match=r"no run 3 of a scope; it has 1, 2") as caught:
        env.plan(back(run=3))
    assert caught.value.field == "spec.source.archive.run"


def test_the_last_complete_run_up_to_a_time_is_restored(env: Env) -> None:
    """For a time before the first run, the error names the existing runs."""
    night(env, "one")
    first = env.content("in")
    write(env)
    night(env, "two")
    second = env.content("in")
    assert first != second
    assert restored(env, until=record(env, 2).end - 1) == first
    assert restored(env, until=record(env, 2).end) == second
    assert restored(env) == second
    with pytest.raises(ArchiveNotFound, match="ends by that time; it has 1, 2") as caught:
        env.plan(back(until=record(env, 1).end - 1))
    assert caught.value.field == "spec.source.archive.until"


def test_a_folder_without_a_complete_run_says_so(env: Env) -> None:
    """The error names the runs, of which the user can choose one."""
    plan = env.plan(NIGHTLY.as_run("one"))
    damage(env.world, 1)
    request = NIGHTLY.as_run("one")
    env.run(request, known=plan)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, ALL)
    with pytest.raises(ArchiveNotFound, match="no complete run of the scope; it has 1"):
        env.plan(BACK)


def test_a_run_of_a_stream_that_was_let_go_is_named(env: Env) -> None:
    """The others are restored, and another run of the scope can be chosen."""
    night(env, "one")
    write(env)
    night(env, "two")
    retain(env.archive("s000"), Retention(keep_last=1))
    env.world.scopes.add("out")
    report = env.run(back(run=1))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s000": "ArchiveNotFound"}
    env.abandon(back(run=1))
    assert restored(env, run=2) == env.content("in")


def test_an_archive_that_is_gone_is_named(env: Env) -> None:
    """The run of the scope had it."""
    night(env, "one")
    for name in [one for one in env.objects.held if one.startswith(f"{FOLDER}/s000/")]:
        del env.objects.held[name]
    env.world.scopes.add("out")
    report = env.run(BACK)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s000": "ArchiveNotFound"}


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (Retention(), [1, 2, 3, 4, 5]),
        (Retention(keep_last=2), [4, 5]),
        (Retention(keep_seconds=1), [5]),
        (Retention(keep_seconds=1_000_000), [1, 2, 3, 4, 5]),
        (Retention(keep_last=3, keep_seconds=1), [3, 4, 5]),
    ],
)
def test_records_are_kept_as_the_runs_are(env: Env, rules: Retention, kept: list[int]) -> None:
    """The rule is by number, by age, or by both."""
    for number in range(4):
        night(env, f"{number}")
    night(env, "last", rules)
    assert records_of(NIGHTLY, env.root).numbers() == kept


def test_the_last_complete_record_stays(env: Env) -> None:
    """This holds for any number of failed runs since."""
    night(env, "one")
    write(env, 1)
    damage(env.world, 1)
    for number in range(3):
        request = NIGHTLY.as_run(f"bad{number}")
        env.run(request)
        ended = env.resolved(request, ask=True)
        assert isinstance(ended, ScopeEnded)
        record_scope_run(request, ended, env.root, Retention(keep_last=1))
        env.abandon(request)
    assert records_of(NIGHTLY, env.root).numbers() == [1, 4]


def test_a_client_without_a_key_resumes_the_run_that_was_cut_off(env: Env) -> None:
    """The run has no record yet, so it is still the next run."""
    records = records_of(NIGHTLY, env.root)
    assert records.next_key() == "run:1"
    env.run(NIGHTLY.as_run(records.next_key()))  # the driver dies before it records the run
    assert records.next_key() == "run:1"
    request = NIGHTLY.as_run("run:1")
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    assert record_scope_run(request, ended, env.root, ALL) == 1
    assert [len(env.manifests(name)) for name in NAMES] == [1] * 4
    assert records.next_key() == "run:2"


def test_two_clients_that_record_at_once_get_numbers_of_their_own(env: Env) -> None:
    """Each run has one record, in the order in which they were made."""
    requests = [NIGHTLY.as_run(key) for key in ("one", "two")]
    answers = []
    for request in requests:
        env.run(request)
        answers.append(env.resolved(request, ask=True))
    found = []
    for request, ended in zip(reversed(requests), reversed(answers), strict=True):
        assert isinstance(ended, ScopeEnded)
        found.append(record_scope_run(request, ended, env.root, ALL))
    assert found == [1, 2]


def test_a_record_that_cannot_be_read_stops_no_run(env: Env) -> None:
    """The next run gets the number after it. A restore names it, unless a run is chosen."""
    night(env, "one")
    env.objects.put(f"{FOLDER}/{scope_run_name(2)}", b"something else")
    assert night(env, "two", Retention(keep_last=1))[1] == 3
    assert f"{FOLDER}/{scope_run_name(2)}" in env.objects.held
    env.objects.put(f"{FOLDER}/{scope_run_name(4)}", b"something else")
    with pytest.raises(ArchiveDamaged, match="scope-0000000000000004"):
        env.plan(BACK)
    assert restored(env, run=3) == env.content("in")


def test_a_name_in_a_record_is_no_path(env: Env) -> None:
    """Other clients may write into the bucket, so the record counts as damaged."""
    night(env, "one")
    name = f"{FOLDER}/{scope_run_name(1)}"
    body = json.loads(env.objects.held[name])
    body["streams"][0]["stream"] = "../other/s000"
    env.objects.put(name, json.dumps(body).encode())
    with pytest.raises(ArchiveDamaged, match=r"streams\.0\.stream"):
        env.plan(BACK)


def test_what_an_earlier_run_has_left_goes_with_a_later_one(env: Env) -> None:
    """Its key may be lost. Logs of other copies in the folder stay."""
    env.run(NIGHTLY.as_run("forgotten"))
    other = NIGHTLY.model_copy(update={"series": "0f" * 16}).as_run("other")
    env.run(other)
    once = TO.model_copy(update={"on_exists": "Append"})
    env.run(once)
    request = NIGHTLY.as_run("later")
    abandon_runs(request, source=env.store, target=env.root, known=None)
    logs = {name.split("/")[2] for name in env.objects.held if name.startswith("shop/work/")}
    assert logs == {f"scope-{one.scope_id}" for one in (other, once)}


def test_numbers_of_runs_have_an_end(env: Env) -> None:
    """If a client takes the last number, the error names it, and no record is overwritten."""
    env.objects.put(f"{FOLDER}/{scope_run_name(MOST_RUNS - 1)}", b"{}")
    request = NIGHTLY.as_run("one")
    env.run(request)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    with pytest.raises(ArchiveDamaged, match="no run can follow"):
        record_scope_run(request, ended, env.root, ALL)


def test_records_are_no_archive_and_no_stream(env: Env) -> None:
    """The folder is listed, planned and archived to as before."""
    night(env, "one")
    assert sorted(env.root.paths(FOLDER)) == [f"{FOLDER}/{name}" for name in NAMES]
    assert env.root.names(FOLDER) == NAMES
    once = TO.model_copy(update={"on_exists": "Append", "scope_id": "cc" * 16})
    assert states_of(env.run(once)) == dict.fromkeys(NAMES, COPIED)
