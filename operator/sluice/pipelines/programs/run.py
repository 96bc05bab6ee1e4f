"""Running a plan to its end, as the command line and drivers do."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.archive.formats.piece import OBJECT
from sluice.core.workloads.plan import ArchiveRunPlan, ScopeCopyPlan
from sluice.engine.archive.runner import ArchiveRunner
from sluice.engine.copy.runner import CopyRunner
from sluice.engine.rounds.dispatch import is_slow
from sluice.engine.rounds.executor import InlineExecutor, is_small, is_small_plan, is_small_run
from sluice.engine.rounds.throttle import RateLimiter
from sluice.engine.scope.runner import ScopeRunner
from sluice.pipelines.programs.archives import tidy
from sluice.pipelines.spark.rounds import LazyExecutor, SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

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
    """Where the tasks of a plan run.

    Attributes:
        spark: gives the application; called once, in the calling thread, and only if there is more
            to move than one process moves by itself.
        settings: of this process and the workers.
        slots, around: see SparkExecutor; not called before `spark`.
    """

    spark: Callable[[], SparkContext]
    settings: Settings
    slots: Callable[[], int] | None = None
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    def of(self, plan: Plan) -> LazyExecutor:
        """Give the executor of a plan, which ends with its block."""

        def executor() -> SparkExecutor:
            return SparkExecutor(
                self.spark(),
                sources=plan.sources,
                target=plan.target,
                settings=self.settings,
                slots=self.slots,
                around=self.around,
            )

        return LazyExecutor(executor)


def needs_tasks(plan: Plan, limits: Limits) -> bool:
    """Tell whether a plan will ask for tasks at these limits, so that they may be made ready."""
    if isinstance(plan, ArchiveRunPlan):
        return not (_is_small(plan) or is_slow(limits, OBJECT))
    if isinstance(plan, ScopeCopyPlan):
        return not (is_slow(limits) or all(is_small(one.bytes, limits) for one in plan.items))
    return not (is_small_plan(plan.bytes) or is_slow(limits))


def run_plan(
    plan: StreamCopyPlan,
    stores: Stores,
    tasks: Tasks,
    *,
    limits: Callable[[], Limits],
    listener: Listener | None = None,
    patience: float | None = None,
) -> list[StreamReport]:
    """Run the plan of a stream's copy to its end.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: what the copy may use; asked before every round, and by the bytes that this process
            moves.
        listener: hears of every step.
        patience: see CopyRunner.

    Returns:
        A report for each stream; failures are in them.

    Raises:
        SparkLost: the application is gone; the block that made it says what became of it.
        SluiceError: it did not start.
    """
    sources, target = [stores.source(one) for one in plan.sources], stores[plan.target]
    here = InlineExecutor(sources, target, pace=RateLimiter(lambda: limits().bytes_per_second))
    with tasks.of(plan) as executor:
        runner = CopyRunner(
            plan,
            sources=sources,
            target=target,
            executor=here if is_small_plan(plan.bytes) else executor,
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
    """Run the plan of a scope to its end, or until nothing more can be done now.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: see ScopeRunner.
        listener: hears of every step and of every stream that ends, from many threads.
        patience: see CopyRunner; of each stream.

    Returns:
        What came of each stream; failures are in it.

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
    """Run the plan of an archive's run to its end, and let go of runs that need not be kept.

    Args:
        plan: the plan.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: see `run_plan`.
        listener: hears of every step.
        patience: see Runner.
        retention: which runs are kept; asked when the run is recorded.

    Raises:
        SparkLost, SluiceError: see `run_plan`.
    """
    archive = plan.archive
    shelf, sources = stores.shelf(plan.target), [stores.source(one) for one in plan.sources]
    here = InlineExecutor(sources, shelf, pace=RateLimiter(lambda: limits().bytes_per_second))
    with tasks.of(plan) as executor:
        runner = ArchiveRunner(
            archive,
            sources=sources,
            shelf=shelf,
            executor=here if _is_small(plan) else executor,
            limits=limits,
            listener=listener,
            patience=patience,
            slow=here,
        )
        (report,) = runner.run()
    if report.error is None:
        tidy(shelf.archive(archive.path), retention(), maker=archive.maker)
    return report


def _is_small(plan: ArchiveRunPlan) -> bool:
    return is_small_run(plan.bytes, of_events=plan.archive.format.is_of_events)
