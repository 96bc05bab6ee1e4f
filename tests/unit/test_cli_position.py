"""The options of `sluice position`, and the source of a reader group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from click.testing import CliRunner

from sluice.api.load import load
from sluice.commands.groups import GroupOptions, move_group, parse
from sluice.commands.positions import position
from sluice.config import Settings
from sluice.core.values.groups import DEFAULT_SETTINGS, GroupConfig, GroupName, GroupState
from sluice.core.values.model import StreamName
from sluice.engine.positions.position_map import position_map
from sluice.errors import InvalidSpec
from sluice.pipelines.programs.jobs import all_jobs, job_of_stream, jobs
from support.command.spelling import parsed
from support.engine.plans import SOURCE, TARGET
from support.engine.sources import copy_all, planned, put_source
from support.model import ModelGroup, ModelStore, World

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.pipelines.programs.stores import Stores


@pytest.mark.parametrize("options", [["--apply"], ["--as", "b"], ["--only-this-stream"]])
def test_options_of_a_group_need_one(options: list[str]) -> None:
    """The error names the missing option."""
    finished = CliRunner().invoke(position, ["-f", "copy.yaml", *options])
    assert isinstance(finished.exception, InvalidSpec)
    assert finished.exception.field == "--reader-group"


@pytest.mark.parametrize("field", ["--reader-group", "--as"])
@pytest.mark.parametrize("text", ["", "/", "/a", "a/", "a/b/c"])
def test_a_name_that_is_none_is_refused(field: str, text: str) -> None:
    """The error names the option."""
    options = ["--reader-group", "a", field, text]
    finished = CliRunner().invoke(position, ["-f", "copy.yaml", *options])
    assert isinstance(finished.exception, InvalidSpec)
    assert (finished.exception.field, text in finished.exception.message) == (field, True)


def test_a_group_may_be_named_with_its_scope() -> None:
    """The scope may also be left out."""
    assert parse("a", "--as") == ("", "a")
    assert parse("s/a", "--as") == ("s", "a")


TWO = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local}
spec: {pravega: {controllerURI: "tcp://model:1"}}
---
apiVersion: sluice.dev/v1alpha1
kind: StreamCopy
metadata: {name: both}
spec:
  sources:
  - {storeRef: {name: local}, scope: in, stream: s}
  - {storeRef: {name: local}, scope: in, stream: other}
  target: {storeRef: {name: local}, scope: out, stream: t}
"""
OTHER = StreamName(scope="in", stream="other")


def _moved(world: World, capsys: pytest.CaptureFixture[str], group: str) -> Any:
    """Return the JSON of `--reader-group --apply` for a copy of two streams."""
    (job,) = jobs(load(TWO), Settings())
    store = ModelStore(world)
    mapped = position_map(job.request.copy_id, job.request.target, store)
    stores = cast("Stores", {job.target: store})
    wish = GroupOptions(parse(group, "--reader-group"), None, apply=True, alone=False)
    move_group(job, wish, mapped, stores=stores, given=None, output="json")
    return parsed(capsys.readouterr().out)


def test_of_a_copy_of_several_streams_a_group_may_read_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The group continues in that stream's target. A group of two streams, or none, is refused."""
    world = World()
    put_source(world, [5, 6], [7])
    put_source(world, [8, 9], [10], name=OTHER)
    (job,) = jobs(load(TWO), Settings())
    copy_all(ModelStore(world), planned(ModelStore(world), job.request))
    at = {segment.id: 0 for segment in world.streams[OTHER].segments}
    for name, streams in (("one", (OTHER,)), ("two", (OTHER, SOURCE))):
        config = GroupConfig(DEFAULT_SETTINGS, streams)
        world.groups[GroupName("in", name)] = ModelGroup(config, GroupState((), {OTHER: at}, {}))
    told = _moved(world, capsys, "one")
    target = world.streams[TARGET].made[-1]
    assert (told["source"], told["targetReaderGroup"]) == ("in/other", "out/one")
    assert world.groups[GroupName("out", "one")].start == {TARGET: {s.id: 0 for s in target}}
    for name, found in (("two", 2), ("none", 0)):
        with pytest.raises(InvalidSpec, match=f"reads {found} of the 2 sources"):
            _moved(world, capsys, name)


SCOPE = """\
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: local}
spec: {pravega: {controllerURI: "tcp://model:1"}}
---
apiVersion: sluice.dev/v1alpha1
kind: ScopeCopy
metadata: {name: whole}
spec:
  source: {storeRef: {name: local}, scope: in}
  target: {storeRef: {name: local}, scope: out}
  rename: [{fromPrefix: a-, toPrefix: b-}]
"""
ARCHIVES = """\
---
apiVersion: sluice.dev/v1alpha1
kind: StreamStore
metadata: {name: bucket}
spec: {s3: {bucket: backup}}
"""


def test_a_stream_of_a_scope_is_named_as_its_copy_is() -> None:
    """The stream's own copy identifies it, under its target's name."""
    (job,) = all_jobs(load(SCOPE), Settings())
    found = job_of_stream(job, "a-b")
    assert found.request.target == StreamName(scope="out", stream="b-b")
    assert found.request == job.request.of("a-b", "b-b")
    assert found.name == "whole/a-b"


@pytest.mark.parametrize(
    ("text", "options", "field", "said"),
    [
        (SCOPE, [], "--stream", "Name a stream of the ScopeCopy"),
        (TWO, ["--stream", "s"], "--stream", "or leave the option out"),
        (
            SCOPE + "---\n" + SCOPE.split("---\n")[1].replace("whole", "other"),
            [],
            "--stream",
            "stream",
        ),
        (
            SCOPE.replace(
                "{storeRef: {name: local}, scope: out}",
                "{archive: {storeRef: {name: bucket}, path: a}}",
            )
            + ARCHIVES,
            ["--stream", "s"],
            "--filename",
            "a copy to a scope",
        ),
    ],
)
def test_a_file_without_one_copy_is_refused(
    tmp_path: Path, text: str, options: list[str], field: str, said: str
) -> None:
    """The error names the option and the remedy."""
    file = tmp_path / "copy.yaml"
    file.write_text(text)
    finished = CliRunner().invoke(position, ["-f", str(file), *options])
    assert isinstance(finished.exception, InvalidSpec)
    assert finished.exception.field == field
    assert said in finished.exception.remedy
