"""The examples of copies, run on a real store by their own commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.engine.copy.report import Outcome
from support.command.sluice_command import Filed
from support.store.inline import run_copies
from support.store.scopes import Sketch, fill, names_in

if TYPE_CHECKING:
    from localstore import ForeignClient, Standalone

EXAMPLES = Path(__file__).parents[3] / "examples"
ADDRESS = "tcp://127.0.0.1:9090"
EVENTS = 500
KEYS = 8
THERE = 40
"""Events in a target before an append."""


@pytest.mark.parametrize(
    "what",
    [
        "",
        pytest.param("-append", marks=pytest.mark.exhaustive),
        "-move",
        pytest.param("-part", marks=pytest.mark.exhaustive),
        pytest.param("-truncated", marks=pytest.mark.exhaustive),
    ],
)
def test_an_example_copies_what_it_names(
    what: str, standalone: Standalone, foreign: ForeignClient
) -> None:
    """An example works with only the store's address changed. A further run does nothing."""
    text = (EXAMPLES / f"streamcopy{what}.yaml").read_text()
    assert ADDRESS in text
    text = text.replace(ADDRESS, standalone.controller_uri)
    (copy,) = load(text).copies
    assert copy.spec.source is not None
    source = (copy.spec.source.scope, copy.spec.source.stream)
    target = (copy.spec.target.scope, copy.spec.target.stream)
    foreign.create(*source)
    foreign.write(*source, events=EVENTS, keys=KEYS)
    foreign.create_scope(target[0])
    there = 0
    if copy.spec.target.on_exists == "Append":
        foreign.create(*target)
        there = foreign.write(*target, events=THERE, keys=KEYS, first=EVENTS).events
    for outcome in (Outcome.COPIED, Outcome.ALREADY_COMPLETE):
        (report,) = run_copies(text)
        assert report.outcome is outcome, report
        read = foreign.read(*target)
        assert (read.events, read.duplicates) == (EVENTS + there, 0)
    moved = copy.spec.source_on_complete == "Delete"
    assert (source[1] in foreign.streams(source[0])) is not moved
    for stream in {source, target} - ({source} if moved else set()):
        foreign.delete(*stream)


SHOP = (
    Sketch(name="orders-may", segments=2, events=EVENTS),
    Sketch(name="orders-draft-may", events=1),
    Sketch(name="refunds", events=EVENTS, policy={"tags": "keep,team=shop"}),
    Sketch(name="clicks"),
)
COPIES = {
    "scopecopy": {sketch.name: sketch.name for sketch in SHOP},
    "scopecopy-move": {sketch.name: sketch.name for sketch in SHOP},
    "scopecopy-selected": {"orders-may": "old-orders-may", "refunds": "old-refunds"},
}
"""The names of the copied streams and of their targets, by example."""


@dataclass
class Example(Filed):
    """An example with the test's store."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The example's file."""
        return self.path


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", COPIES)
def test_an_example_copies_the_scope_that_it_names(
    what: str, tmp_path: Path, standalone: Standalone, foreign: ForeignClient
) -> None:
    """The command in the first lines copies the scope. A further run does nothing."""
    text = (EXAMPLES / f"{what}.yaml").read_text()
    assert ADDRESS in text
    example = Example(tmp_path / "scope.yaml")
    example.path.write_text(text.replace(ADDRESS, standalone.controller_uri))
    (copy,) = load(text).scopes
    source, target = copy.spec.source.scope, copy.spec.target.scope
    fill(foreign, source, SHOP)
    if copy.spec.target.scope_policy == "MustExist":
        foreign.create_scope(target)
    assert example.run("plan").code == 0
    for _ in range(2):
        ended = example.run()
        assert ended.code == 0, ended.err
        assert names_in(foreign, target) == sorted(COPIES[what].values())
    for sketch in SHOP:
        if name := COPIES[what].get(sketch.name):
            read = foreign.read(target, name)
            assert (read.events, read.duplicates) == (sketch.events, 0)
    moved = copy.spec.source_on_complete == "Delete"
    assert names_in(foreign, source) == (None if moved else sorted(s.name for s in SHOP))
    for scope in (target,) if moved else (source, target):
        for name in names_in(foreign, scope) or []:
            foreign.delete(scope, name)
