"""`sluice plan | run | abort` with ScopeCopies: output, effects and exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from sluice.commands import copying
from sluice.core.values.model import StreamName
from sluice.pipelines.programs import stores
from sluice.pipelines.programs.jobs import Job
from support.command.spelling import parsed
from support.engine.sources import put_source
from support.model import ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sluice = Callable[..., tuple[int, str, str]]

STORE = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local}
spec: {pravega: {controllerURI: "tcp://127.0.0.1:1"}}
---
"""
SCOPE = """\
apiVersion: sluice.dev/v1alpha1
kind: ScopeCopy
metadata: {name: shop}
spec:
  source: {storeRef: {name: local}, scope: in}
  target: {storeRef: {name: local}, scope: out}
"""
ORDERS = """\
---
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {name: one}
spec:
  source: {storeRef: {name: local}, scope: in, stream: a}
  target: {storeRef: {name: local}, scope: out, stream: one}
---
"""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the world of all stores, with streams a to d, and without Spark."""
    for name in ("SLUICE_CLUSTER_ID", "SLUICE_CREDENTIALS_DIR", "SLUICE_STORE_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    made = World()
    monkeypatch.setattr(stores, "connect", lambda *_: ModelStore(made))

    def spark(*_: object) -> NoReturn:
        raise AssertionError("small streams need no Spark")

    monkeypatch.setattr(copying, "start_spark", spark)
    for number, stream in enumerate("abcd"):
        put_source(made, [5, 9, 30 + number], name=name_of(stream), seed=number)
    return made


@pytest.fixture
def sluice(run_here: Sluice, tmp_path: Path) -> Sluice:
    """Return the program: from a file's text and arguments to exit code and both outputs."""

    def call(text: str, verb: str, *arguments: str) -> tuple[int, str, str]:
        file = tmp_path / "scope.yaml"
        file.write_text(text)
        return run_here("sluice", verb, "-f", str(file), *arguments)

    return call


def name_of(stream: str, scope: str = "in") -> StreamName:
    """Return a stream's name."""
    return StreamName(scope=scope, stream=stream)


def made(world: World) -> list[str]:
    """Return the streams of the target's scope."""
    return sorted(name.stream for name in world.streams if name.scope == "out")


