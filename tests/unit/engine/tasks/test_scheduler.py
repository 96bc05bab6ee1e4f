"""The scheduler keeps all slots busy, and all slices together within the limit."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.engine.tasks import scheduler as module
from sluice.engine.tasks.executor import ThreadExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.scheduler import AHEAD, Scheduler, StepResults
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import InfrastructureError, NoSuchSegment, WaitingForExecutors

if TYPE_CHECKING:
    from sluice.engine.tasks.throttle import Task

MIB = 1 << 20
NO_LIMIT = Limits()
PARTS = st.tuples(st.integers(1, 9), st.integers(0, 3))
LIMITED = Limits(bytes_per_second=32 * MIB, slice_seconds=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(Slice):
    """A slice of `size` bytes, after which `follows` more slices come."""

    size: int = 1  # type: ignore[assignment] - a property of its base
    follows: int = 0

    def rest(self, most: int) -> Bytes | None:
        """See Slice."""
        return (
            replace(self, size=min(self.size, most), follows=self.follows - 1)
            if self.follows
            else None
        )

    def run(self, source: object, target: object, task: Task) -> SliceResult:  # noqa: ARG002 - no stores
        """See Slice."""
        task.pace.spend(self.size)
        return SliceResult(slice=self, moved=self.size)


class Clock:
    """A clock that tests move."""

    now = 0.0

    def monotonic(self) -> float:
        """See Clock."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        self.now += seconds


class Manual:
    """An executor whose slices end when a test says so."""

    def __init__(self, slots: int = 2) -> None:
        self.slots = slots
        self.begun: list[tuple[Any, Future[SliceResult]]] = []
        self.rates: list[float | None] = []
        self.stopped: list[float] = []
        self.trouble: InfrastructureError | None = None

    @property
    def submitted(self) -> list[Any]:
        """Return the slices that have begun and not ended."""
        return [work for work, future in self.begun if not future.done()]

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        future: Future[SliceResult] = Future()
        self.begun.append((work, future))
        return future

    def check(self, rate: float | None) -> None:
        """See Executor."""
        self.rates.append(rate)
        if self.trouble is not None:
            raise self.trouble

    def stop(self, grace: float) -> None:
        """See Executor."""
        self.stopped.append(grace)

    def end(self, number: int = 0, *, error: Exception | None = None, lost: bool = False) -> None:
        """End one of the slices that have begun."""
        work, future = [one for one in self.begun if not one[1].done()][number]
        if lost:
            future.set_exception(error)
        else:
            future.set_result(SliceResult(slice=work, moved=work.size, error=error))  # type: ignore[arg-type]


@pytest.fixture
def clock() -> Clock:
    """Return a clock that stands still."""
    return Clock()


@pytest.fixture
def executor() -> Manual:
    """Return an executor of two slots."""
    return Manual()


@pytest.fixture
def scheduler(executor: Manual, clock: Clock) -> Scheduler:
    """Return a scheduler on the executor, without a second executor for low rates."""
    return Scheduler(executor, clock=clock)


def slices(*sizes: int, stream: int = 0, follows: int = 0) -> list[Bytes]:
    """Return slices of these sizes, each of another segment."""
    return [
        Bytes(stream=stream, segment=number, size=size, follows=follows)
        for number, size in enumerate(sizes)
    ]


def turn(scheduler: Scheduler, limits: Limits = NO_LIMIT) -> list[StepResults]:
    """Take a turn that waits for nothing."""
    return scheduler.turn(limits, wait=0)


def test_the_largest_slices_begin_first(scheduler: Scheduler, executor: Manual) -> None:
    """Slices of all streams compete. Each slot gets one, and a few wait in the executor."""
    scheduler.add(slices(5, 1, 9), NO_LIMIT)
    scheduler.add(slices(7, 2, stream=1), NO_LIMIT)
    turn(scheduler)
    assert [work.size for work in executor.submitted] == [9, 7, 5, 2]
    assert len(executor.submitted) == executor.slots + AHEAD


def test_no_slice_waits_for_a_slow_one(scheduler: Scheduler, executor: Manual) -> None:
    """While one slice runs, all others of its step end, and so do the steps of other streams."""
    scheduler.add(slices(9, *([1] * 20)), NO_LIMIT)
    turn(scheduler)
    for _ in range(20):
        executor.end(1)
        assert turn(scheduler) == []
    assert [work.size for work in executor.submitted] == [9]
    scheduler.add(slices(1, stream=1), NO_LIMIT)
    turn(scheduler)
    executor.end(1)
    assert [(one.stream, one.over) for one in turn(scheduler)] == [(1, True)]
    executor.end()
    (ended,) = turn(scheduler)
    assert (ended.stream, ended.over, len(ended.results)) == (0, True, 21)
    assert scheduler.is_idle


