"""Streams that a copy appends to, and their contents afterwards, in the model store."""

from collections.abc import Sequence

from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.copy.steps import Step
from sluice.core.values import identity
from sluice.core.values.model import Scaling, StreamConfig
from sluice.engine.copy.abort import finish_abort, sweep
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.clock import Clock
from sluice.engine.tasks.executor import InlineExecutor
from sluice.engine.tasks.limits import Limits
from support.engine.plans import COPY, SOURCE, TARGET, whole_plan
from support.engine.runners import copy_runner
from support.engine.sources import CHUNK, begun, events_of, go, split
from support.model import ModelStore, World, segment_name
from support.model.world import transaction_name

APPEND = CopyRequest(
    copy_id=COPY, sources=(SourceRequest(stream=SOURCE),), target=TARGET, append=True
)


def kept() -> set[str]:
    """Return the segments that stay beside the target: receipts, and the log of turns."""
    keys = [identity.receipt_key(APPEND.copy_id), identity.turns_key()]
    return {transaction_name(TARGET, 0, key) for key in keys}


def put_target(world: World, count: int, *, scaling: Scaling | None = None) -> None:
    """Put another user's stream into the world, with `count` segments and an event in each."""
    config = StreamConfig(scaling=scaling or Scaling(min_segments=count), tags=("team=b",))
    store = ModelStore(world)
    store.create_stream(TARGET, config.model_copy(update={"scaling": Scaling(min_segments=count)}))
    world.streams[TARGET].config = config
    for number in range(count):
        live_write(world, number, 0)


def live_write(world: World, place: int, number: int) -> bytes:
    """Append an event to a segment, as a live writer does, and return its bytes."""
    tail = world.streams[TARGET].segments
    segment = tail[place % len(tail)]
    data = events_of([20], seed=10_000 + 100 * number + place)
    world.segments[segment_name(TARGET, segment.id)].data += data
    return data


def appended(world: World, contents: Sequence[bytes]) -> list[int]:
    """Count each of these byte strings in the target's segments."""
    found = world.bytes_of(TARGET)
    return [sum(data.count(content) for data in found) for content in contents if content]


def driven(world: World, until: type[Step], request: CopyRequest = APPEND) -> StreamCopyWork:
    """Return a driver that died when a step of this kind was next."""
    copy = begun(world, request, divided=False)
    go(copy, world, until)
    return copy


def run_append(
    request: CopyRequest, store: ModelStore, clock: Clock, *, divided: bool = False
) -> object:
    """Run one driver of a copy from beginning to end, and return its outcome."""
    finish_abort(request.copy_id, TARGET, store)
    found = resolve(request, [store], store)
    if found.plan is None:
        sweep(request.copy_id, TARGET, store)
        return "complete before"
    plan = split(found.plan) if divided and not found.recorded else found.plan
    runner = copy_runner(
        whole_plan(plan),
        sources=[store],
        target=store,
        executor=InlineExecutor([store], store),
        limits=lambda: Limits(slice_bytes=2 * CHUNK),
        clock=clock,
    )
    (report,) = runner.run()
    return report.outcome if report.error is None else report.error.reason