@pytest.fixture
def lose(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Return a function that lets a stream lose bytes right after each plan is made."""
    plan = Job.plan

    def call(stream: str, to: int) -> None:
        def planned(*arguments: Any) -> object:
            answer = plan(*arguments)
            world.segments[segment_name(name_of(stream), 0)].start = to
            return answer

        monkeypatch.setattr(Job, "plan", planned)

    return call


def spec(**fields: object) -> str:
    """Return the ScopeCopy with more fields."""
    return (
        STORE + SCOPE + "".join(f"  {key}: {json.dumps(value)}\n" for key, value in fields.items())
    )


def test_a_plan_shows_a_scope_and_makes_nothing(world: World, sluice: Sluice) -> None:
    """The text has a line for each stream, and the JSON all of it."""
    world.tables.add(name_of("prices"))
    text = spec(
        streams={"exclude": [{"type": "Exact", "value": "b"}]},
        rename=[{"fromPrefix": "c", "toPrefix": "old-c"}],
    )
    code, out, err = sluice(text, "plan")
    assert (code, err) == (0, "")
    for said in ("│ a ", "│ old-c ", "spec.streams does not select them (b)", "prices"):
        assert said in out
    code, out, _ = sluice(text, "plan", "-o", "json")
    (plan,) = parsed(out)
    assert (code, plan["kind"], plan["name"], plan["recorded"]) == (0, "ScopeCopy", "shop", False)
    assert {(one["stream"], one["target"]) for one in plan["streams"]} == {
        ("a", "a"),
        ("c", "old-c"),
        ("d", "d"),
    }
    assert plan["bytes"] == sum(one["bytes"] for one in plan["streams"])
    assert plan["renames"] == [{"fromPrefix": "c", "toPrefix": "old-c", "streams": 1}]
    assert [(one["why"], one["streams"]) for one in plan["leftOut"]] == [("NotSelected", ["b"])]
    assert plan["keyValueTables"] == ["prices"]
    assert plan["bounds"]["spreadMilliseconds"] >= 0
    assert made(world) == []


def test_a_run_copies_a_scope_and_says_so(world: World, sluice: Sluice) -> None:
    """Small streams need no Spark, and another run finds the copy done."""
    code, out, err = sluice(spec(), "run")
    assert (code, out) == (0, ""), err
    assert "ScopeCopy shop: in -> out: 4 of 4 streams are copied; 12 events, " in err
    assert "\n4 copied in " in err
    assert made(world) == ["a", "b", "c", "d"]
    for stream in "abcd":
        assert world.bytes_of(name_of(stream)) == world.bytes_of(name_of(stream, "out"))
    code, _, err = sluice(spec(), "run")
    assert code == 0
    assert "4 of 4 streams are copied\n" in err
    assert "\n4 already complete in " in err
    _, out, _ = sluice(spec(), "plan")
    assert "nothing is left to do" in out


def test_nothing_is_left_of_a_copy_that_went_well(world: World, sluice: Sluice) -> None:
    """The log is deleted, too: targets are marked whole themselves."""
    sluice(spec(), "run")
    before = {name for name in world.segments if "#transaction" in name}
    assert before == set()


def test_programs_get_every_stream(world: World, sluice: Sluice) -> None:
    """The JSON has its digest, bytes and events."""
    code, out, _ = sluice(spec(), "run", "-o", "json")
    (report,) = parsed(out)
    assert code == 0
    assert (report["kind"], report["name"], report["counts"]) == (
        "ScopeCopy",
        "shop",
        {"copied": 4},
    )
    assert (report["error"], report["kept"], report["run"]) == (None, None, 1)
    assert sorted(one["stream"] for one in report["streams"]) == ["a", "b", "c", "d"]
    for one in report["streams"]:
        assert (one["state"], one["events"], one["trouble"]) == ("Copied", 3, None)
        assert len(one["digest"]) == 64
    assert report["bytes"] == sum(one["bytes"] for one in report["streams"])


def test_copies_run_in_the_order_of_the_file(world: World, sluice: Sluice) -> None:
    """This holds for any kinds. A scope's copy refuses an earlier stream copy's target."""
    copy = SCOPE.replace("shop", "later")
    code, out, _ = sluice(STORE + SCOPE + ORDERS + copy, "plan", "-o", "json")
    assert code == 0
    assert [one["name"] for one in parsed(out)] == ["shop", "one", "later"]


def test_a_conflict_refuses_the_whole_copy(world: World, sluice: Sluice) -> None:
    """The exit code is 2, with the streams and the remedy, and nothing is made."""
    for stream in "bd":
        put_source(world, [1], name=name_of(stream, "out"))
    for verb in ("plan", "run"):
        code, out, err = sluice(spec(), verb)
        assert (code, out) == (2, "")
        assert "TargetExists: spec.onExists: 2 streams are in the scope out already" in err
        assert ": b, d\n" in err
        assert "onExists: Skip" in err
        assert made(world) == ["b", "d"]
    code, out, err = sluice(spec(), "run", "-o", "json")
    (report,) = parsed(out)
    assert (code, report["error"]["reason"]) == (2, "TargetExists")
    assert "1 failed in " in err


def test_what_is_there_may_be_left_out(world: World, sluice: Sluice) -> None:
    """With onExists: Skip such a stream is named."""
    put_source(world, [1], name=name_of("b", "out"))
    _, out, _ = sluice(spec(onExists="Skip"), "plan")
    assert "their targets are there, and onExists is Skip (b)" in out
    code, _, err = sluice(spec(onExists="Skip"), "run")
    assert code == 0
    assert "\n3 copied in " in err


def test_what_is_there_may_be_appended_to(world: World, sluice: Sluice) -> None:
    """The plan marks it."""
    put_source(world, [1], name=name_of("b", "out"))
    _, out, _ = sluice(spec(onExists="Append"), "plan")
    assert "│ b (append) " in out
    assert "│ a (append) " not in out


def test_one_bad_stream_stops_no_other(
    world: World, sluice: Sluice, lose: Callable[[str, int], None]
) -> None:
    """The failure is logged, and shown in a table with a remedy, the summary and the exit code.

    Another run tries that stream only.
    """
    lose("b", 13)
    code, _, err = sluice(spec(), "run")
    assert code == 6
    assert "\nb: SourceTruncated: " in err
    assert "1 could not be copied" in err
    assert "\n3 copied, 1 failed in " in err
    assert made(world) == ["a", "c", "d"]
    _, out, _ = sluice(spec(), "plan")
    assert "run 2, of what failed or was stopped" in out
    assert "Copied already: 3, " in out
    lose("b", 30)
    code, out, err = sluice(spec(), "run", "-o", "json")
    (report,) = parsed(out)
    assert (code, report["run"]) == (6, 2)
    assert report["counts"] == {"failed": 1, "alreadyComplete": 3}
    (failed,) = [one for one in report["streams"] if one["state"] == "Failed"]
    assert (failed["stream"], failed["trouble"]["reason"]) == ("b", "SourceTruncated")
    code, _, err = sluice(spec(), "run")
    assert (code, made(world)) == (0, ["a", "b", "c", "d"])
    assert "\n1 copied, 3 already complete in " in err


def test_a_failure_may_stop_the_rest(
    world: World, sluice: Sluice, lose: Callable[[str, int], None]
) -> None:
    """With failurePolicy: Stop, streams that were not begun are named."""
    lose("d", 13)  # the biggest stream goes first
    code, _, err = sluice(spec(failurePolicy="Stop", parallelism=1), "run")
    assert code == 6
    assert "Not begun, since another one had failed: c, b, a" in err
    assert "\n1 failed, 3 stopped in " in err
    assert made(world) == []


def test_a_suspended_copy_is_planned_only(world: World, sluice: Sluice) -> None:
    """A suspended StreamCopy is, too."""
    code, _, err = sluice(spec(suspend=True), "run")
    assert code == 0
    assert "shop is suspended: it is planned and not run" in err
    assert made(world) == []


def test_an_abort_deletes_what_is_not_whole(
    world: World, sluice: Sluice, lose: Callable[[str, int], None]
) -> None:
    """Copied streams stay. Without a copy an abort does nothing."""
    lose("b", 13)
    sluice(spec(), "run")
    code, out, err = sluice(spec(), "abort")
    assert (code, out) == (0, "")
    assert err.startswith("shop: ")
    assert made(world) == ["a", "c", "d"]
    assert {name for name in world.segments if "#transaction" in name} == set()
    assert sluice(spec(), "abort")[0] == 0


def test_a_move_needs_the_right_to_delete(world: World, sluice: Sluice) -> None:
    """The refusal comes before any call to a store."""
    access = STORE.replace("}}\n---", "}, access: {operations: [Read, Create]}}\n---")
    text = spec(sourceOnComplete="Delete").replace(STORE, access)
    for verb in ("plan", "run", "abort"):
        code, _, err = sluice(text, verb)
        assert code == 2
        assert "AccessDenied: spec.source.storeRef.name: " in err
    assert len(world.streams) == 4


def test_a_moved_scope_is_gone(world: World, sluice: Sluice) -> None:
    """Its absence is no failure of another run."""
    text = spec(sourceOnComplete="Delete")
    _, out, _ = sluice(text, "plan")
    assert "and then the scope in if nothing is left in it." in out
    code, _, err = sluice(text, "run")
    assert code == 0, err
    assert "The scope in is gone: all of its streams were moved." in err
    assert "in" not in world.scopes
    assert made(world) == ["a", "b", "c", "d"]
    code, _, err = sluice(text, "run")
    assert code == 0
    assert "4 already complete" in err


def test_a_scope_that_stays_after_a_move_says_why(world: World, sluice: Sluice) -> None:
    """The scope has other contents."""
    world.tables.add(name_of("prices"))
    code, _, err = sluice(spec(sourceOnComplete="Delete"), "run")
    assert code == 0
    assert "The scope in is kept: " in err
    assert "in" in world.scopes


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rename": [{"fromPrefix": p, "toPrefix": "x"} for p in "ab"]}, "spec.rename"),
        ({"streams": {"include": [{"type": "Exact", "value": "no name"}]}}, "spec.streams"),
    ],
    ids=["collision", "wrong name"],
)
def test_wrong_input_is_refused_before_anything_starts(
    world: World, sluice: Sluice, fields: dict[str, Any], said: str
) -> None:
    """The exit code is 2, with the field."""
    code, _, err = sluice(spec(**fields), "run")
    assert code == 2
    assert said in err
    assert made(world) == []


def test_each_stream_of_a_scope_is_verified(world: World, sluice: Sluice) -> None:
    """A stream that differs is found, a missing one is an error, and others are compared."""
    code, out, err = sluice(spec(), "verify")
    assert (code, out) == (2, "")
    assert err.count("  ScopeCopy shop/") == 4
    sluice(spec(), "run")
    code, out, err = sluice(spec(), "verify")
    assert (code, err.strip(), out.count("\nEqual\n")) == (0, "", 4)
    world.segments[segment_name(name_of("b", "out"), 0)].data[20] ^= 1
    del world.streams[name_of("c", "out")]
    code, out, err = sluice(spec(), "verify")
    assert (code, out.count("\nEqual\n"), out.count("\nDifferent\n")) == (6, 2, 1)
    assert "ScopeCopy shop/c" in err


def test_a_scope_that_cannot_be_read_is_not_verified(world: World, sluice: Sluice) -> None:
    """It is named, and the exit code shows it."""
    world.streams.clear()
    world.scopes.remove("in")
    code, out, err = sluice(spec(), "verify")
    assert (code, out) == (2, "")
    assert "SourceNotFound" in err
    assert "  ScopeCopy shop\n" in err


def test_positions_are_of_single_streams(world: World, sluice: Sluice) -> None:
    """A file with only a ScopeCopy is refused, with the option for one of its streams."""
    code, out, err = sluice(spec(), "position")
    assert (code, out) == (2, "")
    assert "--stream: there are 0 StreamCopies in" in err
