"""Following on a real store while one segment of the target takes no appends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.following.test_follow import contents, length, wait_for
from localstore import ForeignClient, Standalone
from sluice.engine.copy.report import Outcome
from support.crash.breakpoint import Breakpoint
from support.crash.proxy import APPEND_BLOCK_END, Frame, FrameProxy
from support.following.followers import Followers
from support.until import PATIENCE, until
from support.witness.foreign_witness import assert_equal, assert_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SOURCE, TARGET = ("stalls", "source"), ("stalls", "target")
STILL = "stalls/target/0.#epoch.0"
MIB = 1 << 20


@pytest.fixture
def proxy() -> Iterator[FrameProxy]:
    """Yield a proxy in front of a segment store."""
    with FrameProxy() as made:
        yield made


@pytest.fixture
def server(proxy: FrameProxy) -> Iterator[Standalone]:
    """Yield a store whose clients find its segment store behind the proxy."""
    made = Standalone(published_port=proxy.port)
    proxy.upstream = made.segment_store
    with made:
        yield made


@pytest.mark.exhaustive
def test_a_target_segment_that_stands_still_holds_no_other_up(
    proxy: FrameProxy, server: Standalone, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """The other segment goes on within seconds. The waiting bytes take no memory."""
    with ForeignClient(server.controller_uri) as foreign:
        foreign.create_scope(SOURCE[0])
        foreign.create(*SOURCE, segments=2)
        foreign.write(*SOURCE, events=1000, keys=16)
        with (
            (tmp_path / "followers.txt").open("a+") as file,
            Followers(server.controller_uri, (SOURCE, TARGET), file) as followers,
        ):
            followers.start()
            wait_for(foreign, TARGET, length(foreign, SOURCE))
            still = proxy.hold = Breakpoint(is_append)
            try:
                foreign.write(*SOURCE, events=10, keys=4, segments=[0], seed=2)
                assert still.reached.wait(PATIENCE)
                before = followers.memory
                foreign.write(*SOURCE, events=2000, size=50_000, keys=4, segments=[0], seed=3)
                foreign.write(*SOURCE, events=2000, keys=4, segments=[1], seed=4)
                wanted = {one.id: one.end for one in foreign.info(*SOURCE).segments}
                until("the other segment", lambda: ends(foreign)[1] == wanted[1])
                assert ends(foreign)[0] < wanted[0]
                grown = (followers.memory - before) / MIB
                say(f"  100 MB waited, for which the follower took {grown:.1f} MiB")
                assert grown < 32
            finally:
                still.release(deliver=True)
            assert foreign.seal(*SOURCE)
            assert followers.result() == 0, followers.said()
            assert followers.said().splitlines()[-1] == Outcome.COPIED.value
        expected = foreign.read(*SOURCE)
        assert_equal(server.segment_store, foreign, SOURCE, TARGET)
        assert_readable(foreign, TARGET, events=expected.events, digest=expected.digest)
        assert sum(map(len, contents(server, TARGET).values())) == sum(wanted.values())


def is_append(sign: object) -> bool:
    """Tell whether a frame appends to the segment that stands still."""
    return isinstance(sign, Frame) and (sign.type, sign.segment) == (APPEND_BLOCK_END, STILL)


def ends(foreign: ForeignClient) -> dict[int, int]:
    """Return the lengths of the target's segments."""
    return {one.id: one.end for one in foreign.info(*TARGET).segments}
