"""`sluice verify`: its output, its report, and its exit codes."""

from __future__ import annotations

import re
import struct
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import segment_hash
from sluice import cli
from sluice.api.load import load
from sluice.config import Settings
from sluice.core.values.model import StreamName
from sluice.core.verify.verification import ReportFile
from sluice.pipelines.programs import stores
from sluice.pipelines.programs.jobs import jobs
from support.command.spelling import parsed
from support.engine.sources import copy_all, planned, put_source
from support.model import EVENT_COUNT, ModelSegment, ModelStore, World, segment_name

DOCUMENT = Path(__file__).parents[2] / "docs" / "verify.md"
STORE = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local%s}
spec: {pravega: {controllerURI: "tcp://127.0.0.1:1"}}
---
"""
COPY = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {name: %s}
spec:
  source: {storeRef: {name: local}, scope: in, stream: %s}
  target: {storeRef: {name: local}, scope: out, stream: %s}
---
"""
ORDERS, COPIED = StreamName(scope="in", stream="orders"), StreamName(scope="out", stream="orders")
BOTH = ["local:in/orders", "local:out/orders"]
BLOCK = 1 << 20


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the world of all stores, with a stream of two segments."""
    for name in ("SLUICE_CLUSTER_ID", "SLUICE_CREDENTIALS_DIR", "SLUICE_STORE_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    made = World()
    monkeypatch.setattr(stores, "connect", lambda *_: ModelStore(made, block=BLOCK))
    put_source(made, [5, 9, 30], [8], name=ORDERS)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with a store, and a copy of the stream."""
    path = tmp_path / "copy.yaml"
    path.write_text(STORE % "" + COPY % ("orders", "orders", "orders"))
    return path


def copy(world: World, file: Path) -> None:
    """Carry the file's first copy out."""
    job = jobs(load(file.read_text()), Settings())[0]
    store = ModelStore(world, block=BLOCK)
    copy_all(store, planned(store, job.request))


def main(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str) -> int:
    """Run the command line as the program does; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["sluice", "verify", "-f", str(file), *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert isinstance(end.value.code, int)
    return end.value.code


def flip(world: World, name: StreamName, segment: int, offset: int) -> None:
    """Damage one byte."""
    world.segments[segment_name(name, segment)].data[offset] ^= 1


@pytest.mark.parametrize("arguments", [[], BOTH], ids=["copy", "streams"])
def test_equal_streams_exit_with_0(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    arguments: list[str],
) -> None:
    """The table shows the compared segments, and the last line says that they are equal."""
    copy(world, file)
    assert main(monkeypatch, file, *arguments) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("\nEqual\n")
    for text in ("in/orders", "out/orders", "4 events, 84 B, digest "):
        assert text in shown


@pytest.mark.parametrize("arguments", [[], BOTH], ids=["copy", "streams"])
def test_a_difference_exits_with_6_and_its_place(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    arguments: list[str],
) -> None:
    """The place is the first different byte, by segment and offset."""
    copy(world, file)
    flip(world, COPIED, 0, 21)
    assert main(monkeypatch, file, *arguments) == 6
    shown = capsys.readouterr().out
    assert "Bytes in segment 0 at 21 (in the target: segment 0 at 21): the first" in shown
    assert shown.endswith("\nDifferent\n")


def test_many_differences_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], world: World, file: Path
) -> None:
    """A dozen segments differ, and ten are shown."""
    for name in (ORDERS, COPIED):
        put_source(world, *[[5]] * 12, name=name)
    for segment in range(12):
        flip(world, COPIED, segment, 9)
    assert main(monkeypatch, file, *BOTH) == 6
    shown = capsys.readouterr().out
    assert shown.count("Bytes in segment") == 10
    assert "... and 2 more differences" in shown


def test_what_was_not_compared_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], world: World, file: Path
) -> None:
    """These are bytes that the source has lost, and bytes of the target alone."""
    copy(world, file)
    world.segments[segment_name(ORDERS, 0)].start = 13
    world.segments[segment_name(COPIED, 1)].data += b"\0\0\0\0\0\0\0\0"
    assert main(monkeypatch, file) == 6
    shown = capsys.readouterr().out
    assert "13 bytes of the source are gone" in shown
    assert "8 bytes of the target are outside of these bounds" in shown
    assert shown.endswith("\nIncomplete\n")
    assert main(monkeypatch, file, "--exact") == 6
    assert "Extra in segment 1 at 16" in capsys.readouterr().out


def test_the_table_fits_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], world: World, file: Path
) -> None:
    """Ids of segments after scale events are whole on a page of 80 characters."""
    world.numbers[ORDERS] = 2
    world.scale(ORDERS, 1)
    copy(world, file)
    assert main(monkeypatch, file) == 0
    shown = capsys.readouterr().out
    assert shown.count(str((1 << 32) + 2)) == 2
    assert "…" not in shown


def test_json_is_the_report(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    tmp_path: Path,
) -> None:
    """Standard output and the file have the same, and it can be read back."""
    copy(world, file)
    report = tmp_path / "report.json"
    assert main(monkeypatch, file, "-o", "json", "--report", str(report)) == 0
    shown = parsed(capsys.readouterr().out)
    assert shown == parsed(report.read_text())
    assert ReportFile.model_validate(shown).verifications[0].name == "orders"


def test_every_field_of_the_report_is_documented(
    monkeypatch: pytest.MonkeyPatch, world: World, file: Path, tmp_path: Path
) -> None:
    """Each name in the JSON stands in docs/verify.md as code."""
    copy(world, file)
    flip(world, COPIED, 0, 21)
    report = tmp_path / "report.json"
    main(monkeypatch, file, "--report", str(report))
    text = DOCUMENT.read_text()

    def names(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(names, value))
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set()

    inner = {"low", "high", "scope"}
    found = names(parsed(report.read_text())) - inner
    assert [name for name in sorted(found) if not re.search(rf"`\.*{name}(\[\])?`", text)] == []


def read(world: World, stream: Any, segment: int, offset: int, count: int) -> bytes:
    """Return bytes of a segment of one of a report's streams."""
    name = segment_name(StreamName(**stream["stream"]), segment)
    return bytes(world.segments[name].data[offset:][:count])


