"""Run a plan to its end, for the command line and for drivers."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog

from sluice.archive.formats.piece import OBJECT
from sluice.core.archive.retention import Retention
from sluice.core.events.digest import CHUNK
from sluice.core.follow.catching_up import Staging
from sluice.core.scope.scope import StreamState
from sluice.core.workloads.plan import ArchiveRunPlan, ScopeCopyPlan, StreamCopyPlan
from sluice.engine.access import parallel
from sluice.engine.access.source_runs import live, root
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.copy.report import StreamReport
from sluice.engine.scope.report import ScopeReport
from sluice.engine.tasks.executor import (
    INLINE_EVENTS,
    INLINE_RUN,
    SizedExecutor,
    ThreadExecutor,
    is_small,
)
from sluice.engine.tasks.runner import Runner
from sluice.engine.tasks.scheduler import is_slow
from sluice.errors import InvalidSpec, SluiceError
from sluice.pipelines.programs.step_spans import step_spans
from sluice.pipelines.spark.tasks import LazyExecutor, SparkExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from pyspark import SparkContext

    from sluice.archive.runs.archive import Archive
    from sluice.config import Settings
    from sluice.core.archive.manifest import Maker
    from sluice.core.values.wish import Wish
    from sluice.core.workloads.plan import Plan
    from sluice.engine.access.source_runs import Place
    from sluice.engine.scope.listener import ScopeListener
    from sluice.engine.scope.runner import ScopeRunner
    from sluice.engine.tasks.executor import Executor
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.tasks.work import Work
    from sluice.pipelines.programs.stores import Stores
    from sluice.stores.base import Source

_log = structlog.get_logger()

_NOT_YET: Final = "runs are not let go yet"

Report = StreamReport | ScopeReport | ArchiveReport
"""The report of a plan that was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The Spark application that runs a plan's tasks. It is started only if the plan needs tasks.

    Attributes:
        spark: starts the application and returns its context. It is called once, in the calling
            thread, and only if there is more to move than one process moves by itself.
        settings: settings of this process and of the workers.
        threads: tasks at once in this process, for bytes that it moves by itself.
        elsewhere: whether tasks run in executors. These then move the bytes of small copies, too.
        here: whether this process moves all bytes of a single stream, however many they are.
        slots, check: see SparkExecutor; not called before `spark`.
    """

    spark: Callable[[], SparkContext]
    settings: Settings
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    elsewhere: bool = False
    here: bool = False
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


def needs_spark(plan: Plan, limits: Limits, settings: Settings, *, elsewhere: bool = False) -> bool:
    """Tell whether a plan will need Spark at these limits, so that it can be started early.

    Args:
        plan: the plan.
        limits: the present limits.
        settings: of this process.
        elsewhere: see Tasks.
    """
    if isinstance(plan, ScopeCopyPlan):
        return not (is_slow(limits) or all(is_small(one.bytes, limits) for one in plan.items))
    here = _is_here(plan, plan.bytes, settings, elsewhere=elsewhere)
    return not (here or is_slow(limits, _unit(plan)))


def run_plan(
    plan: Plan,
    stores: Stores,
    tasks: Tasks,
    *,
    limits: Callable[[], Limits],
    retention: Callable[[], Retention] = Retention,
    listener: ScopeListener | None = None,
    patience: float | None = None,
    wish: Wish | None = None,
    key: str = "",
    until_live: bool = False,
) -> Report:
    """Run a plan to its end, or until nothing more can be done now.

    A driver has a plan and no request. So the work follows from the plan, not from a workload.

    Args:
        plan: the plan, of any kind.
        stores: the stores, which stay open.
        tasks: where tasks run.
        limits: returns the current limits. It is called several times a second.
        retention: returns which runs of an archive are kept; called after the runs are recorded.
        listener: is told of every step; of a scope's streams by many threads.
        patience: see Runner; for a scope it holds for each stream.
        wish: how a copy that follows its source is to end; see FollowedTarget.
        key: the key of wishes; see FollowedTarget.
        until_live: whether a copy that follows its source ends where that begins, or where it is
            near again.

    Returns:
        The report; a failure is in it.

    Raises:
        InvalidSpec: the plan is of no kind that can be run.
        SparkLost: the Spark application is gone. At the end of its block, `Application` raises the
            error that says why.
        SluiceError: Spark did not start.
    """
    target = stores.place(plan.target)
    with tasks.of(plan) as executor, step_spans(plan, listener) as traced:
        if isinstance(plan, ScopeCopyPlan):
            places = [stores.place(one) for one in plan.sources]
            with ExitStack() as opened:
                mover: Executor = executor
                if _is_followed_here(plan, tasks) and (tasks.here or not until_live):
                    here = ThreadExecutor(
                        [live(one) for one in places], target, slots=tasks.threads
                    )
                    mover = opened.enter_context(here)
                scope = _scope_runner(
                    plan,
                    {"wish": wish, "key": key},
                    staging=_staging(tasks),
                    until_live=until_live,
                    sources=places,
                    target=target,
                    executor=mover,
                    limits=limits,
                    listener=traced,
                    patience=patience,
                ).run()
            _tidy_all(scope, target, retention(), limits)
            return scope
        sources = [stores.source(one) for one in plan.sources]
        how = {"limits": limits, "key": key, "staging": _staging(tasks)}
        work = (
            _first_leg(plan, sources, target, **how)
            if until_live
            else _work(plan, sources, target, wish=wish, **how)
        )
        with ThreadExecutor(sources, target, slots=tasks.threads) as here:
            (report,) = Runner(
                [work],
                executor=SizedExecutor(here, executor, lambda: _is_moved_here(work, plan, tasks)),
                limits=limits,
                listener=traced,
                patience=patience,
                slow=here,
                unit=_unit(plan),
            ).run()
    if isinstance(plan, ArchiveRunPlan) and report.error is None:
        _tidy(root(target).archive(plan.archive.path), retention(), plan.archive.maker)
    return report


def _staging(tasks: Tasks) -> Staging | None:
    """Return how copies catch up that are far behind; None where only one process moves bytes."""
    settings = tasks.settings
    if tasks.here:
        return None
    return Staging(settings.far_bytes, tasks.threads, settings.part_bytes)


def _is_moved_here(work: Work[Any, Any], plan: Plan, tasks: Tasks) -> bool:
    """Tell whether this process moves the bytes that the work on a single stream has now.

    A copy that follows its source has others later on than its plan: those of a catch-up.
    """
    here = _is_here(plan, work.moving, tasks.settings, elsewhere=tasks.elsewhere)
    return tasks.here or here


def _is_followed_here(plan: ScopeCopyPlan, tasks: Tasks) -> bool:
    """Tell whether this process moves the bytes of a scope that is followed by itself.

    Spark is for its first leg, if that is large. What joins later is copied where that was.
    """
    here = tasks.here or _is_here(plan, plan.bytes, tasks.settings, elsewhere=tasks.elsewhere)
    return plan.follows and here


def _scope_runner(
    plan: ScopeCopyPlan,
    wishes: Mapping[str, Any],
    *,
    staging: Staging | None,
    until_live: bool,
    **how: Any,
) -> ScopeRunner:
    """Return what runs the plan of a scope.

    Args:
        plan: the plan.
        wishes: `wish` and `key` as in `run_plan`, for a scope that is followed.
        staging: how streams catch up that are far behind, in a driver that ends then.
        until_live: as in `run_plan`.
        how: further arguments of the runner.

    Raises:
        InvalidSpec: the plan follows no source, and is to be carried out up to there.
    """
    # What only one kind needs is imported where it is used: a driver runs one plan.
    if until_live:
        from sluice.engine.scope.following.first_leg import FirstLegRunner  # noqa: PLC0415

        return FirstLegRunner(plan, staging=staging, **how)
    if plan.follows:
        from sluice.engine.scope.following.runner import FollowRunner  # noqa: PLC0415

        return FollowRunner(plan, **wishes, **how)
    from sluice.engine.scope.runner import ScopeRunner  # noqa: PLC0415

    return ScopeRunner(plan, **how)


def _work(
    plan: Plan, sources: Sequence[Source], target: Place, **how: Any
) -> Work[Any, StreamReport | ArchiveReport]:
    """Return the work of a plan of a single stream.

    Args:
        plan: the plan.
        sources: the stores to read from.
        target: the store to write to.
        how: how a source is followed; see `FollowWork`.

    Raises:
        InvalidSpec: the plan is of no kind that can be run.
    """
    match plan:
        case ArchiveRunPlan():
            from sluice.engine.archive.archive_run import ArchiveCopy  # noqa: PLC0415 - see run_plan

            archive = root(target).archive(plan.archive.path)
            return ArchiveCopy(plan.archive, sources, archive)
        case StreamCopyPlan(streams=(stream,)) if stream.follow:
            from sluice.engine.follow.work import FollowWork  # noqa: PLC0415 - see run_plan

            return FollowWork(stream, sources, live(target), **how)
        case StreamCopyPlan(streams=(stream,)):
            from sluice.engine.copy.stream_copy import StreamCopyWork  # noqa: PLC0415 - see run_plan

            return StreamCopyWork(stream, 0, sources, live(target))
        case _:
            raise InvalidSpec(
                f"no driver carries out a {type(plan).__name__}",
                remedy="Delete the plan; it is made anew.",
            )


def _first_leg(
    plan: Plan, sources: Sequence[Source], target: Place, **how: Any
) -> Work[Any, StreamReport | ArchiveReport]:
    """Return the work of a plan up to where a source is followed.

    Args:
        plan: the plan.
        sources: the stores to read from.
        target: the store to write to.
        how: how it is followed; see `FollowWork`.

    Raises:
        InvalidSpec: the plan follows no source.
    """
    from sluice.engine.follow.until_near import UntilNear  # noqa: PLC0415 - see run_plan

    stream = plan.streams[0] if len(plan.streams) == 1 else None
    if stream is None or not stream.follow:
        raise InvalidSpec(
            "the plan follows no source, and has no first leg", remedy="Leave out --until-live."
        )
    return UntilNear(stream, sources, live(target), **how)


def _is_here(plan: Plan, size: int, settings: Settings, *, elsewhere: bool) -> bool:
    """Tell whether this process moves so many bytes of a single stream's plan by itself."""
    if isinstance(plan, ArchiveRunPlan):
        return is_small(
            size, most=INLINE_EVENTS if plan.archive.format.is_of_events else INLINE_RUN
        )
    return is_small(size, most=settings.spark_bytes) and not elsewhere


