"""An append on a store of several processes, whose segments lie in several containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.engine.copy.report import Outcome
from support.command.sluice_command import Copy
from support.store.inline import run_inline
from support.store.live import assert_nothing_failed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import Cluster, ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

EVENTS = 4000
KEYS = 64


@pytest.mark.exhaustive
def test_what_is_staged_lies_in_the_containers_of_its_transactions(
    cluster: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """Staging is in the containers of its transactions, since a merge needs one container."""
    foreign = foreign_for(cluster.controller_uri)
    source, target = ("appends", "source"), ("appends", "target")
    copy = Copy(tmp_path, cluster.controller_uri, source, target, exists="Append")
    foreign.create(*source, segments=3)
    foreign.write(*source, events=EVENTS, keys=KEYS)
    assert foreign.scale(*source)
    foreign.write(*source, events=EVENTS, keys=KEYS, first=EVENTS)
    foreign.create(*target, segments=2)
    readers = foreign.start_readers(*target)
    stop = foreign.start_writer(*target, rate=1200, keys=50, seed=1)
    report = run_inline(copy)
    live = stop()
    assert report.outcome is Outcome.COPIED, report.error
    assert report.events == 2 * EVENTS
    foreign.seal(*target)
    read = readers.end()
    assert_nothing_failed(live, say)
    assert read.clean, read
    assert (read.events, read.keys) == (2 * EVENTS + live.events, KEYS + 50)
