from typing import Any

import pytest

from sluice.core.archive.head import Head
from sluice.core.copy.steps import Step
from sluice.core.scope.request import Rename, RestoreFrom, ScopeRequest, Selector
from sluice.core.scope.scope import StreamState, Why
from sluice.core.values.model import StreamName
from sluice.core.workloads.answers import ScopeEnded
from sluice.engine.scope.listener import SilentScope
from sluice.engine.scope.streams import HOLD_AGAIN, ScopeStreams
from sluice.engine.tasks.work import Work
from sluice.errors import ArchiveNotFound, InvalidSpec, TargetExists
from support.archiving.scope_roots import BACK, FOLDER, TO, Env
from support.engine.scope_drivers import source_name
from support.engine.scope_requests import states_of
from support.engine.sources import ManualClock, events_of, put_source
from support.model import segment_name

NAMES = ["s000", "s001", "s002", "s003"]
COPIED = StreamState.COPIED.value


@pytest.fixture(autouse=True)
def archived(env: Env) -> None:
    """Archive the scope, and make another scope."""
    env.run(TO)
    env.abandon(TO)
    env.world.scopes.add("out")


def wanted(**changes: object) -> ScopeRequest:
    """Return the request with these changes."""
    return BACK.model_copy(update=changes)


def head_of(env: Env, name: str) -> Head:
    """Return the head of an archive."""
    head = env.archive(name).head()
    assert head is not None
    return head


def test_a_restore_is_done_once(env: Env) -> None:
    """A second request finds all of it."""
    env.run(BACK)
    for ask in (False, True):
        found = env.resolved(BACK, ask=ask, again=True)
        assert isinstance(found, ScopeEnded)
        assert states_of(found) == dict.fromkeys(NAMES, COPIED)
    env.abandon(BACK)
    found = env.resolved(BACK)
    assert isinstance(found, ScopeEnded)
    assert states_of(found) == dict.fromkeys(NAMES, COPIED)
    assert env.world.staging() == []


def test_a_damaged_archive_is_named_and_the_others_are_restored(env: Env) -> None:
    """The damage may be in the head, the manifest or an object."""
    for name, folder in (("s000", "heads"), ("s001", "runs"), ("s003", "data")):
        first = next(one for one in env.objects.held if one.startswith(f"shop/{name}/{folder}/"))
        env.objects.held[first] = b"x" + env.objects.held[first][1:]
    report = env.run(BACK)
    assert states_of(report) == dict.fromkeys(NAMES, "ArchiveDamaged") | {"s002": COPIED}
    assert sorted(env.content("out")) == ["s002"]


def test_of_each_archive_the_last_run_up_to_a_time_is_restored(env: Env) -> None:
    """Archives with later runs only are left out, by name."""
    first = env.content("in")
    until = max(head_of(env, name).runs[-1].time for name in NAMES)
    env.world.segments[segment_name(source_name(0), 0)].data += events_of([5])
    put_source(env.world, [3], name=StreamName(scope="in", stream="young"), seed=7)
    again = TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Append"})
    while max(head_of(env, name).runs[-1].time for name in NAMES) <= until:
        env.run(again)
        again = again.model_copy(update={"scope_id": f"{int(again.scope_id, 16) + 1:032x}"})
    request = wanted(restore=RestoreFrom(until=until))
    plan = env.plan(request)
    assert plan.scope is not None
    assert [(one.why, one.streams) for one in plan.scope.left_out] == [(Why.LATER, ("young",))]
    env.run(request)
    assert env.content("out") == first
    with pytest.raises(ArchiveNotFound, match="there are no archives"):
        env.plan(wanted(scope_id="dd" * 16, source="elsewhere"))


def test_a_stream_whose_runs_up_to_a_time_were_let_go_is_named(env: Env) -> None:
    """It existed at that time, so it is not left out as a later stream."""
    until = max(head_of(env, name).runs[-1].time for name in NAMES)
    again = TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Append"})
    while head_of(env, "s000").runs[-1].time <= until:
        env.run(again)
        again = again.model_copy(update={"scope_id": f"{int(again.scope_id, 16) + 1:032x}"})
    head = head_of(env, "s000")
    env.archive("s000").drop_runs([one.run for one in head.runs if one.time <= until], head)
    request = wanted(restore=RestoreFrom(until=until))
    report = env.run(request)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s000": "ArchiveNotFound"}
    (trouble,) = [one.trouble for one in report.results if one.trouble is not None]
    assert trouble.message == "the runs of the archive at shop/s000 up to that time were let go"
    assert "spec.source.archive.until" in trouble.remedy
    found = env.resolved(request, again=True)
    assert isinstance(found, ScopeEnded)
    assert states_of(found)["s000"] == "ArchiveNotFound"


