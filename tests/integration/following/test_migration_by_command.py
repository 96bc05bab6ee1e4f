"""A stream's move to another store and back, by the runbook's commands without a cluster."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from localstore import Standalone
from support.command import runbook
from support.command.follow_command import LIVE, Process
from support.command.runbook import Runbook
from support.witness.application import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from localstore import ForeignClient

PAGE: Final = Path(__file__).parents[3] / "docs" / "migration.md"
TESTS: Final = (
    Path(__file__),
    Path(__file__).parents[1] / "kube" / "resources" / "test_migration.py",
)
RUNS: Final = re.compile(r'page\.(?:run|start)\("([a-z-]+)"\)')
READ: Final = 600
"""Events that each reader takes before it closes, in one store and in the other."""


@pytest.fixture
def new(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Standalone]:
    """Yield the new store of the stream."""
    server = Standalone(heap="1g")
    with announce("another Pravega standalone"):
        server.start()
    yield server
    server.stop()


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_a_stream_moves_and_back_without_a_cluster(
    standalone: Standalone,
    new: Standalone,
    scope: str,
    foreign: ForeignClient,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """At the end the old stream has each event once, in order, and each was read once."""
    texts = {
        r"tcp://pravega-old:9090": standalone.controller_uri,
        r"tcp://pravega-new:9090": new.controller_uri,
        r"\bshop\b": scope,
    }
    page, app = Runbook(PAGE, tmp_path, texts), Application()
    newer = foreign_for(new.controller_uri)
    foreign.create(scope, "orders", segments=2)
    foreign.create_group(scope, "billing", "orders")
    app.write(foreign, scope, "orders")
    process = page.start("run")
    following = Process(process)
    try:
        following.wait_for(LIVE)
        app.take(foreign, scope, "billing", events=READ)
        assert "Equal" in page.run("run-check")
        app.stop()
        began = time.monotonic()
        page.run("run-drain")
        say(f"  by command: writers stood still for {time.monotonic() - began:.1f} s")
        page.run("run-groups")
        assert following.ended().code == 0
    finally:
        page.end(process)
        following.ended()
    app.write(newer, scope, "orders")
    app.take(newer, scope, "billing", events=READ)
    app.stop()
    app.take(newer, scope, "billing")
    cut = page.run("run-back").splitlines()[-1]
    foreign.create_group(scope, "billing-back", "orders", cut=cut)
    app.write(foreign, scope, "orders")
    app.take(foreign, scope, "billing-back", events=READ)
    app.stop()
    app.take(foreign, scope, "billing-back")
    app.check(foreign.read(scope, "orders"))


def test_every_command_of_the_page_is_run() -> None:
    """Each block of the page is a file or a step, and a test runs each step."""
    ran = {name for test in TESTS for name in RUNS.findall(test.read_text())}
    assert runbook.unnamed(PAGE) == []
    assert ran == set(runbook.steps(PAGE))
