"""Sluice's side: whole copies on a warm Spark application."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from bench import usage
from bench.lab import SCOPE
from bench.model import BenchError, Run, Source
from sluice.config import Settings
from sluice.core.copy.planner import PART_BYTES, CopyRequest, SourceRequest
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.engine.copy.report import Outcome, StreamReport
from sluice.engine.tasks.limits import Limits
from sluice.pipelines.programs.jobs import Job
from sluice.pipelines.programs.run import Tasks, run_plan
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.spark.application import local_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark import SparkContext

    from bench.lab import Lab
    from sluice.core.copy.steps import Step
    from sluice.core.scope.scope import StreamResult
    from sluice.engine.tasks.work import Work
    from sluice.errors import SluiceError

WARM_UP = Source(events=10_000, size=1000, segments=4)
"""The source that is copied before each run, because idle Python workers end after a minute."""

PATIENCE = 120.0
SETTINGS = Settings()


class Spark:
    """The Spark application of this process, restarted if another number of slots is wanted."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._context: SparkContext | None = None
        self._slots = 0

    def __enter__(self) -> Self:
        """Return the object. Spark starts with the first call of `context`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop Spark if it runs."""
        self._stack.close()

    def context(self, slots: int, *, fresh: bool = False) -> SparkContext:
        """Return an application with these slots; `fresh` means with new Python workers."""
        if self._context is None or fresh or slots != self._slots:
            self._stack.close()
            self._context = self._stack.enter_context(local_spark(slots))
            self._slots = slots
        return self._context

    @property
    def current(self) -> SparkContext:
        """The running application."""
        if self._context is None:
            raise BenchError("Spark was not started")
        return self._context

    @property
    def jvm(self) -> int:
        """The process id of the JVM. The Python workers are its descendants."""
        return int(self.current._gateway.proc.pid)  # type: ignore[union-attr]


class Stopwatch:
    """A listener that records when each step began."""

    def __init__(self) -> None:
        self.retries = 0
        self._marks: list[tuple[float, str]] = [(time.monotonic(), "Planning")]

    def step(self, copy: Work[Any, Any], step: Step) -> None:
        """Record the beginning of a step; see Listener."""
        del copy
        self._marks.append((time.monotonic(), type(step).__name__))

    def retry(self, copy: Work[Any, Any], error: SluiceError, delay: float) -> None:
        """Count a retry; see Listener."""
        del copy, error, delay
        self.retries += 1

    def ended(self, result: StreamResult) -> None:
        """Do nothing; see ScopeListener."""

    def joined(self, streams: Sequence[str]) -> None:
        """Do nothing; see ScopeListener."""

    def durations(self, end: float) -> dict[str, float]:
        """Return the seconds from the beginning of each step to that of the next step.

        They include the look that led to the next step.

        Args:
            end: monotonic time when the last step ended.
        """
        total: defaultdict[str, float] = defaultdict(float)
        begins = [begin for begin, _ in self._marks]
        for (begin, name), until in zip(self._marks, [*begins[1:], end], strict=True):
            total[name] += until - begin
        return dict(total)


def timed(spark: Spark, work: Callable[[Stopwatch], int]) -> Run:
    """Run and time some work on Spark.

    Args:
        spark: the Spark application.
        work: function that does the work and returns the number of processed bytes.
    """
    jvm = spark.jvm
    own, tree = usage.own_cpu_seconds(), usage.TreeClock(jvm)
    watch = Stopwatch()
    begin = time.monotonic()
    moved = work(watch)
    end = time.monotonic()
    return Run(
        seconds=end - begin,
        bytes=moved,
        cpu=usage.own_cpu_seconds() - own + tree.seconds,
        peak_rss=usage.peak_worker_rss(jvm),
        steps=watch.durations(end),
        retries=watch.retries,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sluice:
    """A copy by Sluice.

    Attributes:
        name: the side's name within its phase.
        source: the source of the copy.
        spark: the Spark application.
        slots: tasks at once.
        verify: whether staged bytes are compared before they are published.
        fresh: whether each run gets new Python workers, so that it alone accounts for their memory.
        part_bytes: size in bytes above which a segment is divided into parts.
    """

    name: str
    source: Source
    spark: Spark
    slots: int = 2
    verify: bool = True
    fresh: bool = False
    part_bytes: int = PART_BYTES

    def prepare(self, lab: Lab) -> None:
        """Start Spark and its workers, and let them open their connections."""
        lab.source(self.source)
        self.spark.context(self.slots, fresh=self.fresh)
        with lab.target(WARM_UP) as target:
            self._copy(lab, WARM_UP, target, Stopwatch())

    def run(self, lab: Lab, target: str) -> Run:
        """Copy, from planning to the target's last configuration."""
        return timed(self.spark, lambda watch: self._copy(lab, self.source, target, watch).bytes)

    def _copy(self, lab: Lab, source: Source, target: str, watch: Stopwatch) -> StreamReport:
        job = replace(self, source=source).job(lab, target)
        with Stores(SETTINGS) as stores:
            report = run_plan(
                planned(job, stores),
                stores,
                Tasks(spark=lambda: self.spark.current, settings=SETTINGS),
                limits=lambda: job.limits,
                listener=watch,
                patience=PATIENCE,
            )
        return copied(report, source)

    def job(self, lab: Lab, target: str) -> Job[CopyRequest]:
        """Return the job of the copy."""
        stream = StreamName(scope=SCOPE, stream=lab.source(self.source))
        return copy_job(
            lab.uri,
            stream,
            StreamName(scope=SCOPE, stream=target),
            verify=self.verify,
            part_bytes=self.part_bytes,
            tasks=self.slots,
        )


def copy_job(
    uri: str,
    source: StreamName,
    target: StreamName,
    *,
    tasks: int,
    verify: bool = True,
    part_bytes: int = PART_BYTES,
    limits: Limits | None = None,
) -> Job[CopyRequest]:
    """Return a copy within a store, as the command makes it from a file.

    Args:
        uri: the store's address.
        source: the stream to copy.
        target: the new stream.
        tasks: tasks at once.
        verify: whether staged bytes are compared before they are published.
        part_bytes: size in bytes above which a segment is divided into parts.
        limits: limits of the copy; the defaults if left out.
    """
    address = StoreAddress(uri=uri)
    request = CopyRequest(
        copy_id=uuid4().hex,
        sources=(SourceRequest(stream=source),),
        target=target,
        verify=verify,
        part_bytes=part_bytes,
        tasks=tasks,
    )
    return Job(
        name=target.stream,
        request=request,
        sources=(address,),
        target=address,
        limits=limits or Limits(),
    )


def planned(job: Job[CopyRequest], stores: Stores) -> StreamCopyPlan:
    """Return the plan of a copy. Raise BenchError if the target existed before."""
    plan = job.plan(stores).plan
    if not isinstance(plan, StreamCopyPlan):
        raise BenchError(f"{job.name} was there before")
    return plan


def copied(report: object, source: Source) -> StreamReport:
    """Return the report of a complete copy. Raise BenchError for an incomplete one."""
    if not isinstance(report, StreamReport):
        raise BenchError(f"a copy has a {type(report).__name__}")
    if report.outcome is not Outcome.COPIED or report.bytes != source.bytes:
        raise BenchError(f"a copy of {source} failed: {report.error or report.outcome}")
    return report