def recompute(world: World, verification: Any) -> None:
    """Run the program in docs/verify.md on both sides."""
    (code,) = re.findall(
        r"<!-- example: recompute -->\n```python\n(.+?)```", DOCUMENT.read_text(), re.DOTALL
    )
    given: dict[str, Any] = {}
    exec(code, given)  # noqa: S102 - what it says is what is tested
    for side in ("source", "target"):
        given["recompute"](verification, side, partial(read, world))


def test_anybody_can_recompute_the_report(
    monkeypatch: pytest.MonkeyPatch, world: World, file: Path, tmp_path: Path
) -> None:
    """The program in docs/verify.md, and hack/segment_hash.py, find the same digests.

    The source is truncated, so the target has other offsets. A segment has several chunks.
    """
    event = struct.pack(">ii", 0, 5 << 20) + b"event" * (1 << 20)
    name = segment_name(ORDERS, 1)
    data = event * 4
    attributes = world.segments[name].attributes | {EVENT_COUNT: 4}
    world.segments[name] = ModelSegment(bytearray(data), len(event), attributes=attributes)
    copy(world, file)
    flip(world, COPIED, 1, 9 << 20)
    report = tmp_path / "report.json"
    assert main(monkeypatch, file, "--report", str(report)) == 6
    (verification,) = parsed(report.read_text())["verifications"]
    recompute(world, verification)
    for side in ("source", "target"):
        for pair in verification["segments"]:
            one = pair[side]
            witness = segment_hash.Chunks(one["start"] - (pair["shift"] if side == "target" else 0))
            size = one["end"] - one["start"]
            witness.update(read(world, verification[side], one["segment"], one["start"], size))
            assert witness.digest() == one["digest"]
    long = verification["segments"][1]
    assert (long["shift"], len(long["source"]["chunks"])) == (-len(event), 3)
    flip(world, COPIED, 1, 0)
    with pytest.raises(AssertionError):
        recompute(world, verification)


SEVERAL = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {name: week}
spec:
  sources:
    - {storeRef: {name: local}, scope: in, stream: orders}
    - {storeRef: {name: local}, scope: in, stream: later}
  target: {storeRef: {name: local}, scope: out, stream: orders}
