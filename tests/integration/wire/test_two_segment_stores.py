"""Two segment stores that share a store's containers. When one dies, the other takes them over.

The witness asks the first segment store, so that one must own all segments at that time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from localstore import Cluster
from sluice.core.values.model import StoreAddress, StreamName
from sluice.pipelines.programs.stores import Stores
from sluice.stores.pravega.names import segment_name
from support.command.scope_command import ScopeCopy
from support.command.sluice_command import finish
from support.following.followed_exactly import Exactly, Place
from support.store.inline import SETTINGS
from support.store.scopes import assert_equal, fill, names_in, seen
from support.until import TIGHT, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from localstore import ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(900)]

ANY: Final = StreamName(scope="any", stream="stream")

RATE: Final = 2_000
"""Events per second of a source that is followed."""


@pytest.fixture(scope="module")
def pair(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Cluster]:
    """Yield a store whose containers two segment stores share: leave both running."""
    with announce("a Pravega with two segment stores"):
        servers = Cluster(pair=True)
        servers.start()
    yield servers
    servers.stop()


def test_a_scope_is_copied_though_one_of_the_segment_stores_dies(
    pair: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """One run survives the death of a segment store: the other one takes all containers."""
    foreign = foreign_for(pair.controller_uri)
    source, target = "shop", "copy"
    fill(foreign, source)
    spec: dict[str, Any] = {
        "target": {"scopePolicy": "CreateIfAbsent"},
        "limits": {"bytesPerSecond": "2Mi"},
    }
    copy = ScopeCopy(tmp_path, pair.controller_uri, source, target, spec=spec)
    planned = copy.run("plan", "-o", "json").json[0]
    assert len(owners(pair)) == 2
    with copy.running("run", "-o", "json") as process:
        until("it is midway", lambda: len(names_in(foreign, target) or ()) >= 5, poll=TIGHT)
        pair.kill("segmentstore2")
        killed = time.monotonic()
        assert process.poll() is None, "it was over before the store was killed"
        ended = finish(process, seconds=400)
    assert ended.code == 0, ended.err
    say(f"  whole {time.monotonic() - killed:.0f} s after one of two segment stores died")
    assert len(owners(pair)) == 1
    before = seen(pair.segment_store, foreign, source)
    assert_equal(before, seen(pair.segment_store, foreign, target))
    assert copy.left_of(pair.segment_store, planned) == []
    pair.restart("segmentstore2")


def owners(pair: Cluster) -> set[object]:
    """Return the segment stores that own segments, by the names that segments may have."""
    with Stores(SETTINGS) as stores:
        store = stores[StoreAddress(uri=pair.controller_uri)]
        return set(store._transport.owners([segment_name(ANY, number) for number in range(64)]))


def test_segments_that_move_to_another_segment_store_are_followed_there(
    pair: Cluster,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """Followed segments move when a segment store dies and when it returns."""
    place = Place(pair, foreign_for(pair.controller_uri), tmp_path, say)
    streams = (("moving", "source"), ("moving", "target"))
    with Exactly(place, streams, rate=RATE, seed=37) as run:
        run.wait_moving()
        pair.kill("segmentstore")
        run.wait_moving()
        pair.restart("segmentstore")
        run.scale()
        run.wait_moving()
        pair.kill("segmentstore2")  # the first one, which the witness asks, gets all containers
        run.wait_moving()
        run.scale()
        run.wait_moving()
        run.read_anew()
        run.end()
    pair.restart("segmentstore2")
