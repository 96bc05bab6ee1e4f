"""A scope's copy while processes of the store are killed, and started again after a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from support.command.scope_command import ScopeCopy
from support.command.sluice_command import finish
from support.store.scopes import assert_equal, fill, names_in, seen
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from localstore import Cluster, ForeignClient
    from localstore.cluster_config import Name

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.crash,
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
]

AWAY: Final = 3.0
"""Seconds after which a server that was killed is started again."""


@pytest.mark.parametrize("server", ["segmentstore", "controller", "bookie", "zookeeper"])
def test_a_scope_is_copied_though_the_store_is_killed_midway(
    cluster: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    server: Name,
) -> None:
    """One run waits for the killed store and goes on. Each stream is there once."""
    foreign = foreign_for(cluster.controller_uri)
    source, target = "shop", f"copy-{server}"
    if names_in(foreign, source) is None:
        fill(foreign, source)
    before = seen(cluster.segment_store, foreign, source)
    spec: dict[str, Any] = {
        "target": {"scopePolicy": "CreateIfAbsent"},
        "limits": {"bytesPerSecond": "8Mi"},
    }
    copy = ScopeCopy(tmp_path, cluster.controller_uri, source, target, spec=spec)
    planned = copy.run("plan", "-o", "json").json[0]
    with copy.running("run", "-o", "json") as process:
        until("it is midway", lambda: len(names_in(foreign, target) or ()) >= 5, poll=TIGHT)
        cluster.kill(server)
        time.sleep(AWAY)
        assert process.poll() is None, "it was over before the store was killed"
        cluster.restart(server)
        cluster.wait_ready()
        ended = finish(process, seconds=400)
    assert ended.code == 0, ended.err
    assert_equal(before, seen(cluster.segment_store, foreign, target))
    assert copy.left_of(cluster.segment_store, planned) == []
    assert not copy.is_logged
