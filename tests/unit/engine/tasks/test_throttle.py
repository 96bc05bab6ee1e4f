"""Slices keep to a rate that changes meanwhile, by a clock that moves only while they wait."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from sluice.engine.slices.slices import CopySlice, VerifySlice
from sluice.engine.tasks.slices import run_slice
from sluice.engine.tasks.throttle import STEP, RateLimiter, Task
from support.model import ModelStore, World

KIB = 1 << 10
MIB = 1 << 20
SIZE = 200 * KIB
COPY = CopySlice(
    stream=0,
    segment=0,
    source="source",
    staging="staging",
    writer=UUID(int=9),
    origin=0,
    at=0,
    end=SIZE,
    limit=SIZE,
    whole=(0, SIZE),
    window=MIB,
)
VERIFY = VerifySlice(
    stream=0,
    segment=0,
    source="source",
    staging="source",
    origin=0,
    start=0,
    end=SIZE,
    limit=SIZE,
    known={},
)


@dataclass
class Clock:
    """A clock that moves only while a task waits."""

    now: float = 0.0

    def monotonic(self) -> float:
        """See engine.tasks.clock.Clock."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """See engine.tasks.clock.Clock."""
        assert seconds <= STEP
        self.now += max(seconds, 1e-6)


@pytest.fixture
def store() -> ModelStore:
    """Return a store with a source and an empty staging segment."""
    world = World()
    made = ModelStore(world, block=MIB)
    made.create("source")
    made.create("staging")
    world.segments["source"].data += bytes(SIZE)
    return made


def test_copying_takes_as_long_as_its_bytes_at_the_rate(store: ModelStore) -> None:
    """Bytes that are read ahead count when they are requested, so they come in no burst."""
    clock = Clock()
    task = Task(None, 1e9, RateLimiter(lambda: 10 * KIB, clock))
    assert run_slice(COPY, store, store, task).moved == SIZE
    assert clock.now == pytest.approx(20, rel=0.1)


def test_verifying_is_limited_as_well_and_what_is_read_again_of_the_source(
    store: ModelStore,
) -> None:
    """Unknown digests are made by reading the source, so twice the bytes are read."""
    clock = Clock()
    task = Task(None, 1e9, RateLimiter(lambda: 10 * KIB, clock))
    assert run_slice(VERIFY, store, store, task).moved == SIZE
    assert clock.now == pytest.approx(40, rel=0.1)


def test_a_new_limit_holds_in_the_midst_of_a_chunk(store: ModelStore) -> None:
    """At the lowest rate, a task notices the new limit within two steps of its wait."""
    clock = Clock()
    task = Task(None, 1e9, RateLimiter(lambda: KIB if clock.now < 10 else None, clock))
    assert run_slice(COPY, store, store, task).moved == SIZE
    assert clock.now <= 10 + 2 * STEP


class _Stopped(BaseException):
    """The signal that all work has to end."""


def test_who_waits_for_bytes_hears_that_all_is_to_end(store: ModelStore) -> None:
    """At any rate, the wait ends within one step."""
    clock = Clock()

    def rate() -> float:
        if clock.now >= 10:
            raise _Stopped
        return KIB

    with pytest.raises(_Stopped):
        run_slice(COPY, store, store, Task(None, 1e9, RateLimiter(rate, clock)))
    assert clock.now <= 10 + STEP