def test_a_part_goes_on_without_a_look(scheduler: Scheduler, executor: Manual) -> None:
    """The next slice begins when the slice before it has ended, and never beside it."""
    scheduler.add(slices(4, follows=3), NO_LIMIT)
    turn(scheduler)
    for left in (3, 2, 1):
        assert [work.follows for work in executor.submitted] == [left]
        executor.end()
        turn(scheduler)
    executor.end()
    (ended,) = turn(scheduler)
    assert [one.slice.follows for one in ended.results] == [3, 2, 1, 0]  # type: ignore[attr-defined]


def test_results_are_told_while_a_step_goes_on(
    scheduler: Scheduler, executor: Manual, clock: Clock
) -> None:
    """Several come at a time, since each time costs a record. A killed driver loses few."""
    scheduler.add(slices(4, follows=9), NO_LIMIT)
    told = []
    for _ in range(9):
        turn(scheduler)
        executor.end()
        clock.now += 1
        told += turn(scheduler)
    assert [(len(one.results), one.over) for one in told] == [(2, False)] * 4


@pytest.mark.parametrize("lost", [False, True])
def test_a_failure_ends_a_step_when_its_slices_have_ended(
    scheduler: Scheduler, executor: Manual, *, lost: bool
) -> None:
    """No waiting or following slice of the step begins. Other streams' slices go on."""
    scheduler.add(slices(*([9] * 8), follows=1), NO_LIMIT)
    scheduler.add(slices(1, stream=1), NO_LIMIT)
    turn(scheduler)
    error = InfrastructureError("lost") if lost else NoSuchSegment("gone", segment="x")
    executor.end(2, error=error, lost=lost)
    assert turn(scheduler) == []
    assert [work.stream for work in executor.submitted] == [0, 0, 0, 1]
    for _ in range(3):
        executor.end()
    (ended,) = turn(scheduler)
    assert (ended.stream, ended.over) == (0, True)
    assert ended.error is (error if lost else None)
    assert [one.error for one in ended.results if one.error] == ([] if lost else [error])
    assert [work.stream for work in executor.submitted] == [1]


def test_errors_that_are_not_the_stores_end_all(scheduler: Scheduler, executor: Manual) -> None:
    """A bug or the loss of Spark is raised, since no look at a store helps."""
    scheduler.add(slices(1), NO_LIMIT)
    turn(scheduler)
    executor.end(error=ZeroDivisionError(), lost=True)
    with pytest.raises(ZeroDivisionError):
        turn(scheduler)


def test_new_limits_hold_for_slices_that_have_not_begun(
    scheduler: Scheduler, executor: Manual
) -> None:
    """Waiting slices are left to the next look, and running ones are waited for."""
    scheduler.add(slices(*([1] * 8), follows=1), NO_LIMIT)
    turn(scheduler)
    turn(scheduler, LIMITED)
    scheduler.add(slices(3, stream=1), LIMITED)
    for _ in range(2 + AHEAD):
        assert turn(scheduler, LIMITED) == []
        executor.end()
    assert len(executor.begun) == 2 + AHEAD
    (ended,) = turn(scheduler, LIMITED)
    assert (ended.stream, len(ended.results)) == (0, 2 + AHEAD)
    turn(scheduler, LIMITED)
    assert [(work.size, work.rate) for work in executor.submitted] == [(3, 32 * MIB)]


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_the_rate_is_divided_among_the_slices_that_run(parts: int, clock: Clock) -> None:
    """A stream of one part has the whole rate, and the time between waves is made up for."""
    executor = Manual(slots=8)
    scheduler = Scheduler(executor, clock=clock)
    limits = replace(LIMITED, bytes_per_second=800 * MIB)
    moved = 0
    for _ in range(30):
        scheduler.add(slices(*([1] * parts)), limits)
        turn(scheduler, limits)
        assert len(executor.submitted) == parts
        clock.now += 1
        for work, future in executor.begun:
            if not future.done():
                moved += int(work.rate)
                future.set_result(SliceResult(slice=work, moved=int(work.rate)))
        assert [one.over for one in turn(scheduler, limits)] == [True]
        clock.now += 0.1
    assert moved == pytest.approx(800 * MIB * clock.now, rel=0.05)


def test_a_wave_begins_no_slice_after_its_time(
    scheduler: Scheduler, executor: Manual, clock: Clock
) -> None:
    """Its streams are looked at again, so new limits count and no stream is forgotten."""
    scheduler.add(slices(1, 1, 1), LIMITED)
    turn(scheduler, LIMITED)
    executor.end()
    turn(scheduler, LIMITED)
    assert len(executor.begun) == 3
    scheduler.add(slices(1, stream=1), LIMITED)
    clock.now += 1.5
    assert [(one.stream, one.over) for one in turn(scheduler, LIMITED)] == [(1, True)]
    executor.end()
    executor.end()
    assert [(one.stream, one.over) for one in turn(scheduler, LIMITED)] == [(0, True)]


