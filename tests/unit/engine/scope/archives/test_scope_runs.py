"""Runs of a scope that is archived again and again: their records, and restores of one of them."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from sluice.core.archive.manifest import Maker
from sluice.core.archive.retention import Retention
from sluice.core.scope.request import ArchiveTo, RestoreFrom, ScopeRequest, Selector
from sluice.core.scope.runs import MOST_RUNS, ScopeRun, scope_run_name, scope_run_number
from sluice.core.scope.scope import StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.archive.retention import retain
from sluice.engine.scope.planners import base as planner
from sluice.engine.scope.recorded_runs import needed_runs, records_of
from sluice.engine.scope.series import abandon_runs, record_scope_run
from sluice.engine.tasks.limits import Limits
from sluice.errors import ArchiveDamaged, ArchiveNotFound, InvalidSpec, StoreBusy
from sluice.pipelines.programs import run as program
from support.engine.scope_drivers import damage, source_name
from support.engine.scope_requests import drop, states_of
from support.engine.scope_roots import BACK, FOLDER, TO, Env
from support.engine.sources import events_of, put_source
from support.model import segment_name

if TYPE_CHECKING:
    from sluice.engine.scope.report import ScopeReport

NAMES = ["s000", "s001", "s002", "s003"]
COPIED = StreamState.COPIED.value


def nightly(series: str, name: str, *streams: str) -> ScopeRequest:
    """Return the request of a resource that archives streams, or all, again and again."""
    return TO.model_copy(
        update={
            "series": series,
            "scope_id": series,
            "on_exists": "Append",
            "archive": ArchiveTo(maker=Maker(id=series, name=f"ScopeCopy team/{name}")),
            "include": tuple(Selector(type="Exact", value=one) for one in streams),
        }
    )


NIGHTLY = nightly("5e" * 16, "nightly")
OTHER = nightly("6f" * 16, "other", "s003")
ALL = Retention()


@pytest.fixture(autouse=True)
def later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each look at a clock be a second after the last one."""
    clock = itertools.count(1_000_000_000_000, 1000)
    monkeypatch.setattr(planner, "_now", lambda: next(clock))


def night(
    env: Env, key: str, retention: Retention = ALL, *, copy: ScopeRequest = NIGHTLY
) -> tuple[ScopeReport, int]:
    """Make a run of the scope, record it and tidy. Return its report and its number."""
    request = copy.as_run(key)
    report = env.run(request)
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    assert ended.number is None
    number = record_scope_run(request, ended, env.root, retention)
    recorded = env.resolved(request, ask=True)
    assert isinstance(recorded, ScopeEnded)
    assert recorded.number == number
    env.abandon(request)
    return report, number


def nightly_as_driven(env: Env, key: str, retention: Retention) -> ScopeReport:
    """Make a run, tidy the archives as its driver does, and then record it."""
    request = NIGHTLY.as_run(key)
    report = env.run(request)
    program._tidy_all(report, env.root, retention, Limits)
    keep(env, request, retention)
    return report


def keep(env: Env, request: ScopeRequest, retention: Retention) -> None:
    """Record a run that is over, and delete its log."""
    ended = env.resolved(request, ask=True)
    assert isinstance(ended, ScopeEnded)
    record_scope_run(request, ended, env.root, retention)
    env.abandon(request)


def lose(env: Env, name: str) -> dict[str, bytes]:
    """Delete an archive, and return its objects."""
    lost = {
        key: data for key, data in env.objects.held.items() if key.startswith(f"{FOLDER}/{name}/")
    }
    for key in lost:
        del env.objects.held[key]
    return lost


def write(env: Env, number: int = 0) -> None:
    """Write an event to a stream."""
    env.world.segments[segment_name(source_name(number), 0)].data += events_of([7])


def record(env: Env, number: int) -> ScopeRun:
    """Return the record of a run."""
    data = env.objects.held[f"{FOLDER}/{scope_run_name(number)}"]
    return ScopeRun.model_validate_json(data)


def restored(env: Env, **wanted: int) -> dict[str, list[bytes]]:
    """Restore a run into an empty scope, and return what its streams hold."""
    for name in [one for one in env.world.streams if one.scope == "out"]:
        drop(env.world, name)
    env.world.scopes.add("out")
    request = back(**wanted)
    env.run(request)
    env.abandon(request)
    return env.content("out")


def back(**wanted: int) -> ScopeRequest:
    """Return the request to restore a run."""
    return BACK.model_copy(update={"restore": RestoreFrom(**wanted)})


