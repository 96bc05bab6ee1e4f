"""The examples of copies do on a real store what their first lines say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.engine.report import Outcome
from support.inline import run_copies

if TYPE_CHECKING:
    from localstore import ForeignClient, Standalone

EXAMPLES = Path(__file__).parents[2] / "examples"
ADDRESS = "tcp://127.0.0.1:9090"
EVENTS = 500
KEYS = 8
THERE = 40
"""Events that a target has before it is appended to."""


@pytest.mark.parametrize("what", ["", "-append", "-move", "-part", "-truncated"])
def test_an_example_copies_what_it_names(
    what: str, standalone: Standalone, foreign: ForeignClient
) -> None:
    """With nothing but the store's address changed; another run finds it done."""
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
