"""Copies that follow sources by `sluice run -f`, on a real store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from support.command.follow_command import FollowingCopy, Terminal
from support.command.sluice_command import descendants, workers_of
from support.search import few
from support.store.inline import leftovers
from support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone


@pytest.fixture
def copy(
    tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient
) -> FollowingCopy:
    """Return a copy that follows a stream of 200 events."""
    foreign.create(scope, "source", segments=2)
    foreign.write(scope, "source", events=200, keys=8)
    made = FollowingCopy(tmp_path, standalone.controller_uri, (scope, "source"), (scope, "target"))
    made.log_level = "warning"
    return made


def wait_for(foreign: ForeignClient, copy: FollowingCopy, events: int) -> None:
    """Wait until this number of events can be read in the target."""
    until("the target has all", lambda: foreign.visible(*copy.target).events == events)


def assert_same(foreign: ForeignClient, copy: FollowingCopy, events: int) -> None:
    """Check that the target has the source's events, each once, in the order of each key."""
    source, target = foreign.read(*copy.source), foreign.read(*copy.target)
    assert (target.events, target.digest) == (events, source.digest)


def test_a_source_is_followed_until_nothing_comes(
    copy: FollowingCopy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The target has the source's events.

    The result names the end's reason, and nothing is left.
    """
    copy.ends = {"stopWhen": {"idleSeconds": 4}}
    with copy.following("-o", "json") as process:
        foreign.write(*copy.source, events=100, keys=8)
        ended = process.ended()
    assert ended.code == 0, ended.err
    (report,) = ended.json
    assert (report["outcome"], report["ended"], report["events"]) == ("Copied", "Idle", 300)
    assert "follows its source until nothing came for 4s or the source is sealed" in ended.err
    assert "It ended because nothing came for the seconds of stopWhen.idleSeconds" in ended.err
    assert_same(foreign, copy, 300)
    assert leftovers(copy, standalone) == leftovers(copy, standalone, [0, 1])
    again = copy.run("run", "-o", "json")
    assert again.json[0]["outcome"] == "AlreadyComplete"


@pytest.mark.exhaustive
def test_an_interrupt_leaves_the_copy_live(copy: FollowingCopy, foreign: ForeignClient) -> None:
    """After an interrupt the copy stays live, and a cutover in the same file ends it by a seal."""
    with copy.following() as process:
        foreign.write(*copy.source, events=100, keys=8)
        wait_for(foreign, copy, 300)
        left = process.interrupt()
    assert left.code == 130
    assert "target stays live" in left.err
    assert "run the same command again" in left.err
    assert "cutover: Drain or SealAndDrain" in left.err
    foreign.write(*copy.source, events=50, keys=8)
    assert foreign.visible(*copy.target).events == 300
    copy.ends = {"cutover": "SealAndDrain"}
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    (report,) = ended.json
    assert (report["outcome"], report["ended"]) == ("Copied", "CutOver")
    assert foreign.info(*copy.source).sealed
    assert_same(foreign, copy, 350)


@pytest.mark.exhaustive
def test_a_changed_file_ends_what_another_process_follows(
    copy: FollowingCopy, foreign: ForeignClient
) -> None:
    """The command with a drain in its file ends both processes. The source still takes events."""
    with copy.following("-o", "json") as process:
        copy.ends = {"cutover": "Drain"}
        ended = copy.run("run", "-o", "json")
        first = process.ended()
    assert (ended.code, first.code) == (0, 0), ended.err
    outcomes = {one.json[0]["outcome"] for one in (ended, first)}
    assert "Copied" in outcomes
    assert outcomes <= {"Copied", "AlreadyComplete"}
    assert not foreign.info(*copy.source).sealed
    assert_same(foreign, copy, 200)


@pytest.mark.exhaustive
def test_a_sealed_source_is_copied_to_its_end(copy: FollowingCopy, foreign: ForeignClient) -> None:
    """A copy of a sealed source has nothing to follow and ends by itself."""
    foreign.seal(*copy.source)
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["ended"] == "SourceSealed"
    assert_same(foreign, copy, 200)


@pytest.mark.exhaustive
def test_enough_bytes_end_a_copy(copy: FollowingCopy) -> None:
    """A limit of bytes ends the copy. The bytes of the first leg count too."""
    copy.ends = {"stopWhen": {"bytes": 1}}
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["ended"] == "Bytes"
    assert "bytes of stopWhen.bytes are there" in ended.err


@pytest.mark.parametrize(
    ("ends", "options", "field", "said"),
    few(
        [
            (
                {"stopWhen": {"time": "2026-01-01T00:00:00Z"}},
                [],
                "spec.stopWhen.time",
                "later time",
            ),
            ({}, ["--no-verify"], "spec.mode", "without --no-verify"),
            ({"activeDeadlineSeconds": 60}, [], "spec.activeDeadlineSeconds", "give stopWhen"),
            (
                {"readerGroups": [{"name": "g"}]},
                [],
                "spec.readerGroups[0].name",
                "Correct the name",
            ),
            ({"mode": "Snapshot", "cutover": "Drain"}, [], "spec.cutover", "add mode: Continuous"),
            ({"stopWhen": {}}, [], "spec.stopWhen", "give idleSeconds, bytes or time"),
            ({"cutover": "Now"}, [], "spec.cutover", "'SealAndDrain'"),
        ],
        2,
    ),
)
def test_wrong_input_makes_nothing(
    copy: FollowingCopy,
    standalone: Standalone,
    ends: dict[str, Any],
    options: list[str],
    field: str,
    said: str,
) -> None:
    """Wrong input ends with code 2, the wrong field and a remedy."""
    copy.ends = ends
    ended = copy.run("run", *options)
    assert ended.code == 2
    assert field in ended.err
    assert said in ended.err
    copy.ends = {}  # of the same copy
    assert leftovers(copy, standalone) == []


def test_a_store_that_allows_no_changes_is_not_sealed(
    copy: FollowingCopy, standalone: Standalone
) -> None:
    """A source is not sealed if its store's access does not allow changes."""
    copy.ends, copy.operations = {"cutover": "SealAndDrain"}, ("Read", "Create")
    ended = copy.run()
    assert ended.code == 2
    assert "spec.source.storeRef.name" in ended.err
    assert "does not allow to Append" in ended.err
    copy.ends = {}
    assert leftovers(copy, standalone) == []


def test_a_target_belongs_to_the_first_copy(
    copy: FollowingCopy, foreign: ForeignClient, scope: str
) -> None:
    """A second copy to a target is refused, and does not affect the first one."""
    with copy.following() as process:
        copy.name = "another"
        refused = copy.run("run", "-o", "json")
        assert refused.code == 2
        error = refused.json[0]["error"]
        assert error["field"] == "spec.target.stream"
        assert error["remedy"]
        foreign.write(*copy.source, events=100, keys=8)
        wait_for(foreign, copy, 300)
        process.interrupt()


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "again",
    [
        pytest.param(True, id="made again"),
        pytest.param(False, id="gone"),
    ],
)
def test_a_source_that_was_replaced_is_not_followed(
    copy: FollowingCopy,
    foreign: ForeignClient,
    again: bool,  # noqa: FBT001
) -> None:
    """A replaced source is refused. The target's bytes stay readable."""
    with copy.following() as process:
        process.interrupt()
    foreign.delete(*copy.source)
    if again:
        foreign.create(*copy.source, segments=2)
        foreign.write(*copy.source, events=30, keys=8)
    refused = copy.run("run", "-o", "json")
    error = refused.json[0]["error"]
    assert error["reason"] == ("SourceReplaced" if again else "SourceNotFound")
    assert error["remedy"]
    assert refused.code != 0
    assert "were deleted" not in refused.err
    assert foreign.visible(*copy.target).events == 200