def test_each_run_adds_to_the_archives_and_is_recorded(env: Env) -> None:
    """Its record names the run of each stream, which no other record has."""
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
    """Neither in the archives nor among the records, however often it is asked for."""
    night(env, "one")
    request = NIGHTLY.as_run("one")
    found = env.resolved(request, ask=True)
    assert isinstance(found, ScopeEnded)
    assert (states_of(found), found.number) == (dict.fromkeys(NAMES, COPIED), 1)
    assert record_scope_run(request, found, env.root, ALL) == 1
    assert [len(env.manifests(name)) for name in NAMES] == [1] * 4


def test_a_stream_joins_at_the_next_run(env: Env) -> None:
    """And one that is gone keeps its archive, with all of its runs."""
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
    """Not what single archives got since; those that it did not add to are left out, by name."""
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
    """Those that it archived, as it archived them."""
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
    """A time before the first run names the runs that there are."""
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
    """It names the runs, of which one can be chosen."""
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
    """The others are restored; another run of the scope can be."""
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
    """Since the run of the scope had it."""
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
    """By number, by age, or both; numbers go on."""
    for number in range(4):
        night(env, f"{number}")
    night(env, "last", rules)
    assert records_of(NIGHTLY, env.root).numbers() == kept


def test_the_last_complete_record_stays(env: Env) -> None:
    """However many runs have failed since."""
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
    """It has no record yet, so it is the next one still."""
    records = records_of(NIGHTLY, env.root)
    assert records.next_key() == "run:1"
    env.run(NIGHTLY.as_run(records.next_key()))  # and is killed before the run is recorded
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
    """The next one gets the number after it. A restore names it, unless a run is chosen."""
    night(env, "one")
    env.objects.put(f"{FOLDER}/{scope_run_name(2)}", b"something else")
    assert night(env, "two", Retention(keep_last=1))[1] == 3
    assert f"{FOLDER}/{scope_run_name(2)}" in env.objects.held
    env.objects.put(f"{FOLDER}/{scope_run_name(4)}", b"something else")
    with pytest.raises(ArchiveDamaged, match="scope-0000000000000004"):
        env.plan(BACK)
    assert restored(env, run=3) == env.content("in")


def test_a_name_in_a_record_is_no_path(env: Env) -> None:
    """Other clients may write into the bucket: the record counts as damaged."""
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
    """A client that takes the last one is named, and nothing is written over."""
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


@pytest.mark.parametrize("last", [1, 2])
def test_the_runs_of_the_last_complete_run_stay_while_streams_fail(env: Env, last: int) -> None:
    """However many runs have failed since; a newer complete run takes their place."""
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
    """The driver tidies before: an operator that is away meanwhile costs no backup."""
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
    """If more records lie after it than are read, the driver tidies nothing."""
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
    """All streams are of one time, also if a later run was recorded meanwhile."""
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
    """The streams that are left fail and name the run; those that are restored stay."""
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


def test_retention_of_a_copy_leaves_the_records_of_another_one(env: Env) -> None:
    """Each keeps its own, however many runs the other one makes in the folder."""
    night(env, "one")
    rules = Retention(keep_last=1)
    for number in range(3):
        night(env, f"other{number}", rules, copy=OTHER)
    assert records_of(NIGHTLY, env.root).numbers() == [1, 4]
    night(env, "two", rules)
    assert records_of(NIGHTLY, env.root).numbers() == [4, 5]


def test_a_restore_of_several_copies_names_the_last_complete_run_of_each(env: Env) -> None:
    """None of them has all streams of the folder, so that one has to be named."""
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


def test_a_result_that_is_asked_for_later_has_the_times_of_its_record(env: Env) -> None:
    """A status that was lost must not take an old backup for a new one."""
    night(env, "one")
    found = env.resolved(NIGHTLY.as_run("one"), ask=True)
    assert isinstance(found, ScopeEnded)
    scope = found.plan.scope
    assert (scope.begin, scope.end) == (record(env, 1).begin, record(env, 1).end)


@pytest.mark.parametrize("number", [0, MOST_RUNS, 2**64 - 1])
def test_numbers_that_no_run_has_are_ignored(env: Env, number: int) -> None:
    """Anybody with access to the bucket may make such an object."""
    assert scope_run_number(scope_run_name(number)) is None
    env.objects.put(f"{FOLDER}/{scope_run_name(number)}", b"{}")
    assert night(env, "one")[1] == 1
    assert restored(env) == env.content("in")


@pytest.mark.parametrize("rules", [Retention(keep_last=1), Retention(keep_seconds=1)])
def test_records_that_cannot_be_read_keep_no_others(env: Env, rules: Retention) -> None:
    """Whether they are the first or the last ones in the folder. They stay themselves."""
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
    """Beyond them, a run is chosen by its number, or by a time near to it."""
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