def test_a_low_rate_is_for_one_process(clock: Clock) -> None:
    """A task gets at least 8 MiB/s. Below two such tasks, the driver's own process works."""
    for rate, tasks, local in (
        (1 << 10, 0, 1),
        (16 * MIB - 1, 0, 1),
        (16 * MIB, 2, 0),
        (40 * MIB, 5, 0),
        (None, 8, 0),
    ):
        executor, slow = Manual(slots=8), Manual(slots=1)
        scheduler = Scheduler(executor, slow=slow, clock=clock)
        limits = Limits(bytes_per_second=rate)
        scheduler.add(slices(*([1] * 8)), limits)
        turn(scheduler, limits)
        assert (len(executor.submitted), len(slow.submitted)) == (tasks, local)


def test_streams_fail_where_nothing_can_run(scheduler: Scheduler, executor: Manual) -> None:
    """Slices that wait for a slot are cancelled, and the step's error has the cause."""
    scheduler.add(slices(1, 1), NO_LIMIT)
    turn(scheduler)
    executor.trouble = WaitingForExecutors("none was there")
    assert turn(scheduler) == []
    assert executor.stopped == [0]
    for _ in range(2):
        executor.end(error=InfrastructureError("cancelled"), lost=True)
    (ended,) = turn(scheduler)
    assert isinstance(ended.error, WaitingForExecutors)


def test_what_ends_in_time_is_kept_when_all_is_to_end(
    scheduler: Scheduler, executor: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices that end within the grace time are returned, and no other slice begins."""
    monkeypatch.setattr(module, "GRACE", 0.05)
    scheduler.add(slices(*([1] * 9), follows=1), NO_LIMIT)
    turn(scheduler)
    executor.end()
    executor.end(error=ZeroDivisionError(), lost=True)
    (ended,) = scheduler.stop()
    assert (len(ended.results), ended.over) == (1, False)
    assert executor.stopped == [0.05]
    assert len(executor.begun) == 2 + AHEAD


def test_only_so_many_slices_of_a_step_are_held(scheduler: Scheduler, executor: Manual) -> None:
    """A stream may have millions of slices. The rest is left to the next look."""
    limits = Limits(slice_bytes=1)
    scheduler.add(slices(*([1] * 1000)), limits)
    while (ended := turn(scheduler, limits)) == []:
        executor.end()
    assert len(ended[0].results) == module.BATCH_SLICES * executor.slots


@given(
    streams=st.lists(
        st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=5),
        max_size=4,
    ),
    slots=st.integers(1, 4),
    chance=st.randoms(use_true_random=False),
)
def test_every_slice_has_one_result(
    streams: list[list[tuple[int, int]]], slots: int, chance: Any
) -> None:
    """They end in any order, and no more are submitted than slots and a few ahead."""
    executor = Manual(slots)
    scheduler = Scheduler(executor, clock=Clock())
    for stream, parts in enumerate(streams):
        scheduler.add(
            [
                Bytes(stream=stream, segment=number, size=size, follows=follows)
                for number, (size, follows) in enumerate(parts)
            ],
            NO_LIMIT,
        )
    results = []
    while not scheduler.is_idle:
        results += [one for ended in turn(scheduler) for one in ended.results]
        assert len(executor.submitted) <= slots + AHEAD
        if executor.submitted:
            executor.end(chance.randrange(len(executor.submitted)))
    done = sorted((one.slice.stream, one.slice.segment) for one in results)
    assert done == sorted(
        (stream, number)
        for stream, parts in enumerate(streams)
        for number, (_, follows) in enumerate(parts)
        for _ in range(1 + follows)
    )


def test_threads_run_slices_side_by_side() -> None:
    """Two slices that wait for each other both end."""
    barrier = threading.Barrier(2, timeout=60)

    class Meeting(Bytes):
        def run(self, *_: object) -> SliceResult:
            barrier.wait()
            return SliceResult(slice=self, moved=1)

    store: Any = SimpleNamespace()
    with ThreadExecutor([store], store, slots=2) as executor:
        futures = [executor.submit(Meeting(segment=number)) for number in range(2)]
        assert [one.result(60).moved for one in futures] == [1, 1]


def test_threads_follow_the_present_rate_together() -> None:
    """Slow slices end as soon as the limit is lifted."""
    store: Any = SimpleNamespace()
    with ThreadExecutor([store], store, slots=2) as executor:
        executor.check(1 << 10)
        futures = [executor.submit(work) for work in slices(64 << 10, 64 << 10)]
        assert not any(one.done() for one in futures)
        executor.check(None)
        assert [one.result(60).moved for one in futures] == [64 << 10] * 2


def test_threads_end_midway_with_their_block() -> None:
    """A caller that leaves the block need not wait for bytes at a low rate."""
    store: Any = SimpleNamespace()
    with ThreadExecutor([store], store, slots=1) as executor:
        executor.check(1 << 10)
        future = executor.submit(slices(1 << 20)[0])
    assert future.exception(10) is not None
