"""The guide of copies that follow their source. Its examples run as written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sluice.api.load import load
from support.command.follow_command import following
from support.command.sluice_command import Filed
from support.until import until

if TYPE_CHECKING:
    from localstore import ForeignClient, Standalone

ROOT: Final = Path(__file__).parents[3]
GUIDE: Final = ROOT / "docs" / "continuous.md"
EXAMPLE: Final = ROOT / "examples" / "streamcopy-continuous.yaml"
OF_SCOPE: Final = ROOT / "examples" / "scopecopy-continuous.yaml"
ADDRESS: Final = "tcp://127.0.0.1:9090"
IDLE: Final = "idleSeconds: 600"
EVENTS: Final = 500
KEYS: Final = 8


@dataclass
class Written(Filed):
    """A file of the guide with the test's store, and with a short idle time."""

    folder: Path
    text: str
    uri: str
    log_level = "warning"
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The file. Each access writes it anew."""
        assert ADDRESS in self.text
        assert IDLE in self.text
        path = self.folder / "copy.yaml"
        path.write_text(self.text.replace(ADDRESS, self.uri).replace(IDLE, "idleSeconds: 4"))
        return path


def shown(kind: str) -> list[str]:
    """Return the guide's blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def of_scopes() -> str:
    """Return the example of the guide that follows a scope."""
    (found,) = [block for block in shown("yaml") if "kind: ScopeCopy" in block]
    return found


def without_numbers(line: str) -> str:
    """Return a line without the parts that differ from run to run."""
    line = line.replace("10m00s", "4s")
    return re.sub(r"^Plan [0-9a-f]+", "Plan", line)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(shown("yaml")[0], id="guide"),
        pytest.param(EXAMPLE.read_text(), id="example", marks=pytest.mark.exhaustive),
    ],
)
def test_an_example_follows_what_it_names(
    text: str, tmp_path: Path, standalone: Standalone, foreign: ForeignClient
) -> None:
    """An example prints the guide's output, follows its source, and ends as its file says."""
    (copy,) = load(text).copies
    assert copy.spec.source is not None
    source = (copy.spec.source.scope, copy.spec.source.stream)
    target = (copy.spec.target.scope, copy.spec.target.stream)
    for scope in {source[0], target[0]}:
        foreign.create_scope(scope)
    foreign.create(*source)
    foreign.write(*source, events=EVENTS, keys=KEYS)
    with following(Written(tmp_path, text, standalone.controller_uri), "-o", "json") as process:
        foreign.write(*source, events=EVENTS, keys=KEYS)
        until("all is there", lambda: foreign.visible(*target).events == 2 * EVENTS)
        ended = process.ended()
    assert ended.json[0]["ended"] == "Idle"
    assert foreign.read(*target).digest == foreign.read(*source).digest
    if text == shown("yaml")[0]:
        said = [without_numbers(line) for line in ended.err.splitlines()]
        _, *lines = shown("console")[0].splitlines()
        assert [line for line in map(without_numbers, lines) if line not in said] == []
    for stream in (source, target):
        foreign.delete(*stream)


def test_the_other_resources_of_the_guide_are_parts_of_good_ones() -> None:
    """Each part of a spec in the guide is valid within the first example."""
    first, *others = shown("yaml")
    parts = [part for part in others if "kind:" not in part]
    assert parts
    for part in parts:
        _, _, spec = part.partition("spec:\n")
        (copy,) = load(first + spec).copies
        assert copy.spec.follows


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(of_scopes(), id="guide"),
        pytest.param(OF_SCOPE.read_text(), id="example", marks=pytest.mark.exhaustive),
    ],
)
def test_an_example_follows_the_scope_that_it_names(
    text: str, tmp_path: Path, standalone: Standalone, foreign: ForeignClient
) -> None:
    """An example prints the guide's output, follows each stream, and ends as its file says."""
    (copy,) = load(text).scopes
    source, target = copy.spec.source.scope, copy.spec.target.scope
    streams = ("orders", "payments")
    for stream in streams:
        foreign.create(source, stream)
        foreign.write(source, stream, events=EVENTS, keys=KEYS)
    with following(Written(tmp_path, text, standalone.controller_uri), "-o", "json") as process:
        for stream in streams:
            foreign.write(source, stream, events=EVENTS, keys=KEYS)
            until(
                f"{stream} has all",
                lambda stream=stream: foreign.visible(target, stream).events == 2 * EVENTS,
            )
        ended = process.ended()
    assert {one["ended"] for one in ended.json[0]["streams"]} == {"Idle"}
    for stream in streams:
        assert foreign.read(target, stream).digest == foreign.read(source, stream).digest
    if text == of_scopes():
        said = [without_numbers(line) for line in ended.err.splitlines()]
        (screen,) = [block for block in shown("console") if "scope.yaml" in block]
        _, *lines = screen.splitlines()
        assert [line for line in map(without_numbers, lines) if line not in said] == []
    for scope in (source, target):
        for stream in streams:
            foreign.delete(scope, stream)
