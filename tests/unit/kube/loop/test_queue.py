from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.kube.loop.queue import FIRST_DELAY, LONGEST_DELAY, Key, Lane, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

A, B, C = (Key("StreamCopy", "team", name) for name in "abc")
RUNNER = asyncio.Runner()


@pytest.fixture(scope="module", autouse=True)
def one_loop() -> Iterator[None]:
    """End the loop of all queues of these tests."""
    with RUNNER:
        yield


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def made() -> tuple[WorkQueue, Clock]:
    """Return a queue and its clock."""
    clock = Clock()
    return WorkQueue(clock), clock


def take(queue: WorkQueue, lane: Lane = Lane.NORMAL) -> Key | None:
    """Return the key for a worker that does not wait."""

    async def at_once(coming: Awaitable[Key]) -> Key | None:
        worker = asyncio.ensure_future(coming)
        for _ in range(3):
            await asyncio.sleep(0)
        if worker.done():
            return worker.result()
        worker.cancel()
        return None

    return RUNNER.run(at_once(queue.take(lane)))


def test_waiting_counts_from_when_a_key_was_due() -> None:
    """A look that is due later does not count as waiting until then."""
    queue, clock = made()
    queue.add(A, delay=10)
    clock.now += 13
    assert take(queue) == A
    assert queue.waited(A) == 3


def test_a_key_is_taken_once() -> None:
    """This holds for any number of additions."""
    queue, _ = made()
    for _ in range(3):
        queue.add(A)
    assert take(queue) == A
    assert take(queue) is None


def test_a_closed_queue_keeps_nothing() -> None:
    """Otherwise a waiting replica would keep all keys."""
    queue, clock = made()
    queue.is_open = False
    queue.add(A)
    clock.now += 100
    assert (take(queue), queue.oldest(), queue.stands()) == (None, 0.0, 0.0)
    queue.is_open = True
    queue.add(B)
    assert take(queue) == B


def test_keys_are_taken_in_the_order_in_which_they_are_due() -> None:
    """The key that waits longest comes first."""
    queue, clock = made()
    queue.add(A, delay=3)
    queue.add(B, delay=1)
    queue.add(C, delay=2)
    assert take(queue) is None
    clock.now += 3
    assert [take(queue), take(queue), take(queue)] == [B, C, A]


def test_a_key_is_worked_on_by_one_worker_only() -> None:
    """A key that is added meanwhile is handled again after that."""
    queue, _ = made()
    queue.add(A)
    assert take(queue) == A
    queue.add(A)
    assert take(queue) is None
    queue.done(A)
    assert take(queue) == A
    queue.done(A)
    assert take(queue) is None


def test_the_sooner_of_two_times_counts() -> None:
    """Neither a later request nor a later look delays an earlier time."""
    queue, clock = made()
    queue.add(A, delay=1)
    queue.add(A, delay=60)
    clock.now += 1
    assert take(queue) == A
    queue.add(A, delay=5)
    queue.done(A, again=60)
    clock.now += 5
    assert take(queue) == A
    queue.add(A, delay=60)
    queue.done(A, again=5)
    clock.now += 5
    assert take(queue) == A


def test_a_key_that_is_done_is_forgotten() -> None:
    """The queue keeps nothing of it."""
    queue, _ = made()
    queue.add(A, lane=Lane.DELETION)
    assert take(queue, Lane.DELETION) == A
    queue.done(A, failed=True)
    queue.add(A)
    assert take(queue, Lane.DELETION) == A
    queue.done(A)
    assert (queue._lane_of, queue._failures, queue._again, queue._working) == ({}, {}, {}, {})


def test_failures_put_off_their_own_key_alone() -> None:
    """Each failure doubles the wait, up to the longest, and a success ends it."""
    queue, clock = made()
    waits = []
    for _ in range(12):
        queue.add(A)
        assert take(queue) == A
        queue.done(A, failed=True)
        queue.add(B)
        assert take(queue) == B
        queue.done(B)
        (waits_until,) = queue._lanes[Lane.NORMAL].at.values()
        waits.append(round(waits_until - clock.now, 3))
    assert waits[:4] == [FIRST_DELAY * 2**n for n in range(4)]
    assert waits[-1] == LONGEST_DELAY
    queue.add(A)
    assert take(queue) == A
    queue.done(A)
    queue.add(A)
    assert take(queue) == A
    queue.done(A, failed=True)
    assert queue._lanes[Lane.NORMAL].at == {A: clock.now + FIRST_DELAY}


