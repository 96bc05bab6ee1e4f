from typing import Any

import pytest

from sluice.archive.runs.verify import verify_archive
from sluice.core.archive.names import Format
from sluice.core.copy.steps import RecordRun, Step, Transfer
from sluice.core.scope.request import ArchiveTo, Rename, ScopeRequest, Selector
from sluice.core.scope.scope import StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import ScopeEnded
from sluice.core.workloads.plan import ScopeCopyPlan
from sluice.engine.scope.listener import SilentScope
from sluice.engine.scope.progress import ScopeWatch
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.work import Work
from sluice.errors import InvalidSpec, SourceNotFound, TargetExists
from support.archiving.scope_roots import BACK, FOLDER, TO, At, Env
from support.engine.scope_drivers import damage, put_scope, source_name
from support.engine.scope_requests import states_of
from support.engine.sources import events_of, put_source

NAMES = ["s000", "s001", "s002", "s003"]
COPIED = StreamState.COPIED.value


def wanted(**changes: object) -> ScopeRequest:
    """Return the request with these changes."""
    return TO.model_copy(update=changes)


def of_form(form: Format, **changes: object) -> ScopeRequest:
    """Return the request in a format."""
    return wanted(archive=ArchiveTo(format=form), **changes)


@pytest.mark.parametrize("form", list(Format))
def test_a_scope_that_is_archived_can_be_restored(env: Env, form: Format) -> None:
    """All streams are restored with their bytes and tags, from any format."""
    report = env.run(of_form(form))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    for name in NAMES:
        archive = env.archive(name)
        assert verify_archive(archive).problems == []
        head = archive.head()
        assert head is not None
        assert [one.verified for one in head.runs] == [True]
    before = env.content("in")
    env.world.streams.clear()
    env.world.segments.clear()
    report = env.run(BACK.model_copy(update={"make_scope": True}))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    assert env.content("out") == before
    config = env.store.configuration(StreamName(scope="out", stream="s000"))
    assert config is not None
    assert "team=a" in config.tags


def test_what_is_archived_is_told(env: Env) -> None:
    """Each stream has its bytes, its events, and the SHA-256 of the manifest."""
    results = {one.stream: one for one in env.run(TO).results}
    entry = env.archive("s000").head()
    assert entry is not None
    found = results["s000"]
    assert (found.bytes, found.events, found.digest) == (8 * 3 + 11, 3, entry.runs[0].sha256)
    again = env.resolved(TO, ask=True)
    assert isinstance(again, ScopeEnded)
    assert {one.stream: one for one in again.results} == results


def test_a_scope_is_archived_once_however_often_it_is_asked_for(env: Env) -> None:
    """This holds for another driver, without the log, and for a resource made again."""
    env.run(TO)
    for told in ("4 of 4 streams are copied and stay", "nothing was left"):
        found = env.resolved(TO, again=True)
        assert isinstance(found, ScopeEnded)
        assert states_of(found) == dict.fromkeys(NAMES, COPIED)
        assert env.abandon(TO) == told
    assert [len(env.manifests(name)) for name in NAMES] == [1] * 4


def test_nothing_is_left_but_archives(env: Env) -> None:
    """Neither notes nor leases stay, nor the log after its release."""
    env.run(TO)
    env.abandon(TO)
    assert {name.split("/")[2] for name in env.objects.held} == {"heads", "runs", "data"}


def test_a_stream_that_cannot_be_archived_is_named_and_the_others_go_on(env: Env) -> None:
    """The stream was made again under its name after the plan."""
    plan = env.plan(TO)
    damage(env.world, 1)
    report = env.run(TO, known=plan)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s001": "SourceReplaced"}
    assert env.archive("s001").head() is None
    report = env.run(TO, again=True)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    assert [len(env.manifests(name)) for name in NAMES] == [1] * 4


def test_no_other_stream_is_begun_after_a_failure_if_that_is_wanted(env: Env) -> None:
    """With `failurePolicy: Stop`, streams that were not begun are named."""
    plan = env.plan(TO)
    damage(env.world, 1)  # the largest stream, which comes first
    limits = Limits(parallelism=1, stop_at_failure=True)
    report = env.run(TO, known=plan, limits=limits)
    assert states_of(report)["s001"] == "SourceReplaced"
    assert report.counts.stopped == 3
    assert env.manifests("s000") == []


def test_archives_that_are_there(env: Env) -> None:
    """They prevent the copy, are left out, or each get another run."""
    env.run(wanted(scope_id="cc" * 16, include=(Selector(type="Exact", value="s000"),)))
    env.world.segments[f"{source_name(0)}/0"].data += events_of([7])
    with pytest.raises(TargetExists, match=r"1 archive is in the folder shop already.*s000"):
        env.plan(TO)
    plan = env.plan(wanted(on_exists="Skip"))
    assert [one.name for one in plan.runs] == ["s001", "s003", "s002"]
    assert plan.scope is not None
    assert [(one.why, one.streams) for one in plan.scope.left_out] == [(Why.EXISTS, ("s000",))]
    report = env.run(wanted(on_exists="Append"))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)
    assert {one.stream: one.bytes for one in report.results}["s000"] == 8 + 7
    assert [len(env.manifests(name)) for name in NAMES] == [2, 1, 1, 1]


def archive_first(env: Env) -> None:
    """Let another client archive the first stream."""
    env.run(
        wanted(
            scope_id="cc" * 16,
            include=(Selector(type="Exact", value="s000"),),
            on_exists="Append",
        )
    )


