"""Copies by a chosen executor, whatever their size."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.ours import PATIENCE, SETTINGS, copied, planned
from sluice.engine.copy.stream_copy import StreamCopyWork
from sluice.engine.tasks.executor import ThreadExecutor
from sluice.engine.tasks.runner import Runner
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.spark.application import local_spark
from sluice.pipelines.spark.tasks import SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from bench.model import Source
    from bench.ours import Stopwatch
    from sluice.core.copy.planner import CopyRequest
    from sluice.core.workloads.plan import StreamCopyPlan
    from sluice.engine.tasks.executor import Executor
    from sluice.pipelines.programs.jobs import Job

    Place = Callable[[StreamCopyPlan, Stores], AbstractContextManager[Executor]]

SLOTS = 2
"""The number of tasks at once."""


@contextmanager
def threads(plan: StreamCopyPlan, stores: Stores) -> Iterator[Executor]:
    """Provide threads of this process, which `run_plan` uses for small plans."""
    sources = [stores.source(one) for one in plan.sources]
    with ThreadExecutor(sources, stores[plan.target], slots=SLOTS) as executor:
        yield executor


@contextmanager
def cold_spark(plan: StreamCopyPlan, stores: Stores) -> Iterator[Executor]:
    """Start a local Spark for the plan, as the command does for much data. Stop it afterwards."""
    del stores
    with local_spark(SLOTS) as context:
        yield SparkExecutor(context, sources=plan.sources, target=plan.target, settings=SETTINGS)


def copy(
    job: Job[CopyRequest], source: Source, place: Place, watch: Stopwatch | None = None
) -> None:
    """Copy, from planning to the end of the executor. Raise BenchError if that fails.

    Args:
        job: the copy.
        source: the source of the copy.
        place: function that provides the executor.
        watch: listener for each step.
    """
    with Stores(SETTINGS) as stores:
        plan = planned(job, stores)
        sources = [stores.source(one) for one in plan.sources]
        (stream,) = plan.streams
        work = StreamCopyWork(stream, 0, sources, stores[plan.target])
        with place(plan, stores) as executor:
            (report,) = Runner(
                [work],
                executor=executor,
                limits=lambda: job.limits,
                listener=watch,
                patience=PATIENCE,
            ).run()
    copied(report, source)