---
"""


def test_a_copy_of_several_streams_is_compared(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    tmp_path: Path,
) -> None:
    """Lines and differences name the stream, and the program in docs/verify.md does, too."""
    later = StreamName(scope="in", stream="later")
    put_source(world, [7, 7], name=later)
    file.write_text(STORE % "" + SEVERAL)
    copy(world, file)
    assert main(monkeypatch, file) == 0
    shown = capsys.readouterr().out
    for text in ("in/orders and 1 more (tcp://127.0.0.1:1) - out/orders", "in/later", "6 events"):
        assert text in shown
    made = world.streams[COPIED].readable
    flip(world, COPIED, made[2].id, 9)
    report = tmp_path / "report.json"
    assert main(monkeypatch, file, "--report", str(report)) == 6
    assert f"Bytes in segment 0 of in/later at 9 (in the target: segment {made[2].id} at 9)" in (
        capsys.readouterr().out.replace("\n", " ")
    )
    (verification,) = parsed(report.read_text())["verifications"]
    assert [source["events"] for source in verification["sources"]] == [4, 2]
    recompute(world, verification)


def test_a_part_of_a_stream_is_compared(
    monkeypatch: pytest.MonkeyPatch, world: World, file: Path
) -> None:
    """Both streams have cuts, and bytes outside are not compared."""
    copy(world, file)
    flip(world, COPIED, 0, 21)
    cut = ModelStore(world).write_cut
    bounds = [
        "--source-to",
        cut(ORDERS, {0: 13, 1: 16}),
        "--target-to",
        cut(COPIED, {0: 13, 1: 16}),
    ]
    assert main(monkeypatch, file, *BOTH, *bounds) == 0
    assert main(monkeypatch, file, *BOTH, *bounds[:2]) == 0
    bounds = [
        "--source-from",
        cut(ORDERS, {0: 13, 1: 0}),
        "--target-from",
        cut(COPIED, {0: 13, 1: 0}),
    ]
    assert main(monkeypatch, file, *BOTH, *bounds) == 6


def test_the_same_offsets_are_compared_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, world: World, file: Path
) -> None:
    """The source was truncated since."""
    copy(world, file)
    world.segments[segment_name(ORDERS, 0)].start = 13
    assert main(monkeypatch, file, *BOTH) == 6
    assert main(monkeypatch, file, *BOTH, "--same-offsets") == 0


def test_several_copies_are_verified_and_the_highest_code_counts(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    tmp_path: Path,
) -> None:
    """A copy that cannot be verified is named, and the others are verified."""
    copy(world, file)
    file.write_text(STORE % "" + COPY % ("none", "none", "none") + COPY % (("orders",) * 3))
    report = tmp_path / "report.json"
    assert main(monkeypatch, file, "--report", str(report)) == 2
    shown = capsys.readouterr()
    assert "InvalidSpec: spec.target.stream: there is no stream out/none" in shown.err
    assert "StreamCopy none" in shown.err
    assert shown.out.endswith("\nEqual\n")
    found = parsed(report.read_text())["verifications"]
    assert [one["name"] for one in found] == ["orders"]
    flip(world, COPIED, 0, 0)
    assert main(monkeypatch, file) == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["in/orders", "local:out/orders"], "SOURCE: 'in/orders' is no stream"),
        (["local:in/orders", "local:out"], "TARGET: 'local:out' is no stream"),
        (["local:in/a/b", "local:out/orders"], "SOURCE: 'local:in/a/b' is no stream"),
        (["other:in/orders", "local:out/orders"], "SOURCE: there are 0 StreamStores 'other'"),
        (["local:in/orders", "else/local:out/orders"], "TARGET: there are 0 StreamStores"),
        (["local:in/none", "local:out/orders"], "SOURCE: there is no stream in/none"),
        ([*BOTH, "--source-from", "in/orders/7=0"], "--source-from: the stream has no segment 7"),
        (["local:in/orders"], "give both SOURCE and TARGET"),
        (["--same-offsets"], "go with SOURCE and TARGET"),
        (["--target-to", "cut"], "go with SOURCE and TARGET"),
        (["--report", "no/such/folder/report.json"], "--report: no/such/folder/report.json cannot"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_exits_with_2(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    world: World,
    file: Path,
    arguments: list[str],
    said: str,
) -> None:
    """Standard error names the fault, and standard output stays empty."""
    put_source(world, [1], name=COPIED)
    assert main(monkeypatch, file, *arguments) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_a_file_without_copies_is_enough_for_streams_that_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], world: World, file: Path
) -> None:
    """Only stores are needed. The namespace distinguishes two of one name."""
    copy(world, file)
    file.write_text(STORE % "" + STORE % ", namespace: other")
    assert main(monkeypatch, file, *BOTH) == 2
    assert "there are 2 StreamStores 'local'" in capsys.readouterr().err
    named = ["other/local:in/orders", "other/local:out/orders"]
    assert main(monkeypatch, file, *named) == 0
    assert main(monkeypatch, file) == 2
    assert "there is no StreamCopy" in capsys.readouterr().err