@pytest.mark.parametrize("on_exists", ["Fail", "Skip"])
def test_an_archive_that_somebody_makes_after_the_plan_gets_no_run(
    env: Env, on_exists: str
) -> None:
    """That stream fails by name, as for an earlier archive. The others go on."""
    request = wanted(on_exists=on_exists)
    plan = env.plan(request)
    archive_first(env)
    report = env.run(request, known=plan)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s000": "TargetExists"}
    (trouble,) = [one.trouble for one in report.results if one.trouble is not None]
    assert trouble.message == "there is an archive at shop/s000, and this copy did not make it"
    assert trouble.remedy == "Take onExists: Append to add a run to it, or rename."
    assert len(env.manifests("s000")) == 1
    assert not [name for name in env.objects.held if name.startswith("shop/s000/work/")]


@pytest.mark.parametrize("step", [Transfer, RecordRun])
def test_an_archive_that_is_made_meanwhile_gets_no_run(env: Env, step: type[Step]) -> None:
    """The other archive may come until this run is recorded. A retry adds no run either."""
    expected = dict.fromkeys(NAMES, COPIED) | {"s000": "TargetExists"}
    assert states_of(env.run(TO, listener=At(step, lambda: archive_first(env)))) == expected
    again = env.resolved(TO, again=True)
    assert isinstance(again, ScopeEnded)
    assert states_of(again) == expected
    assert len(env.manifests("s000")) == 1


def test_an_archive_of_another_stream_gets_no_run(env: Env) -> None:
    """The archive is named and does not change."""
    put_source(env.world, [3], name=StreamName(scope="elsewhere", stream="s000"))
    env.world.scopes.add("elsewhere")
    env.run(wanted(scope_id="cc" * 16, source="elsewhere"))
    report = env.run(wanted(on_exists="Append"))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s000": "InvalidSpec"}
    assert len(env.manifests("s000")) == 1


def test_archives_can_have_other_names(env: Env) -> None:
    """No two streams share a name. A stream may be called like a part of an archive."""
    put_source(env.world, [3], name=StreamName(scope="in", stream="events"), seed=7)
    renames = (Rename(from_prefix="s", to_prefix="stream-"),)
    report = env.run(wanted(rename=renames))
    assert [one.target for one in sorted(report.results, key=lambda one: one.stream)] == [
        "events",
        *(f"stream-00{number}" for number in range(4)),
    ]
    assert sorted(env.root.paths(FOLDER)) == [
        f"{FOLDER}/{name}" for name in ("events=", *(f"stream-00{n}" for n in range(4)))
    ]
    back = BACK.model_copy(update={"rename": (Rename(from_prefix="stream-", to_prefix="s"),)})
    env.world.scopes.add("out")
    env.run(back)
    assert env.content("out") == env.content("in")
    with pytest.raises(InvalidSpec, match="s000 and s001 would both be copied to one"):
        env.plan(
            wanted(
                scope_id="dd" * 16,
                rename=tuple(Rename(from_prefix=one, to_prefix="one") for one in NAMES[:2]),
            )
        )


def test_the_folder_is_none_that_is_an_archive(env: Env) -> None:
    """Archives are not nested."""
    env.run(TO)
    with pytest.raises(InvalidSpec, match=f"{FOLDER}/s000 is an archive"):
        env.plan(wanted(scope_id="cc" * 16, target=f"{FOLDER}/s000"))


def test_a_scope_that_is_not_there_cannot_be_archived(env: Env) -> None:
    """The error names the field."""
    with pytest.raises(SourceNotFound, match="'nowhere'"):
        env.plan(wanted(source="nowhere"))


def test_archives_are_not_copied_to_archives(env: Env) -> None:
    """The error has the remedy."""
    request = BACK.model_copy(update={"archive": ArchiveTo(), "target": "copies"})
    with pytest.raises(InvalidSpec, match="archives are not copied to archives") as caught:
        env.plan(request)
    assert "Mirror the bucket" in caught.value.remedy


def test_many_streams_are_in_a_round(env: Env) -> None:
    """With a rate limit all bytes are moved in rounds. Each slice is of the stream at its place."""
    limits = Limits(bytes_per_second=1 << 40)
    assert states_of(env.run(TO, limits=limits)) == dict.fromkeys(NAMES, COPIED)
    env.world.scopes.add("out")
    assert states_of(env.run(BACK, limits=limits)) == dict.fromkeys(NAMES, COPIED)
    assert env.content("out") == env.content("in")


def test_progress_is_read_from_the_folder(env: Env) -> None:
    """It counts the bytes of recorded runs and of current ones."""
    plan = env.plan(TO)
    measured = []

    class Measuring(SilentScope):
        """A listener that measures before the first bytes and after each stream."""

        def step(self, copy: Work[Any, Any], step: Step) -> None:  # noqa: ARG002 - see Listener
            """See Listener."""
            if isinstance(step, Transfer) or not measured:
                measured.append(ScopeWatch(plan, env.root).measure())

    env.run(TO, listener=Measuring(), limits=Limits(parallelism=1))
    assert measured[0].bytes == 0
    assert 0 < measured[-1].bytes < plan.bytes
    done = ScopeWatch(plan, env.root).measure()
    assert (done.bytes, done.total, done.published) == (plan.bytes, plan.bytes, True)


def test_a_plan_is_kept_as_it_was_written_down(env: Env) -> None:
    """The plan goes through JSON with its hash, and its largest streams come first."""
    put_scope(env.world, [[9, 1], [1]], [[40, 0, 30]])
    plan = env.plan(TO)
    assert ScopeCopyPlan.model_validate_json(plan.model_dump_json()) == plan
    assert [one.bytes for one in plan.items] == sorted((r.bytes for r in plan.runs), reverse=True)
    assert plan.hash != plan.model_copy(update={"runs": plan.runs[:1]}).hash
