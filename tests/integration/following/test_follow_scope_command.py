"""Copies that follow scopes by `sluice run -f`, on a real store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.command.follow_command import Terminal
from support.command.follow_scope_command import FollowedScope
from support.search import few
from support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from localstore import ForeignClient, Standalone

STREAMS = ("a", "b", "c")
EACH = 100
KEYS = 8


@pytest.fixture
def copy(
    tmp_path: Path, standalone: Standalone, scope: str, foreign: ForeignClient
) -> FollowedScope:
    """Return a copy that follows a scope of three streams, into a scope that it makes."""
    for stream in STREAMS:
        foreign.create(scope, stream, segments=2)
        foreign.write(scope, stream, events=EACH, keys=KEYS)
    return FollowedScope(
        tmp_path,
        standalone.controller_uri,
        scope,
        f"{scope}-copy",
        spec={"target": {"scopePolicy": "CreateIfAbsent"}},
    )


def has(foreign: ForeignClient, copy: FollowedScope, stream: str, events: int) -> None:
    """Wait until this number of events can be read in a target."""
    until(
        f"{stream} has {events}",
        lambda: (
            stream in (foreign.streams(copy.target) or [])
            and foreign.visible(copy.target, stream).events == events
        ),
    )


def assert_same(foreign: ForeignClient, copy: FollowedScope, stream: str, events: int) -> None:
    """Check that a target has its source's events, each once, in the order of each key."""
    source, target = foreign.read(copy.source, stream), foreign.read(copy.target, stream)
    assert (target.events, target.digest) == (events, source.digest)


def streams_of(report: Any) -> dict[str, Any]:
    """Return the results of a report by stream."""
    return {one["stream"]: one for one in report["streams"]}


@pytest.mark.exhaustive
def test_a_scope_is_followed_until_nothing_comes(
    copy: FollowedScope, foreign: ForeignClient
) -> None:
    """A stream joins, and a stream with a foreign target is named. A further run does nothing."""
    copy.ends = {"stopWhen": {"idleSeconds": 45}, "onExists": "Fail"}
    with copy.following("-o", "json") as process:
        foreign.create(copy.target, "taken")
        foreign.create(copy.source, "taken")
        foreign.create(copy.source, "later")
        foreign.write(copy.source, "later", events=70, keys=KEYS)
        foreign.write(copy.source, "b", events=50, keys=KEYS, first=EACH)
        has(foreign, copy, "later", 70)
        has(foreign, copy, "b", EACH + 50)
        ended = process.ended()
    (report,) = ended.json
    found = streams_of(report)
    assert {found[name]["ended"] for name in (*STREAMS, "later")} == {"Idle"}
    assert found["taken"]["trouble"]["reason"] == "TargetExists"
    assert report["counts"] == {"copied": 4, "failed": 1}
    assert "follows the streams of" in ended.err
    assert "until nothing came for 45s or all of them are sealed" in ended.err
    assert "later" in ended.err
    assert "taken: TargetExists" in ended.err
    assert "4 streams: nothing came for the seconds of stopWhen.idleSeconds (Idle)" in ended.err
    assert ended.code == 2
    for stream, events in (("a", EACH), ("b", EACH + 50), ("later", 70)):
        assert_same(foreign, copy, stream, events)


@pytest.mark.exhaustive
def test_an_interrupt_leaves_the_scope_live(copy: FollowedScope, foreign: ForeignClient) -> None:
    """After an interrupt the scope stays live. A cutover in the same file seals all sources."""
    with copy.following() as process:
        foreign.write(copy.source, "a", events=50, keys=KEYS, first=EACH)
        has(foreign, copy, "a", EACH + 50)
        left = process.interrupt()
    assert left.code == 130
    assert "whole stays live" in left.err
    assert "in the target, proved to" in left.err
    assert "run the same command again" in left.err
    foreign.write(copy.source, "c", events=50, keys=KEYS, first=EACH)
    assert foreign.visible(copy.target, "c").events == EACH
    copy.ends = {"cutover": "SealAndDrain"}
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    (report,) = ended.json
    assert {one["ended"] for one in report["streams"]} == {"CutOver"}
    for stream in STREAMS:
        assert foreign.info(copy.source, stream).sealed
        assert_same(foreign, copy, stream, EACH if stream == "b" else EACH + 50)
    again = copy.run("run", "-o", "json")
    assert again.code == 0, again.err
    assert again.json[0]["counts"] == {"alreadyComplete": len(STREAMS)}


