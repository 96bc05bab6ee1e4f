"""Copies of scopes with existing targets, colliding names, failures and aborts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from support.command.scope_command import ScopeCopy, selectors
from support.command.sluice_command import finish
from support.store.scopes import STREAMS, Sketch, assert_alike, assert_equal, fill, names_in, seen
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localstore import ForeignClient, Standalone
    from support.command.sluice_command import Finished
    from support.store.scopes import Seen

FEW: Final = {"audit-1", "clicks-0", "clicks-1", "event-0", "orders-0", "orders-5"}
THERE: Final = "clicks-1"
"""The stream whose target another client has made."""
MAKE: Final = {"scopePolicy": "CreateIfAbsent"}
SLOW: Final = {"limits": {"bytesPerSecond": "4Mi"}, "parallelism": 1}
LARGE: Final = Sketch(name="large", segments=2, events=160, size=100_000)
LOST: Final = Sketch(name="lost", segments=2, events=20, size=100_000)


@pytest.fixture(scope="module")
def streams(standalone: Standalone, foreign: ForeignClient) -> tuple[str, Mapping[str, Seen]]:
    """Return a scope of six streams that no test changes, and its content."""
    scope = f"few-{uuid4().hex[:8]}"
    fill(foreign, scope, [sketch for sketch in STREAMS if sketch.name in FEW])
    return scope, seen(standalone.segment_store, foreign, scope)


@pytest.fixture
def copy(
    tmp_path: Path, standalone: Standalone, streams: tuple[str, Any], foreign: ForeignClient
) -> ScopeCopy:
    """Return a copy of that scope into a scope that has another user's stream of one name."""
    target = f"copy-{uuid4().hex[:8]}"
    foreign.create(target, THERE, segments=3)
    foreign.write(target, THERE, events=7, keys=3, seed=1)
    return ScopeCopy(tmp_path, standalone.controller_uri, streams[0], target)


def only(finished: Finished) -> dict[str, Any]:
    """Return the entry of the file's only copy in a command's JSON."""
    (found,) = finished.json
    assert isinstance(found, dict)
    return found


