"""An append on a store of several processes, whose segments lie in several containers."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from localstore import Cluster
from sluice.config import Settings
from sluice.core.model import StoreAddress, StreamName
from sluice.engine.clearing import clear_names
from sluice.engine.report import Outcome
from sluice.errors import NoSuchSegment
from sluice.stores.base import Condition
from sluice.stores.connect import connect
from support.command import Copy
from support.inline import run_inline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from localstore import ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

EVENTS = 4000
KEYS = 64
MERGES = 40
SIZES = (5, 5_000, 200_000)


@pytest.fixture(scope="module")
def cluster(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Cluster]:
    """Gives a Pravega of four processes."""
    servers = Cluster()
    with announce("a Pravega cluster of four processes"):
        servers.start()
    yield servers
    servers.stop()


def test_what_is_staged_lies_in_the_containers_of_its_transactions(
    cluster: Cluster, foreign_for: Callable[..., ForeignClient], tmp_path: Path
) -> None:
    """A store merges within a container only; readers and a writer are there meanwhile."""
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
    assert (live.failed, live.acknowledged) == (0, live.events)
    assert live.events >= 1000 * live.seconds
    assert read.clean, read
    assert (read.events, read.keys) == (2 * EVENTS + live.events, KEYS + 50)


def test_a_segment_merged_before_the_store_was_started_again_is_gone(
    cluster: Cluster, foreign_for: Callable[..., ForeignClient]
) -> None:
    """The store hangs up when an attribute of one is to be set; to us there is no such segment.

    It does so for one or two of those that were merged shortly before, so there are many.
    """
    foreign_for(cluster.controller_uri).create("merged", "target", segments=1)
    stream = StreamName(scope="merged", stream="target")
    merged = []
    with closing(connect(StoreAddress(uri=cluster.controller_uri), Settings())) as store:
        for number in range(MERGES):
            part, first, into = (store.staging_name(stream, 0, uuid4().hex) for _ in range(3))
            for name in (part, first, into):
                assert store.create(name)
                assert store.append_at(name, 0, bytes(SIZES[number % len(SIZES)]))
            for source, name in ((part, first), (first, into)):
                store.seal(source)
                store.merge(name, source, Condition(uuid4(), None, 1))
            merged.append([into, first, part])
        cluster.kill("segmentstore")
        cluster.restart("segmentstore")
    attribute = uuid4()
    with closing(connect(StoreAddress(uri=cluster.controller_uri), Settings())) as store:
        for _, *gone in merged:
            assert store.infos(gone) == [None, None]
            for name in gone:
                with pytest.raises(NoSuchSegment):
                    store.set_attribute(name, Condition(attribute, None, 1))
        assert clear_names("ab" * 16, merged, store) == MERGES
        assert not any(store.infos([name for names in merged for name in names]))
