"""Source streams in the model store, and drivers of their copies."""

import hashlib
import struct
from collections.abc import Sequence

from sluice.core.copy.plan import StreamPlan
from sluice.core.copy.planner import CopyRequest, Range, SourceRequest
from sluice.core.copy.steps import Done, Step, Transfer, Verify
from sluice.core.values.model import KeyRange, Segment, StreamConfig, StreamName
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.report import StreamReport
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import Executor, InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.work import Listener
from sluice.errors import SluiceError
from support.engine.plans import COPY, SOURCE, TARGET, whole_plan
from support.engine.runners import copy_runner
from support.model import (
    CREATION_TIME,
    EVENT_COUNT,
    ModelSegment,
    ModelStore,
    ModelStream,
    World,
    segment_name,
)

CHUNK = 16
REQUEST = CopyRequest(copy_id=COPY, sources=(SourceRequest(stream=SOURCE),), target=TARGET)


def request_of(*ranges: Range) -> CopyRequest:
    """Return a request to copy these parts of the source."""
    sources = (SourceRequest(stream=SOURCE, ranges=ranges),)
    return REQUEST.model_copy(update={"sources": sources})


def events_of(sizes: Sequence[int], seed: int = 0) -> bytes:
    """Return a segment's bytes: events of these sizes, with content that differs everywhere."""
    data = b""
    for number, size in enumerate(sizes):
        body = hashlib.sha256(f"{seed}/{number}".encode()).digest() * (size // 32 + 1)
        data += struct.pack(">ii", 0, size) + body[:size]
    return data


def put_source(
    world: World, *shapes: Sequence[int], name: StreamName = SOURCE, seed: int = 0
) -> list[bytes]:
    """Put a stream into the world, a segment for each list of event sizes. Return its bytes."""
    contents = [events_of(sizes, seed + number) for number, sizes in enumerate(shapes)]
    segments = []
    for i, data in enumerate(contents):
        world.time += 1
        world.segments[segment_name(name, i)] = ModelSegment(
            data=bytearray(data),
            attributes={CREATION_TIME: world.time, EVENT_COUNT: len(shapes[i])},
        )
        keys = KeyRange(low=i / len(contents), high=(i + 1) / len(contents))
        segments.append(Segment(id=i, keys=keys))
    world.streams[name] = ModelStream(StreamConfig(tags=("team=a",)), tuple(segments))
    return contents


def put_scaled_source(
    world: World,
    shapes: Sequence[Sequence[int]],
    moves: Sequence[tuple[str, int]],
    *,
    name: StreamName = SOURCE,
    seed: int = 0,
) -> list[bytes]:
    """Put a scaled and perhaps truncated stream into the world.

    Args:
        world: the world.
        shapes: event sizes of each segment, used in rotation. The first two are of the new stream.
        moves: "split" or "merge" at a place among the segments that take events, or "truncate".
        name: the stream's name.
        seed: number that sets the events' bytes. Streams with different seeds share no event.

    Returns:
        The bytes of each readable segment, in the order of scale events.
    """
    put_source(world, *shapes[:2], name=name, seed=seed)
    world.numbers[name] = len(world.streams[name].segments)
    stream = world.streams[name]
    for move, place in moves:
        active = stream.segments
        at = place % len(active)
        keys = active[at].keys
        middle = (keys.low + keys.high) / 2
        if move == "split":
            halves = [KeyRange(low=keys.low, high=middle), KeyRange(low=middle, high=keys.high)]
            world.replace(name, {active[at].id}, halves)
        elif move == "merge" and at + 1 < len(active):
            whole = KeyRange(low=keys.low, high=active[at + 1].keys.high)
            world.replace(name, {active[at].id, active[at + 1].id}, [whole])
        elif move == "truncate":
            world.truncate(name)
        else:
            continue
        if move != "truncate":
            for number, segment in enumerate(stream.made[-1]):
                sizes = shapes[(segment.id + number) % len(shapes)]
                there = world.segments[segment_name(name, segment.id)]
                there.data += events_of(sizes, seed + segment.id)
                there.attributes[EVENT_COUNT] = len(sizes)
    return world.bytes_of(name)


def planned(store: ModelStore, request: CopyRequest = REQUEST) -> StreamPlan:
    """Return the plan that a driver of this copy works on."""
    plan = resolve(request, [store], store).plan
    assert plan is not None
    return plan


def split(plan: StreamPlan, at: int = 2 * CHUNK) -> StreamPlan:
    """Return the plan with its segments divided into parts of `at` bytes."""
    segments = [
        segment.model_copy(
            update={"cuts": tuple(c for c in range(0, segment.end, at) if c > segment.start)}
        )
        for segment in plan.segments
    ]
    return plan.model_copy(update={"segments": tuple(segments)})


class ManualClock:
    """A clock whose time passes only during sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Return the time, in seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.slept.append(seconds)


class Heard:
    """A listener that records the steps and the retries."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.retries: list[tuple[str, float]] = []

    def step(self, copy: StreamCopyWork, step: Step) -> None:  # noqa: ARG002 - a listener has it
        """See Listener."""
        self.steps.append(type(step).__name__)

    def retry(self, copy: StreamCopyWork, error: SluiceError, delay: float) -> None:  # noqa: ARG002 - a listener has it
        """See Listener."""
        self.retries.append((error.reason, round(delay, 3)))


def copy_all(
    store: ModelStore,
    *plans: StreamPlan,
    target: ModelStore | None = None,
    executor: Executor | None = None,
    clock: ManualClock | None = None,
    listener: Listener | None = None,
    patience: float | None = None,
) -> list[StreamReport]:
    """Run these plans to their end in this thread."""
    runner = copy_runner(
        whole_plan(*plans),
        sources=[store],
        target=target or store,
        executor=executor or InlineExecutor([store], target or store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock or ManualClock(),
        listener=listener,
        patience=patience,
    )
    return runner.run()


BEFORE_PUBLISHING = 6
"""Number of steps before Publish: Claim, Bind, Stage, Transfer, Stitch, Verify."""


def drive(world: World, steps: int, request: CopyRequest = REQUEST) -> StreamCopyWork:
    """Return a driver that died after `steps` steps, with a look before each."""
    store = ModelStore(world)
    copy = StreamCopyWork(split(planned(store, request)), 0, [store], store)
    copy.plan = copy.journal.begin(copy.plan)
    for _ in range(steps):
        step = copy.look()
        if isinstance(step, Transfer | Verify):
            work = copy.slices(step, Limits(), 1)
            copy.absorb(step, InlineExecutor([store], store).run(work))
        else:
            copy.perform(step)
    return copy


def begun(world: World, request: CopyRequest, *, divided: bool = True) -> StreamCopyWork:
    """Return a driver that has recorded its plan, divided into parts if `divided` is set."""
    store = ModelStore(world)
    plan = planned(store, request)
    copy = StreamCopyWork(split(plan) if divided else plan, 0, [store], store)
    copy.plan = copy.journal.begin(copy.plan)
    return copy


def go(copy: StreamCopyWork, world: World, until: type[Step] = Done) -> Step:
    """Do all steps before the first of this kind, and return that step."""
    store = ModelStore(world)
    while not isinstance(step := copy.look(), until):
        if isinstance(step, Transfer | Verify):
            work = copy.slices(step, Limits(slice_bytes=2 * CHUNK), 1)
            copy.absorb(step, InlineExecutor([store], store).run(work))
        else:
            copy.perform(step)
    return step