def states(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the states of a report's streams, by name."""
    return {one["stream"]: one["state"] for one in report["streams"]}


def test_targets_of_others_are_refused_before_anything_is_made(
    copy: ScopeCopy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """By default existing targets are refused by name, and nothing in the scope changes."""
    before = seen(standalone.segment_store, foreign, copy.target)
    ended = copy.run("run", "-o", "json")
    assert ended.code == 2
    error = only(ended)["error"]
    assert (error["reason"], error["field"]) == ("TargetExists", "spec.onExists")
    assert f"{THERE}" in error["message"]
    assert seen(standalone.segment_store, foreign, copy.target) == before
    assert not copy.is_logged


@pytest.mark.exhaustive
def test_targets_of_others_are_left_alone(
    copy: ScopeCopy,
    streams: tuple[str, Mapping[str, Seen]],
    standalone: Standalone,
    foreign: ForeignClient,
) -> None:
    """With Skip existing targets stay and the others are copied. A further run does nothing."""
    copy.spec["onExists"] = "Skip"
    theirs = seen(standalone.segment_store, foreign, copy.target)
    for word in ("copied", "alreadyComplete"):
        ended = copy.run("run", "-o", "json")
        assert ended.code == 0, ended.err
        report = only(ended)
        assert report["counts"] == {word: len(FEW) - 1}
        assert report["leftOut"] == [{"why": "Exists", "count": 1, "streams": [THERE]}]
    found = seen(standalone.segment_store, foreign, copy.target)
    assert found.pop(THERE) == theirs[THERE]
    sources = dict(streams[1])
    del sources[THERE]
    assert_equal(sources, found)


@pytest.mark.exhaustive
def test_targets_of_others_are_appended_to_once(
    copy: ScopeCopy,
    streams: tuple[str, Mapping[str, Seen]],
    standalone: Standalone,
    foreign: ForeignClient,
) -> None:
    """With Append existing targets are appended to once, and the others are made."""
    copy.spec["onExists"] = "Append"
    there = foreign.read(copy.target, THERE).events
    source = foreign.read(streams[0], THERE).events
    for _ in range(2):
        ended = copy.run("run", "-o", "json")
        assert ended.code == 0, ended.err
        assert set(states(only(ended)).values()) == {"Copied"}
        read = foreign.read(copy.target, THERE)
        assert read.clean, read
        assert read.events == there + source
    found = seen(standalone.segment_store, foreign, copy.target)
    del found[THERE]
    assert_equal({name: one for name, one in streams[1].items() if name != THERE}, found)


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        pytest.param(
            {"rename": [{"fromPrefix": "clicks-", "toPrefix": "event-"}]},
            "spec.rename",
            ["clicks-0", "event-0"],
            id="two streams of one name",
        ),
        pytest.param(
            {"rename": [{"fromPrefix": "orders-", "toPrefix": "o" * 249}]},
            "spec.rename",
            ["orders-0"],
            id="no name of a stream",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            {"target": {}}, "spec.target.scope", [], id="no scope", marks=pytest.mark.exhaustive
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(
    copy: ScopeCopy,
    foreign: ForeignClient,
    spec: dict[str, Any],
    field: str,
    said: list[str],
) -> None:
    """An impossible copy is refused with its field and streams. The scope is not made."""
    copy.target += "-new"
    copy.spec |= {"target": MAKE} | spec
    for verb in ("plan", "run"):
        ended = copy.run(verb)
        assert ended.code == 2
        assert field in ended.err
        assert all(name in ended.err for name in said)
    assert names_in(foreign, copy.target) is None


@pytest.mark.exhaustive
def test_a_scope_is_not_copied_onto_itself(copy: ScopeCopy, foreign: ForeignClient) -> None:
    """A copy within one scope needs a new name for each selected stream."""
    copy.target = copy.source
    copy.spec["rename"] = [{"fromPrefix": "clicks-", "toPrefix": "copy-of-clicks-"}]
    before = names_in(foreign, copy.source)
    refused = copy.run()
    assert refused.code == 2
    assert "spec.target" in refused.err
    assert names_in(foreign, copy.source) == before
    copy.spec["streams"] = {"include": selectors(Prefix=["clicks-"])}
    ended = copy.run("run", "-o", "json")
    assert ended.code == 0, ended.err
    assert sorted(states(only(ended))) == ["clicks-0", "clicks-1"]
    made = sorted(set(names_in(foreign, copy.source) or ()) - set(before or ()))
    assert made == ["copy-of-clicks-0", "copy-of-clicks-1"]
    for name in made:
        foreign.delete(copy.source, name)


@pytest.fixture
def slow(tmp_path: Path, standalone: Standalone, foreign: ForeignClient) -> ScopeCopy:
    """Return a copy of four streams, one after the other, whose first one takes four seconds."""
    source, target = (f"{name}-{uuid4().hex[:8]}" for name in ("slow", "copy"))
    fill(foreign, source, [LARGE, LOST, Sketch(name="little", events=3), Sketch(name="none")])
    spec: dict[str, Any] = {"target": MAKE} | SLOW
    return ScopeCopy(tmp_path, standalone.controller_uri, source, target, spec=spec)


@pytest.mark.exhaustive
def test_no_stream_is_begun_after_one_has_failed_if_that_is_asked_for(
    slow: ScopeCopy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """With failurePolicy: Stop, running streams finish. The next run copies the others."""
    slow.spec["failurePolicy"] = "Stop"
    with slow.running("run", "-o", "json") as process:
        until(
            "it is midway", lambda: LARGE.name in (names_in(foreign, slow.target) or ()), poll=TIGHT
        )
        foreign.delete(slow.source, LOST.name)
        ended = finish(process)
    assert ended.code != 0
    expected = {"large": "Copied", "lost": "Failed", "little": "Stopped", "none": "Stopped"}
    assert states(only(ended)) == expected
    assert names_in(foreign, slow.target) == [LARGE.name]
    fill(foreign, slow.source, [LOST])
    again = slow.run("run", "-o", "json")
    assert again.code == 0, again.err
    assert only(again)["counts"] == {"alreadyComplete": 1, "copied": 3}
    source, target = (
        seen(standalone.segment_store, foreign, scope) for scope in (slow.source, slow.target)
    )
    assert_equal(source, target)


@pytest.mark.exhaustive
def test_a_copy_that_is_aborted_midway_leaves_what_is_whole_and_nothing_else(
    slow: ScopeCopy, standalone: Standalone, foreign: ForeignClient
) -> None:
    """An abort leaves only whole targets. A later run begins anew."""
    planned = only(slow.run("plan", "-o", "json"))
    with slow.running() as process:
        until(
            "it is midway", lambda: LARGE.name in (names_in(foreign, slow.target) or ()), poll=TIGHT
        )
        assert process.poll() is None
    ended = slow.run("abort")
    assert ended.code == 0, ended.err
    assert names_in(foreign, slow.target) == []
    assert slow.left_of(standalone.segment_store, planned) == []
    assert not slow.is_logged
    assert slow.run("abort").code == 0
    del slow.spec["limits"]
    with slow.running() as process:
        until(
            "some are whole",
            lambda: LOST.name in (names_in(foreign, slow.target) or ()),
            poll=TIGHT,
        )
    assert slow.run("abort").code == 0
    assert slow.left_of(standalone.segment_store, planned) == []
    source = seen(standalone.segment_store, foreign, slow.source)
    for name, one in seen(standalone.segment_store, foreign, slow.target).items():
        assert_alike(name, source[name], one, same_ids=False)
    again = slow.run()
    assert again.code == 0, again.err
    target = seen(standalone.segment_store, foreign, slow.target)
    assert_equal(source, target, same_ids=False)


@pytest.mark.exhaustive
def test_a_scope_that_is_not_empty_stays_after_a_move(
    tmp_path: Path, standalone: Standalone, foreign: ForeignClient
) -> None:
    """A scope with a key-value table stays after a move of its streams. The report says why."""
    source, target = (f"{name}-{uuid4().hex[:8]}" for name in ("leaves", "moved"))
    fill(foreign, source, [sketch for sketch in STREAMS if sketch.name in FEW])
    foreign.create_table(source, "prices")
    before = seen(standalone.segment_store, foreign, source)
    spec: dict[str, Any] = {"target": MAKE, "sourceOnComplete": "Delete"}
    ended = ScopeCopy(tmp_path, standalone.controller_uri, source, target, spec=spec).run(
        "run", "-o", "json"
    )
    assert ended.code == 0, ended.err
    report = only(ended)
    assert "prices" in report["kept"] or "key-value table" in report["kept"]
    assert names_in(foreign, source) == []
    assert_equal(before, seen(standalone.segment_store, foreign, target))