def test_a_key_in_the_lane_of_deletions_does_not_wait_for_others() -> None:
    """A key that changes its lane keeps its place, and stays in the new lane."""
    queue, _ = made()
    queue.add(A)
    queue.add(B)
    queue.add(B, lane=Lane.DELETION)
    assert take(queue, Lane.DELETION) == B
    queue.done(B, again=0)
    assert take(queue, Lane.NORMAL) == A
    assert take(queue, Lane.NORMAL) is None
    assert take(queue, Lane.DELETION) == B


def test_a_key_that_is_worked_on_may_change_its_lane() -> None:
    """A resource that is deleted meanwhile goes on in the lane of deletions."""
    queue, _ = made()
    queue.add(A)
    assert take(queue) == A
    queue.add(A, lane=Lane.DELETION)
    queue.done(A)
    assert take(queue) is None
    assert take(queue, Lane.DELETION) == A


def test_the_queue_tells_how_long_it_makes_wait() -> None:
    """Waiting for a worker and being handled differ from waiting for a time."""
    queue, clock = made()
    assert (queue.oldest(), queue.depth(Lane.NORMAL)) == (0, 0)
    queue.add(A)
    queue.add(B, delay=60)
    clock.now += 7
    assert (queue.oldest(), queue.depth(Lane.NORMAL)) == (7, 1)
    take(queue)
    clock.now += 2
    assert (queue.oldest(), queue.depth(Lane.NORMAL)) == (0, 0)


def test_the_queue_tells_for_how_long_nothing_has_moved() -> None:
    """Neither a delayed key nor a slow one counts while others are done."""
    queue, clock = made()
    queue.add(C, delay=3600)
    clock.now += 1000
    assert queue.stands() == 0
    queue.add(A)
    queue.add(B)
    clock.now += 7
    assert queue.stands() == 7
    take(queue)
    assert queue.stands() == 0
    clock.now += 5
    assert queue.stands() == 5
    take(queue)
    queue.done(B)
    assert queue.stands() == 0
    clock.now += 9
    assert queue.stands() == 9
    queue.done(A)
    clock.now += 100
    assert queue.stands() == 0


def _many(namespace: str, count: int) -> list[Key]:
    return [Key("StreamStore", namespace, f"s{number}") for number in range(count)]


def test_namespaces_take_turns() -> None:
    """A namespace with little work does not wait for another one's work."""
    queue, clock = made()
    for key in _many("flood", 500):
        queue.add(key)
    clock.now += 1
    queue.add(A)
    assert A in {take(queue), take(queue)}


def test_no_namespace_takes_more_workers_than_it_leaves_free() -> None:
    """A worker stays free for another namespace's resource, however long the others take."""
    queue = WorkQueue(Clock(), workers={Lane.NORMAL: 8, Lane.DELETION: 2})
    flood = _many("flood", 500)
    for key in flood:
        queue.add(key)
    taken = [take(queue) for _ in range(8)]
    assert taken == [*flood[:4], None, None, None, None]
    queue.add(A)
    assert take(queue) == A
    assert take(queue) is None  # three workers are free, and the namespace already has four
    queue.add(flood[7], lane=Lane.DELETION)
    assert take(queue, Lane.DELETION) == flood[7]
    queue.done(flood[0])
    queue.done(A)
    assert [take(queue), take(queue)] == [flood[4], None]


def test_a_share_that_becomes_free_is_taken_by_who_waits_for_it() -> None:
    """A waiting worker is woken when another one of its namespace is done."""

    async def story() -> Key:
        queue = WorkQueue(workers={Lane.NORMAL: 2, Lane.DELETION: 2})
        queue.add(A)
        queue.add(B)
        assert await queue.take(Lane.NORMAL) == A
        waiting = asyncio.ensure_future(queue.take(Lane.NORMAL))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        queue.done(A)
        async with asyncio.timeout(10):
            return await waiting

    assert asyncio.run(story()) == B


