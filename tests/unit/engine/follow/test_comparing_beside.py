"""A follower compares a little at a time in another thread, while it appends what comes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from sluice.core.events.chain import Chain, Link
from sluice.engine.copy.planning import resolve
from sluice.engine.follow.work import FollowWork
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.runner import Runner
from support.engine.plans import TARGET
from support.engine.sources import CHUNK, ManualClock, events_of, put_source
from support.model import Fate, ModelStore, World, segment_name
from unit.engine.follow.test_follow import DONE, FOLLOW, SOURCE, write, write_wish

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.engine.copy.report import StreamReport

TURNS = 40
"""How often something happens while the follower waits for bytes."""


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is worth a comparison."""
    monkeypatch.setattr("sluice.engine.follow.comparing.LITTLE_SECONDS", 0.0)
    monkeypatch.setattr("sluice.engine.follow.comparing.LITTLE_BYTES", 1)


def run(
    world: World, act: Callable[[int], object], rate: int | None = None
) -> tuple[StreamReport, set[str]]:
    """Run a driver to its end.

    Args:
        world: the world.
        act: what happens at each turn.
        rate: bytes per second, at most.

    Returns:
        The report, and the names of the threads that have read the target while it followed.
    """
    turns, clock, readers = iter(range(TURNS + 5)), ManualClock(), set()

    def gate(what: str) -> Fate:
        if what.startswith("take"):
            clock.now += 0.5
            turn = next(turns, None)
            if turn is None:
                write_wish(world, DONE)
            elif turn < TURNS:
                act(turn)
        elif what.startswith("read") and f" {segment_name(TARGET, 0)}" in what:
            readers.add(threading.current_thread().name.partition("_")[0])
        return Fate.DONE

    store = ModelStore(world, gate)
    limits = Limits(slice_bytes=2 * CHUNK, bytes_per_second=rate)
    plan = resolve(FOLLOW, [store], store).plan
    assert plan is not None
    with ThreadPoolExecutor(1, "compare") as beside:
        work = FollowWork(
            plan,
            [store],
            store,
            clock=clock,
            every=1e9,
            beside=beside,
            limits=lambda: limits,
        )
        (report,) = Runner(
            [work], executor=InlineExecutor([store], store), limits=lambda: limits, clock=clock
        ).run()
    return report, readers


def test_another_thread_compares_what_is_appended() -> None:
    """All bytes are compared in the end, by the digest of the target's bytes."""
    world = World()
    (first,) = put_source(world, [20])
    report, readers = run(world, lambda turn: write(world, 0, [turn + 1], turn))
    assert report.error is None, report.error
    (data,) = world.bytes_of(TARGET)
    assert data == first + b"".join(events_of([turn + 1], turn) for turn in range(TURNS))
    chain = Chain(Link(0))
    chain.feed(memoryview(data))
    assert report.segments[0].digest == chain.link.digest.hex()
    assert "compare" in readers


def test_another_byte_that_it_finds_ends_the_copy() -> None:
    """As if the follower itself had found it."""
    world = World()
    put_source(world, [20])

    def act(turn: int) -> None:
        write(world, 0, [30], turn)
        there = world.segments.get(segment_name(TARGET, 0))
        if turn == TURNS // 2 and there is not None:
            world.segments[segment_name(SOURCE, 0)].data[len(there.data) - 1] ^= 1

    report, _ = run(world, act)
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"


def test_with_a_rate_the_follower_compares_by_itself() -> None:
    """Comparisons count for the rate, and what waits for it is interrupted by other steps."""
    world = World()
    (first,) = put_source(world, [20])
    report, readers = run(world, lambda turn: write(world, 0, [30], turn), rate=1 << 20)
    assert report.error is None, report.error
    assert len(world.bytes_of(TARGET)[0]) > len(first)
    assert readers
    assert "compare" not in readers
