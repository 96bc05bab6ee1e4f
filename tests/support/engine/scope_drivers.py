"""Scopes in the model store, and copies of them by threads."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import ClassVar, TypeVar

from sluice.core.copy.planner import CopyRequest, SourceRequest
from sluice.core.copy.steps import Step
from sluice.core.scope.scope import ScopePlan, StreamResult, StreamState
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.core.workloads.plan import Plan, ScopeCopyPlan
from sluice.engine.copy.planning import resolve
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.scope.listener import ScopeListener, SilentScope
from sluice.engine.scope.log import ScopeLog
from sluice.engine.scope.object_log import ScopeNotes
from sluice.engine.scope.report import ScopeReport
from sluice.engine.scope.runner import ScopeRunner
from sluice.engine.tasks.executor import Executor, InlineExecutor
from sluice.engine.tasks.limits import Limits
from sluice.engine.tasks.slices import Slice, SliceResult
from sluice.errors import SluiceError
from support.engine.executors import Relay, failed
from support.engine.plans import ADDRESS
from support.engine.sources import put_source
from support.model import CREATION_TIME, ModelStore, World, segment_name

T = TypeVar("T")

SCOPE_ID = "5c" * 16
MANY = 24
"""Number of streams of a large scope."""


class SharedStore(ModelStore):
    """A model store for several threads: a call's action is atomic, its gate is not."""

    _lock: ClassVar = threading.Lock()

    def _call(self, what: str, action: Callable[[], T]) -> T:
        def act() -> T:
            with self._lock:
                return action()

        return super()._call(what, act)


def source_name(number: int) -> StreamName:
    """Return the name of a source."""
    return StreamName(scope="in", stream=f"s{number:03}")


def target_name(number: int) -> StreamName:
    """Return the name of a target."""
    return StreamName(scope="out", stream=f"s{number:03}")


def put_scope(world: World, *shapes: Sequence[Sequence[int]]) -> list[list[bytes]]:
    """Put streams with these events in each segment into scope `in`, and return their bytes."""
    return [
        put_source(world, *segments, name=source_name(number), seed=100 * number)
        for number, segments in enumerate(shapes)
    ]


def write_at_once(logs: Sequence[ScopeLog | ScopeNotes], plan: Plan) -> None:
    """Write results to a log, with a thread for each stream and through several drivers in turn."""
    for one in logs:
        one.begin(plan)
    threads = [
        threading.Thread(target=logs[n % len(logs)].ended, args=({n: copied(n)},))
        for n in range(len(plan.items))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def copied(number: int, size: int = 0) -> StreamResult:
    """Return the result of a copied stream."""
    name = source_name(number).stream
    return StreamResult(stream=name, target=name, state=StreamState.COPIED, bytes=size)


def scope_plan(
    store: ModelStore,
    numbers: Sequence[int],
    *,
    run: int = 1,
    settled: tuple[StreamResult, ...] = (),
    move: bool = False,
    make_scope: bool = False,
) -> Plan:
    """Return the plan to copy these streams into scope `out`, in this order."""
    plans = []
    for number in numbers:
        name = source_name(number)
        request = CopyRequest(
            copy_id=identity.stream_copy_id(SCOPE_ID, name.stream),
            sources=(SourceRequest(stream=name),),
            target=target_name(number),
            move=move,
        )
        plan = resolve(request, [store], store).plan
        assert plan is not None
        plans.append(plan)
    scope = ScopePlan(
        scope_id=SCOPE_ID,
        source="in",
        target="out",
        make_scope=make_scope,
        run=run,
        begin=1,
        end=2,
        settled=settled,
        move=move,
    )
    return ScopeCopyPlan(sources=(ADDRESS,), target=ADDRESS, streams=tuple(plans), scope=scope)


class Tasks(Relay):
    """An executor that records its slices, and the threads that asked for them.

    Args:
        store: the store of source and target.
        broken: errors of the first slices.
    """

    def __init__(self, store: ModelStore, broken: Sequence[SluiceError] = ()) -> None:
        super().__init__(InlineExecutor([store], store), slots=2)
        self.slices: list[Slice] = []
        self.threads: set[str] = set()
        self._broken = list(broken)

    @property
    def streams(self) -> set[int]:
        """The numbers of the streams that had slices."""
        return {work.stream for work in self.slices}

    def submit(self, work: Slice) -> Future[SliceResult]:
        """See Executor."""
        self.threads.add(threading.current_thread().name)
        if self._broken:
            return failed(self._broken.pop(0))
        self.slices.append(work)
        return super().submit(work)


class InWork(SilentScope):
    """A listener that counts the streams in work, and records those that have ended."""

    def __init__(self, linger: float = 0.0) -> None:
        self.results: list[StreamResult] = []
        self.begun: list[int] = []
        self.most = 0
        self._linger = linger
        self._lock = threading.Lock()

    def step(self, copy: StreamCopyWork, step: Step) -> None:  # noqa: ARG002 - a listener has it
        """See Listener."""
        with self._lock:
            if copy.number not in self.begun:
                self.begun.append(copy.number)
                self.most = max(self.most, len(self.begun) - len(self.results))
        time.sleep(self._linger)

    def ended(self, result: StreamResult) -> None:
        """See ScopeListener."""
        with self._lock:
            self.results.append(result)


def copy_scope(
    plan: Plan,
    store: ModelStore,
    *,
    target: ModelStore | None = None,
    executor: Executor | None = None,
    limits: Callable[[], Limits] | Limits | None = None,
    listener: ScopeListener | None = None,
    patience: float | None = 0.2,
) -> ScopeReport:
    """Run the plan of a scope as a driver does, all in this process."""
    asked = limits if callable(limits) else lambda: limits or Limits()
    runner = ScopeRunner(
        plan,
        sources=[store],
        target=target or store,
        executor=executor or InlineExecutor([store], target or store),
        limits=asked,
        listener=listener,
        patience=patience,
    )
    return runner.run()


def damage(world: World, number: int) -> None:
    """Change a source's creation time, as if the source had been made again."""
    world.segments[segment_name(source_name(number), 0)].attributes[CREATION_TIME] = 5


def log(store: SharedStore) -> ScopeLog:
    """Return another driver's view of the log."""
    return ScopeLog(store, SCOPE_ID, "out")


def states(results: tuple[StreamResult, ...]) -> Counter[str]:
    """Count the streams in each state."""
    return Counter(str(result.state) for result in results)