@pytest.mark.exhaustive
def test_a_changed_file_ends_what_another_process_follows(
    copy: FollowedScope, foreign: ForeignClient
) -> None:
    """The command with a drain in its file ends both processes. Sources still take events."""
    with copy.following("-o", "json") as process:
        copy.ends = {"cutover": "Drain"}
        ended = copy.run("run", "-o", "json")
        first = process.ended()
    assert (ended.code, first.code) == (0, 0), ended.err
    reports = [one for finished in (ended, first) for one in finished.json[0]["streams"]]
    assert {one.get("ended") for one in reports} <= {"Drained", None}
    for stream in STREAMS:
        assert not foreign.info(copy.source, stream).sealed
        assert_same(foreign, copy, stream, EACH)


@pytest.mark.exhaustive
def test_a_live_scope_is_verified_and_its_positions_are_translated(
    copy: FollowedScope, foreign: ForeignClient
) -> None:
    """Each stream is verified up to its position. A reader group goes on in the target."""
    foreign.create_group(copy.source, "billing", "b")
    foreign.read_group(copy.source, "billing", events=60)
    with copy.following():
        verified = copy.run("verify", "-o", "json")
        mapped = copy.run("position", "--stream", "b", "-o", "json")
        options = ("--reader-group", "billing", "--apply", "-o", "json")
        moved = copy.run("position", "--stream", "b", *options)
        nowhere = copy.run("position")
        unknown = copy.run("position", "--stream", "x")
    assert verified.code == 0, verified.err
    assert [one["result"] for one in verified.json["verifications"]] == ["Equal"] * len(STREAMS)
    assert mapped.code == 0, mapped.err
    assert len(mapped.json["segments"]) == 2
    assert moved.code == 0, moved.err
    assert moved.json["applied"] == "Created"
    rest = foreign.read_group(copy.target, "billing", quiet_ms=5000)
    assert rest.events == EACH - 60
    assert nowhere.code == 2
    assert "--stream" in nowhere.err
    assert unknown.code != 0
    assert f"{copy.target}/x" in unknown.err


@pytest.mark.exhaustive
def test_an_abort_leaves_the_targets_as_streams_like_any_other(
    copy: FollowedScope, foreign: ForeignClient
) -> None:
    """An abort leaves targets with their bytes and no mark. They block a new copy."""
    with copy.following() as process:
        foreign.write(copy.source, "a", events=50, keys=KEYS, first=EACH)
        has(foreign, copy, "a", EACH + 50)
        process.interrupt()
    aborted = copy.run("abort")
    assert aborted.code == 0, aborted.err
    assert "of 3, it was live: the target stays as far as it has come" in aborted.err
    assert not copy.is_logged
    for stream in STREAMS:
        assert_same(foreign, copy, stream, EACH + 50 if stream == "a" else EACH)
        foreign.write(copy.target, stream, events=10, keys=KEYS, first=EACH + 50)
    refused = copy.run("run", "-o", "json")
    assert refused.code == 2
    assert refused.json[0]["error"]["reason"] == "TargetExists"


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
            ({}, ["--no-verify"], "spec.mode", "a copy that does not follow its sources"),
            ({"stopWhen": {"bytes": 1}}, [], "spec.stopWhen.bytes", "give idleSeconds or time"),
            ({"onExists": "Append"}, [], "spec.onExists", "take onExists: Fail or Skip"),
            ({"failurePolicy": "Stop"}, [], "spec.failurePolicy", "take failurePolicy: Continue"),
            ({"readerGroups": [{"name": "g"}]}, [], "spec.readerGroups", ""),
            (
                {"hooks": {"after": {"cronJobRef": {"name": "x"}}}},
                [],
                "spec.hooks",
                "Remove the field",
            ),
        ],
        2,
    ),
)
def test_wrong_input_makes_nothing(
    copy: FollowedScope,
    foreign: ForeignClient,
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
    assert foreign.streams(copy.target) is None


def test_the_plan_says_that_it_follows(copy: FollowedScope, foreign: ForeignClient) -> None:
    """The plan says that the copy follows, as text and as JSON. Nothing is made."""
    planned = copy.run("plan")
    assert "and then follows" in planned.out
    assert f"Streams that {copy.source} gets later join, if they are selected." in planned.out
    document = copy.run("plan", "-o", "json").json[0]
    assert document["plan"]["scope"]["following"]["follow"] is True
    assert foreign.streams(copy.target) is None


@pytest.mark.exhaustive
def test_a_terminal_shows_how_far_it_is(copy: FollowedScope) -> None:
    """A terminal shows a redrawn line with streams, rate, lag and proved position."""
    copy.environment = {"COLUMNS": "160", "TERM": "xterm"}
    screen = Terminal(copy)
    try:
        screen.wait_for("following")
        screen.wait_for("3 streams")
        screen.wait_for("0 B behind  proved to")
    finally:
        screen.interrupt()
    assert "stays live" in screen.said