@pytest.mark.exhaustive
def test_a_target_that_was_deleted_is_not_made_anew(
    copy: FollowingCopy, foreign: ForeignClient
) -> None:
    """A deleted target is not made again, since a user may have deleted it on purpose."""
    with copy.following() as process:
        process.interrupt()
    foreign.delete(*copy.target)
    refused = copy.run("run", "-o", "json")
    assert refused.code != 0
    error = refused.json[0]["error"]
    assert error["remedy"]
    assert copy.target[1] not in (foreign.streams(copy.target[0]) or [])


def test_one_process_follows_one_source(
    copy: FollowingCopy, standalone: Standalone, scope: str
) -> None:
    """Two copies in one file are refused, since the first might never end. Nothing is made."""
    both = copy.file.read_text()
    second = both.partition("---\n")[2].replace("name: target", "name: other")
    second = second.replace('"stream": "target"', '"stream": "other"')
    file = copy.folder / "both.yaml"
    file.write_text(f"{both}---\n{second}")
    ended = copy.run("run", "-f", str(file))
    assert ended.code == 2
    assert "2 copies of the file follow their sources: target, other" in ended.err
    assert "Run each from a file of its own" in ended.err
    assert leftovers(copy, standalone) == []


@pytest.mark.exhaustive
def test_the_plan_says_that_it_follows(copy: FollowingCopy, standalone: Standalone) -> None:
    """The plan says that the copy follows, as text and as JSON. Nothing is made."""
    planned = copy.run("plan")
    assert "(and then follows)" in planned.out
    assert copy.run("plan", "-o", "json").json[0]["plan"]["streams"][0]["follow"] is True
    assert leftovers(copy, standalone) == []


