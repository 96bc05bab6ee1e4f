"""From the plan of a scope to a report: what `sluice run` and a driver pod do of a ScopeCopy."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from sluice.engine.scope.runner import ScopeRunner
from sluice.pipelines.programs.program import Stores
from sluice.pipelines.spark.rounds import LazyExecutor, SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.workloads.plan import Plan
    from sluice.engine.rounds.limits import Limits
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.scope.report import ScopeReport


def run_scope(
    plan: Plan,
    *,
    spark: Callable[[], SparkContext],
    settings: Settings,
    limits: Callable[[], Limits],
    listener: ScopeListener | None = None,
    patience: float | None = None,
    slots: Callable[[], int] | None = None,
    around: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> ScopeReport:
    """Run the plan of a scope to its end, or until nothing more can be done now.

    Args:
        plan: what to copy.
        spark: starts what large streams are copied in; called in this thread, once, and only if
            there are such.
        settings: of this process and the workers.
        limits: see ScopeRunner.
        listener: hears of every step and of every stream that ends, from many threads.
        patience: see CopyRunner; of each stream.
        slots: see SparkExecutor; not called before `spark`.
        around: see SparkExecutor; not called before `spark`.

    Returns:
        What came of each stream; failures are in it.

    Raises:
        SparkLost: the application is gone; the block that made it says what became of it.
        SluiceError: it did not start.
    """

    def executor() -> SparkExecutor:
        return SparkExecutor(
            spark(),
            sources=plan.sources,
            target=plan.target,
            settings=settings,
            slots=slots,
            around=around,
        )

    with Stores(settings) as stores, LazyExecutor(executor) as tasks:
        runner = ScopeRunner(
            plan,
            sources=[stores.place(source) for source in plan.sources],
            target=stores.place(plan.target),
            executor=tasks,
            limits=limits,
            listener=listener,
            patience=patience,
        )
        return runner.run()
