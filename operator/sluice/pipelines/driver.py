"""What a driver pod does: runs one plan to its end and says how it ended.

The operator makes the plan and judges the result; a driver works on what it is given and asks the
API server for nothing. It may come late: to a copy that another driver has finished, or whose abort
was cut off. Both are seen in the target store.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import structlog
from pydantic import ValidationError

from sluice.core.plan import Plan
from sluice.core.trouble import Trouble
from sluice.engine.abort import finish_abort, sweep
from sluice.engine.ledger import Ledger
from sluice.engine.planning import check_plan
from sluice.errors import Category, InvalidSpec, SluiceError
from sluice.pipelines import sparkconf, termination
from sluice.pipelines.application import Application
from sluice.pipelines.controls import Controls
from sluice.pipelines.kubernetes import Crew, own_pod, read_template
from sluice.pipelines.program import Stores, run_plan
from sluice.pipelines.sparkconf import Executors
from sluice.pipelines.stopping import Stop, Terminated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.plan import StreamPlan
    from sluice.core.steps import Step
    from sluice.engine.report import StreamReport
    from sluice.engine.stream import Limits, StreamCopy
    from sluice.stores.base import Store

_log = structlog.get_logger()

INTERRUPTED = Trouble(
    reason="Interrupted",
    category=Category.INFRASTRUCTURE,
    message="the driver was told to stop before the copy was complete",
    remedy="Nothing has to be done: the next attempt goes on where this one stopped.",
    retryable=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """How to run the plan.

    Attributes:
        plan: file with the plan's JSON.
        controls: file with the limits, see Controls.
        slots: tasks at once in this process, without executors.
        executors: how many pods the tasks run in; 0 to run them in this process.
        executor_template: the template of their pods.
        executor_heap: bytes of each one's JVM.
        executor_cores: tasks at once in each.
        spark: settings that the administrator adds.
        patience: see CopyRunner.
        termination_log: file for the termination message.
    """

    plan: Path
    controls: Path | None = None
    slots: int = 2
    executors: int = 0
    executor_template: Path | None = None
    executor_heap: int = 512 << 20
    executor_cores: int = 1
    spark: Mapping[str, str] = field(default_factory=dict)
    patience: float | None = None
    termination_log: Path | None = None


def drive(options: DriverOptions, settings: Settings) -> Trouble | None:
    """Run a plan to its end, and leave a termination message.

    Returns:
        Why it failed; None when every stream of the plan is copied.

    Raises:
        Terminated: SIGTERM came; Spark is stopped.
        Exception: an error of Sluice itself.
    """
    _log.info("driver started")
    try:
        trouble = _drive(options, settings)
    except Terminated:
        termination.write(options.termination_log, INTERRUPTED)
        raise
    except Exception as error:
        termination.write(options.termination_log, _bug(error))
        raise
    termination.write(options.termination_log, trouble)
    _log.info("driver ended")
    return trouble


def _drive(options: DriverOptions, settings: Settings) -> Trouble | None:
    try:
        plan = read_plan(options.plan)
        controls = Controls(options.controls)
        configuration, executors = _configuration(options)
        with (
            Stop() as stop,
            Application(configuration) as application,  # starts while the store is asked
            Stores(settings) as stores,
        ):
            if all(_settled(stream, stores[plan.target]) for stream in plan.streams):
                return None

            def limits() -> Limits:
                stop.check()
                return controls()

            context = application.start()
            _log.info("spark started", slots=options.slots, executors=options.executors)
            crew: Crew | None = None
            if executors is not None:
                crew = Crew(context, executors, settings.executor_timeout, check=stop.check)
                crew.wait()
                _log.info("executors are there", slots=crew.slots())
            reports = run_plan(
                plan,
                context,
                settings=settings,
                limits=limits,
                listener=Journalist(),
                patience=options.patience,
                slots=None if crew is None else crew.slots,
                around=partial(_round, stop, context, crew),
            )
            trouble = _outcome(reports)
    except SluiceError as error:
        trouble = Trouble.of(error)
    if trouble is not None:
        _log.error("failed", **trouble.model_dump(mode="json", exclude_none=True))
    return trouble


@contextmanager
def _round(stop: Stop, context: SparkContext, crew: Crew | None) -> Iterator[None]:
    """The block in which a round runs: it ends early at SIGTERM, or when nobody is there for it."""
    with ExitStack() as stack:
        stack.enter_context(stop.cancelling(context.cancelAllJobs))
        if crew is not None:
            stack.enter_context(crew.watched())
        yield


def _configuration(options: DriverOptions) -> tuple[dict[str, str], Executors | None]:
    """Spark's configuration, and the executors if tasks run in pods of their own."""
    if not options.executors:
        return sparkconf.local(options.slots, options.spark), None
    if options.executor_template is None:
        raise InvalidSpec(
            "executors need a template for their pods", remedy="Give --executor-template."
        )
    executors = Executors(
        count=options.executors,
        cores=options.executor_cores,
        heap=options.executor_heap,
        template=read_template(options.executor_template),
        pod=own_pod(),
    )
    return sparkconf.kubernetes(executors, options.spark), executors