@pytest.mark.exhaustive
def test_the_time_of_an_end_may_come_while_nobody_follows(copy: FollowingCopy) -> None:
    """If the time of the end passes while no process runs, the next process ends the copy."""
    with copy.following() as process:
        process.interrupt()
    copy.ends = {"stopWhen": {"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}}
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert ended.json[0]["ended"] == "Time"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "record",
    [
        pytest.param(True, id="recorded"),
        pytest.param(False, id="refused"),
    ],
)
def test_bytes_that_the_source_loses_are_named(
    copy: FollowingCopy,
    foreign: ForeignClient,
    record: bool,  # noqa: FBT001
) -> None:
    """Bytes lost before the copy followed them end it, or it goes on and reports the gap."""
    copy.on_truncation = "Record" if record else "Fail"
    with copy.following() as process:
        process.interrupt()
    foreign.write(*copy.source, events=60, keys=8)
    assert foreign.truncate(*copy.source)
    foreign.write(*copy.source, events=40, keys=8)
    copy.ends = {"cutover": "Drain"}
    ended = copy.run("run", "-o", "json")
    (report,) = ended.json
    if record:
        assert ended.code == 0, ended.err
        assert sum(segment["lost"] for segment in report["segments"]) > 0
        assert "was truncated before it was followed" in ended.err
        assert foreign.visible(*copy.target).events == 240
    else:
        assert ended.code == 6
        assert report["error"]["reason"] == "SourceTruncated"
        assert report["error"]["remedy"]
        assert foreign.visible(*copy.target).events == 200


def test_a_terminal_shows_how_far_it_is(copy: FollowingCopy, foreign: ForeignClient) -> None:
    """A terminal shows a single line with rate, lag and proved position. It is redrawn.

    After an interrupt, the output also says how far the copy is.
    """
    copy.environment = {"COLUMNS": "140", "TERM": "xterm"}
    screen = Terminal(copy)
    try:
        foreign.write(*copy.source, events=100, keys=8)
        screen.wait_for("following")
        screen.wait_for("0 B behind  proved to")
    finally:
        screen.interrupt()
    assert "stays live" in screen.said
    assert "in the target, proved to" in screen.said


@pytest.mark.exhaustive
def test_a_large_first_leg_goes_through_spark(copy: FollowingCopy, foreign: ForeignClient) -> None:
    """A large first leg goes through Spark. A process that resumes the copy needs no Spark."""
    copy.environment = {"SLUICE_SPARK_BYTES": "1"}
    copy.log_level = "debug"
    with copy.following() as process:
        assert workers_of(process.pid)
        foreign.write(*copy.source, events=100, keys=8)
        wait_for(foreign, copy, 300)
        left = process.interrupt()
    assert left.code == 130
    assert "stays live" in left.err
    with copy.following("-o", "json") as process:
        assert not descendants(process.pid)
        copy.ends = {"cutover": "Drain"}
        ended = copy.run("run", "-o", "json")
        assert process.ended().code == 0
    assert ended.code == 0, ended.err
    assert_same(foreign, copy, 300)


@pytest.mark.exhaustive
def test_reader_groups_go_on_in_the_target(copy: FollowingCopy, foreign: ForeignClient) -> None:
    """Groups read each event once. The copy waits for groups with online readers, by name."""
    scope = copy.source[0]
    foreign.create_group(scope, "billing", "source")
    before = foreign.read_group(scope, "billing", events=120, stay=True)
    copy.ends = {"cutover": "SealAndDrain", "readerGroups": [{"name": "billing", "as": "bills"}]}
    waits = copy.run("run", "-o", "json")
    assert waits.code == 2
    (report,) = waits.json
    assert (report["outcome"], report["ended"]) == ("Copied", "CutOver")
    assert report["readerGroups"][0]["state"] == "Waiting"
    assert "spec.readerGroups[0].name" in waits.err
    assert "run the file again" in waits.err
    foreign.leave_group("billing")
    made = {"name": "billing", "made": "bills", "state": "Made"}
    for _ in range(2):
        ended = copy.run("run", "-o", "json")
        assert ended.code == 0, ended.err
        assert ended.json[0]["readerGroups"] == [made]
    assert "The reader group bills goes on in the target" in ended.err
    after = foreign.read_group(scope, "bills", quiet_ms=5000)
    assert before.events + after.events == 200
