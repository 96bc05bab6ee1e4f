"""Verification by the task that stages: bytes that it reads back need no other slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.copy.steps import Verify
from sluice.engine.append.appends import restart
from sluice.engine.copy.report import Outcome
from sluice.engine.slices import slices
from sluice.engine.slices.slices import CopySlice, VerifySlice
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.errors import InfrastructureError
from support.engine.appends import driven, put_target
from support.engine.executors import failed
from support.engine.plans import SOURCE, TARGET, whole_plan
from support.engine.runners import copy_runner
from support.engine.sources import CHUNK, ManualClock, drive, planned, put_source, split
from support.model import ModelStore, World

if TYPE_CHECKING:
    from concurrent.futures import Future
    from random import Random

    from sluice.engine.copy.report import StreamReport
    from sluice.engine.tasks.slices import Slice, SliceResult

SIZES = [40, 0, 7, 300, 1, 40, 90]
STEPS_TO_TRANSFER = 4
"""The steps MakeTarget, Bind, Stage and Transfer."""


class Counting(InlineExecutor):
    """An executor that counts the bytes that each kind of slice has to move, and loses results."""

    def __init__(self, store: ModelStore, lost: Random | None = None) -> None:
        super().__init__([store], store)
        object.__setattr__(self, "asked", {CopySlice: 0, VerifySlice: 0})
        object.__setattr__(self, "lost", lost)

    asked: dict[type[Slice], int]
    lost: Random | None

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        self.asked[type(work)] += work.size
        future = super().submit(work)
        if self.lost is None or self.lost.random() < 0.6:
            return future
        return failed(InfrastructureError("lost"))


def copied(
    store: ModelStore, executor: InlineExecutor, limits: Limits, *, parts: int | None = None
) -> StreamReport:
    """Run the copy to its end, in parts of this many bytes."""
    plan = planned(store)
    runner = copy_runner(
        whole_plan(plan if parts is None else split(plan, parts)),
        sources=[store],
        target=store,
        executor=executor,
        limits=lambda: limits,
        clock=ManualClock(),
    )
    (report,) = runner.run()
    return report


@pytest.fixture
def world() -> World:
    """Return a world with a source of two segments."""
    made = World()
    put_source(made, SIZES, [9, 60])
    return made


def test_bytes_are_read_back_by_the_task_that_stages_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that verifies has no slice left, and every event is counted."""
    monkeypatch.setattr(slices, "READ_BACK", 2 * CHUNK)
    store = ModelStore(world)
    executor = Counting(store)
    report = copied(store, executor, Limits())
    assert report.outcome is Outcome.COPIED
    assert [one.events for one in report.segments] == [len(SIZES), 2]
    assert executor.asked[CopySlice] > 0
    assert executor.asked[VerifySlice] == 0


def test_bytes_at_a_limited_rate_are_verified_by_slices_of_their_own(world: World) -> None:
    """Otherwise a task would follow a new limit later."""
    store = ModelStore(world)
    executor = Counting(store)
    report = copied(store, executor, Limits(slice_bytes=2 * CHUNK, bytes_per_second=1 << 30))
    assert [one.events for one in report.segments] == [len(SIZES), 2]
    assert executor.asked[VerifySlice] >= executor.asked[CopySlice]


def test_a_later_driver_verifies_what_has_no_evidence(world: World) -> None:
    """A driver's evidence dies with it, so the next driver finds a bit that the store lost."""
    drive(world, STEPS_TO_TRANSFER)
    world.segments[world.staging()[0]].data[3] ^= 1
    store = ModelStore(world)
    report = copied(store, InlineExecutor([store], store), Limits())
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"
    assert TARGET not in world.streams


@given(
    sizes=st.lists(st.lists(st.integers(0, 70), max_size=30), min_size=1, max_size=2),
    piece=st.sampled_from([CHUNK, 2 * CHUNK, 5 * CHUNK]),
    slice_chunks=st.integers(1, 6),
    parts=st.none() | st.sampled_from([2 * CHUNK, 3 * CHUNK]),
    steps=st.integers(0, STEPS_TO_TRANSFER),
    lost=st.none() | st.randoms(use_true_random=False),
)
def test_events_are_counted_exactly_however_bytes_were_read_back(
    sizes: list[list[int]],
    piece: int,
    slice_chunks: int,
    parts: int | None,
    steps: int,
    lost: Random | None,
) -> None:
    """This holds for any pieces and parts, after a driver's death, and with lost results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "READ_BACK", piece)
        world = World()
        put_source(world, *sizes)
        wanted = world.bytes_of(SOURCE)
        drive(world, steps)
        store = ModelStore(world, block=7)
        report = copied(
            store, Counting(store, lost), Limits(slice_bytes=slice_chunks * CHUNK), parts=parts
        )
        assert report.error is None
        assert [one.events for one in report.segments] == [len(one) for one in sizes]
        assert world.bytes_of(TARGET) == wanted


def test_another_attempt_at_an_append_is_verified_anew(world: World) -> None:
    """Evidence holds for the segments of one attempt, and another driver staged the next attempt.

    That driver was killed, and its evidence went with it.
    """
    put_target(world, 2)
    copy = driven(world, Verify)
    restart(copy.plan, copy.journal, ModelStore(world), keep=False)
    driven(world, Verify)
    step = copy.look()
    assert isinstance(step, Verify)
    assert sum(work.size for work in copy.slices(step, Limits(), 1)) == copy.plan.bytes
