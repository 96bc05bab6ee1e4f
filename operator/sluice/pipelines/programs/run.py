"""Run a plan to its end, for the command line and for drivers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.archive.formats.piece import OBJECT
from sluice.core.workloads.plan import ArchiveRunPlan, ScopeCopyPlan
from sluice.engine.archive.runner import ArchiveRunner
from sluice.engine.copy.runner import CopyRunner
from sluice.engine.rounds.executor import ThreadExecutor, is_small, is_small_plan, is_small_run
from sluice.engine.rounds.scheduler import is_slow
from sluice.engine.scope.runner import ScopeRunner
from sluice.pipelines.programs.archives import tidy
from sluice.pipelines.spark.tasks import LazyExecutor, SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.archive.retention import Retention
    from sluice.core.workloads.plan import Plan, StreamCopyPlan
    from sluice.engine.archive.report import ArchiveReport
    from sluice.engine.copy.report import StreamReport
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.rounds.work import Listener
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.scope.report import ScopeReport
    from sluice.pipelines.programs.program import Stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The Spark application that runs a plan's tasks. It is started only if the plan needs tasks.

    Attributes:
        spark: starts the application and returns its context. It is called once, in the calling
            thread, and only if there is more to move than one process moves by itself.
        settings: settings of this process and of the workers.
        threads: tasks at once in this process, for bytes that it moves by itself.
        elsewhere: whether tasks run in executors. These then move the bytes of small copies, too.
        slots, check: see SparkExecutor; not called before `spark`.
    """

    spark: Callable[[], SparkContext]
    settings: Settings
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    elsewhere: bool = False
    slots: Callable[[], int] | None = None
    check: Callable[[], None] = lambda: None

    def of(self, plan: Plan) -> LazyExecutor:
        """Return an executor for a plan, to be used as a context manager."""

        def executor() -> SparkExecutor:
            return SparkExecutor(
                self.spark(),
                sources=plan.sources,
                target=plan.target,
                settings=self.settings,
                slots=self.slots,
                check=self.check,
            )

        return LazyExecutor(executor)


def needs_spark(plan: Plan, limits: Limits, *, elsewhere: bool = False) -> bool:
    """Tell whether a plan will need Spark at these limits, so that it can be started early.

    Args:
        plan: the plan.
        limits: the present limits.
        elsewhere: see Tasks.
    """
    if isinstance(plan, ArchiveRunPlan):
        return not (_is_small(plan) or is_slow(limits, OBJECT))
    if isinstance(plan, ScopeCopyPlan):
        return not (is_slow(limits) or all(is_small(one.bytes, limits) for one in plan.items))
    return elsewhere or not (is_small_plan(plan.bytes) or is_slow(limits))


def run_plan(
    plan: StreamCopyPlan,
    stores: Stores,
    tasks: Tasks,
    *,
    limits: Callable[[], Limits],
    listener: Listener | None = None,
    patience: float | None = None,
) -> list[StreamReport]:
    """Run the plan of a StreamCopy to its end.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: returns the current limits. It is called several times a second.
        listener: is told of every step.
        patience: see CopyRunner.

    Returns:
        A report for each stream; failures are in the reports.

    Raises:
        SparkLost: the Spark application is gone. At the end of its block, `Application` raises the
            error that says why.
        SluiceError: Spark did not start.
    """
    sources, target = [stores.source(one) for one in plan.sources], stores[plan.target]
    with tasks.of(plan) as executor, ThreadExecutor(sources, target, slots=tasks.threads) as here:
        runner = CopyRunner(
            plan,
            sources=sources,
            target=target,
            executor=here if is_small_plan(plan.bytes) and not tasks.elsewhere else executor,
            limits=limits,
            listener=listener,
            patience=patience,
            slow=here,
        )
        return runner.run()


def run_scope(
    plan: ScopeCopyPlan,
    stores: Stores,
    tasks: Tasks,
    *,
    limits: Callable[[], Limits],
    listener: ScopeListener | None = None,
    patience: float | None = None,
) -> ScopeReport:
    """Run the plan of a ScopeCopy to its end, or until nothing more can be done now.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: see ScopeRunner.
        listener: is told of every step and of every stream that ends, by many threads.
        patience: see CopyRunner; it holds for each stream.

    Returns:
        The report with the result of each stream; failures are in it.

    Raises:
        SparkLost, SluiceError: see `run_plan`.
    """
    with tasks.of(plan) as executor:
        runner = ScopeRunner(
            plan,
            sources=[stores.place(source) for source in plan.sources],
            target=stores.place(plan.target),
            executor=executor,
            limits=limits,
            listener=listener,
            patience=patience,
        )
        return runner.run()


def run_archive(
    plan: ArchiveRunPlan,
    stores: Stores,
    tasks: Tasks,
    *,
    limits: Callable[[], Limits],
    retention: Callable[[], Retention],
    listener: Listener | None = None,
    patience: float | None = None,
) -> ArchiveReport:
    """Run the plan of an archive's run to its end, then apply the retention policy.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: see `run_plan`.
        retention: returns which runs are kept; called after the run is recorded.
        listener: is told of every step.
        patience: see Runner.

    Returns:
        The report; a failure is in it.

    Raises:
        InvalidSpec: the plan archives nothing.
        SparkLost, SluiceError: see `run_plan`.
    """
    archive = plan.archive
    root, sources = stores.root(plan.target), [stores.source(one) for one in plan.sources]
    with tasks.of(plan) as executor, ThreadExecutor(sources, root, slots=tasks.threads) as here:
        runner = ArchiveRunner(
            archive,
            sources=sources,
            root=root,
            executor=here if _is_small(plan) else executor,
            limits=limits,
            listener=listener,
            patience=patience,
            slow=here,
        )
        (report,) = runner.run()
    if report.error is None:
        tidy(root.archive(archive.path), retention(), maker=archive.maker)
    return report


def _is_small(plan: ArchiveRunPlan) -> bool:
    return is_small_run(plan.bytes, of_events=plan.archive.format.is_of_events)