def _unit(plan: Plan) -> int:
    """Return the bytes after which a task of a single stream's plan can end."""
    return OBJECT if isinstance(plan, ArchiveRunPlan) else CHUNK


def _tidy_all(
    report: ScopeReport, target: Place, retention: Retention, limits: Callable[[], Limits]
) -> None:
    """Apply the retention policy to the archives that this plan of a scope has added a run to.

    Archives of streams that are gone, or that have failed, keep all of their runs. The runs of the
    scope's last complete run stay until the record of a newer one replaces it: this plan's own run
    has no record yet. Where no rule is given, nothing is done: a scope that is archived once leaves
    no runs to remove. If the records cannot be read, nothing is done; the next run tries again.

    Args:
        report: the result of the plan.
        target: the place of the archives.
        retention: which runs are kept.
        limits: called between some archives, since it raises if the driver has to stop.
    """
    if not retention.has_rule:
        return
    from sluice.engine.scope.recorded_runs import needed_runs  # noqa: PLC0415 - see run_plan

    try:
        named = needed_runs(report.plan.scope, target)
    except SluiceError as error:
        _log.warning(_NOT_YET, reason=error.reason, error=str(error))
        return
    archived = {one.stream for one in report.results if one.state is StreamState.COPIED}
    runs = [one for one in report.plan.runs if one.name in archived]
    for batch in parallel.batches(runs, parallel.AT_ONCE):
        limits()
        parallel.each(
            lambda run: _tidy(root(target).archive(run.path), retention, run.maker, named), batch
        )


def _tidy(
    archive: Archive, retention: Retention, maker: Maker | None, named: Container[str] = ()
) -> None:
    """Apply the retention policy and delete unreferenced objects.

    Failures are logged only, since the run itself is recorded. The next run tries again.

    Args:
        archive: the archive.
        retention: which runs are kept.
        maker: the resource that makes the runs, for the lease; None if there is none.
        named: the SHA-256 of the manifests of runs that stay in any case.
    """
    from sluice.engine.archive.retention import retain  # noqa: PLC0415 - see run_plan

    try:
        done = retain(archive, retention, maker=None if maker is None else maker.id, named=named)
    except SluiceError as error:
        _log.warning(_NOT_YET, reason=error.reason, error=str(error))
        return
    if done.let_go or done.swept is not None:
        _log.info(
            "runs let go",
            runs=done.let_go,
            objects=done.swept.objects if done.swept else 0,
            bytes=done.swept.bytes if done.swept else 0,
        )