def test_archives_are_selected_by_name_and_by_the_tags_of_their_streams(env: Env) -> None:
    """The tags are those of the run. Archives that are not selected are counted."""
    tagged = StreamName(scope="in", stream="t")
    put_source(env.world, [3], name=tagged)
    env.world.streams[tagged].config = env.world.streams[tagged].config.model_copy(
        update={"tags": ("pii",)}
    )
    env.run(TO.model_copy(update={"scope_id": "cc" * 16, "on_exists": "Skip"}))
    for include, expected in (
        ((Selector(type="Tag", value="pii"),), {"t"}),
        ((Selector(type="Prefix", value="s00"),), set(NAMES)),
        ((Selector(type="Exact", value="s001"),), {"s001"}),
    ):
        assert {one.name for one in env.plan(wanted(include=include)).streams} == expected
    exclude = (Selector(type="Tag", value="team=a"),)
    assert {one.name for one in env.plan(wanted(exclude=exclude)).streams} == {"t"}


def test_targets_that_are_there(env: Env) -> None:
    """They prevent the copy, are left out, or are appended to once."""
    put_source(env.world, [3], [4], name=StreamName(scope="out", stream="s000"), seed=9)
    with pytest.raises(TargetExists, match="s000"):
        env.plan(BACK)
    assert len(env.plan(wanted(on_exists="Skip")).streams) == 3
    report = env.run(wanted(on_exists="Append"))
    assert states_of(report) == dict.fromkeys(NAMES, COPIED)


def test_a_folder_that_is_an_archive_is_no_folder(env: Env) -> None:
    """A StreamCopy restores an archive."""
    with pytest.raises(InvalidSpec, match=f"{FOLDER}/s000 is an archive") as caught:
        env.plan(wanted(source=f"{FOLDER}/s000"))
    assert "StreamCopy" in caught.value.remedy


def test_what_lies_in_the_folder_and_is_no_archive_is_not_minded(env: Env) -> None:
    """Files of other clients, and archives without a recorded run, are left out."""
    env.objects.put("shop/readme/text", b"hello")
    env.objects.put("shop/begun/data/x", b"hello")
    assert sorted(one.name for one in env.plan(BACK).streams) == NAMES


def test_a_name_that_no_stream_can_have_is_refused(env: Env) -> None:
    """The refusal comes before the copy begins, and another name can be given."""
    for name in [one for one in env.objects.held if one.startswith("shop/s000/")]:
        env.objects.put(name.replace("s000", "a@b"), env.objects.held[name])
    with pytest.raises(InvalidSpec, match="a@b would be restored as 'a@b'"):
        env.plan(BACK)
    plan = env.plan(wanted(rename=(Rename(from_prefix="a@b", to_prefix="ab"),)))
    assert "ab" in {one.target_name for one in plan.items}


def test_a_moved_archive_is_refused(env: Env) -> None:
    """A restore deletes no archive. Retention removes old runs."""
    with pytest.raises(InvalidSpec, match="archives are not moved"):
        env.plan(wanted(move=True))


def leases(env: Env) -> set[str]:
    """Return the archives that are being read."""
    return {name.split("/")[1] for name in env.objects.held if "/leases/" in name}


def test_all_runs_are_kept_from_being_swept_before_the_first_stream_is_begun(env: Env) -> None:
    """This includes streams that wait for their turn. In the end no lease is left."""
    held: list[set[str]] = []

    class Looking(SilentScope):
        """A listener that records the leases when a stream begins."""

        def step(self, copy: Work[Any, Any], step: Step) -> None:  # noqa: ARG002 - see Listener
            """See Listener."""
            if not held:
                held.append(leases(env))

    env.run(BACK, listener=Looking())
    assert held == [set(NAMES)]
    assert leases(env) == set()


def test_runs_of_streams_that_wait_for_long_are_kept_on(env: Env) -> None:
    """The leases are renewed in time, and the old ones are released."""
    clock = ManualClock()
    streams = ScopeStreams(env.plan(BACK), [env.root], env.store, clock)

    def held() -> set[str]:
        return {name for name in env.objects.held if "/leases/" in name}

    streams.hold(range(4))
    first = held()
    streams.hold_on(lambda: range(4))
    assert held() == first
    clock.sleep(HOLD_AGAIN + 1)
    streams.hold_on(lambda: [0, 2])
    assert (len(held()), len(held() & first)) == (4, 2)
    streams.release(range(4))
    assert held() == set()


def test_a_run_that_was_let_go_since_it_was_planned_fails_by_name(env: Env) -> None:
    """It makes no stream, and the others are restored."""
    plan = env.plan(BACK)
    for name in [one for one in env.objects.held if one.startswith("shop/s001/")]:
        env.objects.delete([name])
    report = env.run(BACK, known=plan)
    assert states_of(report) == dict.fromkeys(NAMES, COPIED) | {"s001": "ArchiveNotFound"}
    assert sorted(env.content("out")) == ["s000", "s002", "s003"]
    env.abandon(BACK)
    assert leases(env) == set()


def test_a_restore_that_is_abandoned_leaves_nothing(env: Env) -> None:
    """The leases of streams that were not begun are released, too."""

    class Stopped(BaseException):
        """The driver's end."""

    class Stopping(SilentScope):
        """A listener that stops the driver at its first step."""

        def step(self, copy: Work[Any, Any], step: Step) -> None:  # noqa: ARG002 - see Listener
            """See Listener."""
            raise Stopped

    with pytest.raises(Stopped):
        env.run(BACK, listener=Stopping())
    assert leases(env) == set(NAMES)
    env.abandon(BACK)
    assert leases(env) == set()
    assert env.content("out") == {}
    assert env.world.staging() == []