def test_a_waiting_worker_is_woken_up() -> None:
    """An added key and a due key each wake one worker."""

    async def story() -> list[Key]:
        queue = WorkQueue()
        workers = [asyncio.ensure_future(queue.take(Lane.NORMAL)) for _ in range(3)]
        await asyncio.sleep(0)
        queue.add(A, delay=0.01)
        queue.add(B)
        queue.add(C, lane=Lane.DELETION)
        async with asyncio.timeout(10):
            done, left = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            more, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for worker in left:
            worker.cancel()
        return [worker.result() for worker in (*done, *more)]

    assert asyncio.run(story()) == [B, A]


@pytest.mark.parametrize("turns", range(3))
def test_workers_that_are_told_to_end_do(turns: int) -> None:
    """They end even if they are woken at the same moment, when the operator stops."""

    async def story() -> int:
        queue = WorkQueue()
        queue.add(A, delay=600)
        workers = [asyncio.ensure_future(queue.take(Lane.NORMAL)) for _ in range(3)]
        await asyncio.sleep(0)
        queue._lanes[Lane.NORMAL].changed.set()  # as at the end of another worker's look
        for _ in range(turns):
            await asyncio.sleep(0)
        for worker in workers:
            worker.cancel()
        _, left = await asyncio.wait(workers, timeout=60)
        for worker in left:
            worker.cancel()
        return len(left)

    assert asyncio.run(story()) == 0


class Queue(RuleBasedStateMachine):
    """A queue beside a plain account of due keys and their lanes."""

    keys = st.sampled_from([A, B, C])
    lanes = st.sampled_from([*Lane, None])

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.clock = made()
        self.due: dict[Key, float] = {}
        self.lane: dict[Key, Lane] = {}
        self.working: dict[Key, float | None] = {}

    @rule(key=keys, delay=st.sampled_from([0, 1, 5]), lane=lanes)
    def add(self, key: Key, delay: float, lane: Lane | None) -> None:
        """Add a key."""
        self.queue.add(key, delay=delay, lane=lane)
        at = self.clock.now + delay
        if lane is not None:
            self.lane[key] = lane
        if key in self.working:
            wish = self.working[key]
            self.working[key] = at if wish is None else min(wish, at)
        else:
            self.due[key] = min(at, self.due.get(key, at))

    @rule(lane=st.sampled_from(Lane))
    def take(self, lane: Lane) -> None:
        """Take a due key. Check that no other one is due for longer."""
        ready = {
            key: at
            for key, at in self.due.items()
            if at <= self.clock.now and self.lane.get(key, Lane.NORMAL) is lane
        }
        key = take(self.queue, lane)
        assert (key is None) == (not ready)
        if key is not None:
            assert ready[key] == min(ready.values())
            del self.due[key]
            self.working[key] = None

    @precondition(lambda self: self.working)
    @rule(data=st.data(), again=st.sampled_from([None, 0.0, 2.0]))
    def done(self, data: st.DataObject, again: float | None) -> None:
        """Finish the look at a key."""
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key, again=again)
        times = [self.working.pop(key), None if again is None else self.clock.now + again]
        wanted = [at for at in times if at is not None]
        if wanted:
            self.due[key] = max(min(wanted), self.clock.now)
        else:
            self.lane.pop(key, None)

    @rule(seconds=st.sampled_from([1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += seconds

    @invariant()
    def the_accounts_agree(self) -> None:
        """Check depths and ages, and that nothing is kept of finished keys."""
        now = self.clock.now
        waiting = [now - at for at in self.due.values() if at <= now]
        assert sum(self.queue.depth(lane) for lane in Lane) == len(waiting)
        assert self.queue.oldest() == max(waiting, default=0.0)
        assert set(self.queue._lane_of) <= {*self.due, *self.working}


def test_the_queue_does_what_a_plain_account_says() -> None:
    """Under any order of adding, taking and finishing, no key is lost, doubled or overtaken."""
    stateful.run_state_machine_as_test(
        Queue,
        settings=settings(
            max_examples=30,
            stateful_step_count=30,
        ),
    )