def read_plan(path: Path) -> Plan:
    """The plan of a file.

    Raises:
        InvalidSpec: it cannot be read or is no plan that this version understands.
    """
    try:
        return Plan.model_validate_json(path.read_bytes())
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    raise InvalidSpec(
        f"{path} is no plan: {reason}", remedy="Delete the damaged plan; it is made anew."
    )


def _settled(stream: StreamPlan, store: Store) -> bool:
    """Whether a stream's copy is complete already; then late drivers' leftovers are deleted.

    An abort that was cut off is finished, so that the copy can begin anew. What the store refuses
    for the moment is left to the run, which is patient.
    """
    try:
        if finish_abort(stream.copy_id, stream.target, store):
            _log.info("finished an abort that was cut off", target=str(stream.target))
        # The journal before the target: a copy says that it is whole before it deletes its journal.
        journal = Ledger(store, stream.copy_id, stream.target).load()
        digest = check_plan(stream, store)
        if digest is None or (journal is not None and journal.target is not None):
            return False
        swept = sweep(stream.copy_id, stream.target, store)
    except SluiceError as error:
        if not error.retryable:
            raise
        _log.warning("the store cannot be asked yet", reason=error.reason, error=str(error))
        return False
    _log.info("already complete", target=str(stream.target), digest=digest, swept=swept)
    return True


def _outcome(reports: list[StreamReport]) -> Trouble | None:
    for report in reports:
        if report.error is None:
            _log.info(
                "stream done",
                outcome=report.outcome,
                source=str(report.source),
                target=str(report.target),
                digest=report.digest,
                bytes=report.bytes,
                events=report.events,
            )
    return next((report.error for report in reports if report.error is not None), None)


def _bug(error: Exception) -> Trouble:
    return Trouble(
        reason="InternalError",
        category=Category.INFRASTRUCTURE,
        message=f"{type(error).__name__}: {error}",
        remedy="Report it with the log of the driver's pod, which has the details.",
        retryable=True,
    )


class Journalist:
    """A listener that logs: each new kind of step, and what is tried again."""

    def __init__(self) -> None:
        self._last: dict[int, str] = {}

    def step(self, copy: StreamCopy, step: Step) -> None:
        """See Listener."""
        kind = type(step).__name__
        log = _log.debug if self._last.get(copy.number) == kind else _log.info
        self._last[copy.number] = kind
        log("step", step=kind, target=str(copy.plan.target))

    def retry(self, copy: StreamCopy, error: SluiceError, delay: float) -> None:
        """See Listener."""
        _log.warning(
            "trying again",
            target=str(copy.plan.target),
            reason=error.reason,
            error=str(error),
            seconds=round(delay, 1),
        )
