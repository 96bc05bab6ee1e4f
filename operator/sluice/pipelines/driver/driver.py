"""Run one plan to its end in a driver pod, and write how it ended.

The operator makes the plan and judges the result. The driver gets its plan and its limits as
files, and never calls the API server. It may start late: another driver may have finished the copy,
or an abort may have been interrupted. The driver finds both in the target store.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Self

import structlog
from pydantic import ValidationError

from sluice import tracing
from sluice.core.archive.retention import Retention
from sluice.core.events import framing
from sluice.core.values.trouble import Trouble
from sluice.core.workloads import unplanned
from sluice.core.workloads.plan import ScopeCopyPlan, expanded
from sluice.core.workloads.unplanned import Unplanned
from sluice.engine.archive.report import ArchiveReport
from sluice.engine.copy.report import Outcome
from sluice.engine.scope.report import ScopeReport
from sluice.errors import InvalidSpec, SluiceError
from sluice.pipelines.driver.controls import Controls, read_retention
from sluice.pipelines.driver.ending import reported
from sluice.pipelines.driver.given import read_given
from sluice.pipelines.driver.listeners import Journalist, ScopeJournalist
from sluice.pipelines.driver.stopping import SigtermHandler
from sluice.pipelines.programs.run import Tasks, needs_spark, run_plan
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.spark import sparkconf
from sluice.pipelines.spark.application import Application
from sluice.pipelines.spark.sparkconf import Executors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.archive.recorded import Recorded
    from sluice.core.workloads.plan import Plan
    from sluice.engine.tasks.limits import Limits
    from sluice.engine.workloads.workload import Workload
    from sluice.pipelines.programs.run import Report
    from sluice.pipelines.spark.kubernetes import Crew

_log = structlog.get_logger()

_GZIP: Final = b"\x1f\x8b"
"""The first bytes of a compressed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverOptions:
    """The driver's command-line options.

    Attributes:
        plan: file with the plan's JSON, which may be compressed.
        plan_sha256: SHA-256 of that file, in hexadecimal digits; any plan is taken if left out.
        controls: file with the limits, see Controls.
        keep_last, keep_seconds: which runs of an archive are kept, see Retention. Runs that the
            controls keep are kept as well.
        slots: tasks at once in this process, if there are no executors.
        executors: the number of executor pods; 0 to run tasks in this process.
        executor_template: file with the pod template of the executors.
        executor_template_sha256: SHA-256 of that file, in hexadecimal digits.
        executor_heap: heap of each executor's JVM, in bytes.
        executor_cores: tasks at once in each executor.
        spark: settings of Spark that an administrator adds.
        until_live: whether to end once a copy follows its source: a follower goes on.
        here: whether this process moves all bytes itself, however many they are.
        owner: the key of its owner's wishes; see FollowedTarget.
        patience: see Runner.
        termination_log: file for the termination message.
    """

    plan: Path
    plan_sha256: str | None = None
    controls: Path | None = None
    keep_last: int | None = None
    keep_seconds: int | None = None
    slots: int = 2
    executors: int = 0
    executor_template: Path | None = None
    executor_template_sha256: str | None = None
    executor_heap: int = 512 << 20
    executor_cores: int = 1
    spark: Mapping[str, str] = field(default_factory=dict)
    until_live: bool = False
    here: bool = False
    owner: str = ""
    patience: float | None = None
    termination_log: Path | None = None


def drive(options: DriverOptions, settings: Settings) -> Trouble | None:
    """Run a plan to its end, and write the termination message.

    Returns:
        Why the plan failed. None when every stream of the plan is copied. For a ScopeCopy, None
        means that nothing is left to do; the log in the target store has each stream's result.

    Raises:
        Terminated: SIGTERM came; Spark is stopped.
        Exception: a bug in Sluice.
    """
    _log.info("driver started", counting=framing.LANGUAGE)
    return reported("driver", options.termination_log, lambda: _drive(options, settings))


def _drive(options: DriverOptions, settings: Settings) -> tuple[Trouble | None, Recorded | None]:
    """Run the plan of the file.

    Returns:
        Why the plan failed, if it did; and the facts of an archive that only pods can see.
    """
    trouble, told = None, None
    try:
        wanted = read_plan(options.plan, options.plan_sha256)
        with Stores(settings) as stores:
            plan = _planned(wanted, stores) if isinstance(wanted, Unplanned) else wanted
            if plan is not None:
                trouble = _carry_out(plan, options, settings, stores)
            if trouble is None and isinstance(wanted, Unplanned):
                told = _workload(wanted).tell(stores.place(wanted.target))
    except SluiceError as error:
        trouble = Trouble.of(error)
    return trouble, told


def _planned(wanted: Unplanned, stores: Stores) -> Plan | None:
    """Plan the request that the operator could not plan. Return None if nothing is left to do."""
    sources = [(address, stores.place(address)) for address in wanted.sources]
    target = (wanted.target, stores.place(wanted.target))
    with tracing.span("plan"):
        plan: Plan | None = _workload(wanted).plan(sources, target, run=wanted.run).plan
    return plan


def _workload(wanted: Unplanned) -> Workload:
    """Return the workload that this driver has to plan."""
    # Imported here: nearly all drivers get a plan, and need no code that plans.
    from sluice.engine.workloads.choice import workload_of  # noqa: PLC0415

    return workload_of(wanted.request)


def _carry_out(
    plan: Plan, options: DriverOptions, settings: Settings, stores: Stores
) -> Trouble | None:
    """Run a plan to its end. Return why it failed, if it did."""
    controls = Controls(options.controls)
    with SigtermHandler() as stop, _Application(options, settings, stop) as application:

        def limits() -> Limits:
            stop.check()
            return controls()

        if not options.here and needs_spark(
            plan, limits(), settings, elsewhere=options.executors > 0
        ):
            application.prepare()
        # A run is deleted only if both the Job's arguments and the controls allow it: the arguments
        # cannot be changed by editing the ConfigMap.
        given = Retention(keep_last=options.keep_last, keep_seconds=options.keep_seconds)
        report = run_plan(
            plan,
            stores,
            application.tasks,
            limits=limits,
            retention=lambda: given.and_what(read_retention(options.controls)),
            listener=ScopeJournalist() if isinstance(plan, ScopeCopyPlan) else Journalist(),
            patience=options.patience,
            key=options.owner,
            until_live=options.until_live,
        )
        return _outcome(report)


class _Application:
    """The driver's Spark application and its executors. It is started when it is needed.

    Args:
        options: the driver's options.
        settings: the settings of this process.
        stop: the handler of SIGTERM.
    """

    def __init__(self, options: DriverOptions, settings: Settings, stop: SigtermHandler) -> None:
        self._options = options
        self._settings = settings
        self._stop = stop
        self._stack = ExitStack()
        self._configuration, self._executors = _configuration(options, self._stack)
        self._application: Application | None = None
        self._crew: Crew | None = None

    def __enter__(self) -> Self:
        """Enter the block. Spark is not started yet."""
        self._stack.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the application if it was started. If Spark was lost, this raises the reason."""
        self._stack.__exit__(kind, error, trace)

    def prepare(self) -> Application:
        """Begin to start the application, without waiting for it."""
        if self._application is None:
            self._application = self._stack.enter_context(Application(self._configuration))
        return self._application

    def start(self) -> SparkContext:
        """Start the application and wait until tasks can run."""
        context = self.prepare().start()
        _log.info("spark started", slots=self._options.slots, executors=self._options.executors)
        if self._executors is not None:
            from sluice.pipelines.spark.kubernetes import Crew  # noqa: PLC0415 - as below

            timeout = self._settings.executor_timeout
            self._crew = Crew(context, self._executors, timeout, check=self._stop.check)
            self._crew.wait()
            _log.info("executors are there", slots=self._crew.slots())
        return context

    @property
    def tasks(self) -> Tasks:
        """The tasks of this application, for `run_plan`."""
        return Tasks(
            spark=self.start,
            settings=self._settings,
            threads=self._options.slots,
            elsewhere=self._executors is not None,
            here=self._options.here,
            slots=self._slots,
            check=self._check,
        )

    def _slots(self) -> int:
        """Return the number of tasks that run at once."""
        if self._crew is not None:
            return self._crew.slots()
        return self._options.slots

    def _check(self) -> None:
        """Raise WaitingForExecutors if there has been no executor for too long."""
        if self._crew is not None:
            self._crew.check()


def _configuration(
    options: DriverOptions, stack: ExitStack
) -> tuple[dict[str, str], Executors | None]:
    """Return Spark's configuration, and the executors if tasks run in pods of their own."""
    if not options.executors:
        return sparkconf.local(options.slots, options.spark), None
    if options.executor_template is None:
        raise InvalidSpec(
            "executors need a template for their pods", remedy="Give --executor-template."
        )
    # Imported here: few copies are so large that they have executors.
    from sluice.pipelines.spark.kubernetes import own_pod, read_template  # noqa: PLC0415

    given = read_given(options.executor_template, options.executor_template_sha256)
    # Spark reads the template whenever it makes a pod. So it gets a private copy of the checked
    # bytes: the mounted file changes when its ConfigMap does.
    template = Path(stack.enter_context(TemporaryDirectory(prefix="sluice-template-")))
    template /= options.executor_template.name
    template.write_bytes(given)
    executors = Executors(
        count=options.executors,
        cores=options.executor_cores,
        heap=options.executor_heap,
        template=read_template(template),
        pod=own_pod(),
    )
    return sparkconf.kubernetes(executors, options.spark), executors


def read_plan(path: Path, sha256: str | None = None) -> Plan:
    """Read the plan of a file, which may be compressed.

    Args:
        path: the file.
        sha256: see `read_given`.

    Raises:
        InfrastructureError: the file is not the one that the operator wrote.
        InvalidSpec: the file cannot be read, or is not a plan that this version understands.
    """
    try:
        data = read_given(path, sha256)
        return expanded(data) if data.startswith(_GZIP) else unplanned.read_plan(data)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    except ValueError as error:
        reason = str(error)
    raise InvalidSpec(
        f"{path} is no plan: {reason}", remedy="Delete the damaged plan; it is made anew."
    )


def _outcome(report: Report) -> Trouble | None:
    """Log how a plan ended. Return why it failed, if it did."""
    if isinstance(report, ScopeReport):
        counts = report.counts
        _log.info(
            "scope done" if report.is_over else "scope not done",
            streams=counts.total,
            copied=counts.copied,
            failed=counts.failed,
            stopped=counts.stopped,
            kept=report.kept,
        )
        return report.trouble
    if report.error is not None:
        return report.error
    if isinstance(report, ArchiveReport):
        _log.info("run done", **report.model_dump(mode="json", exclude_none=True))
    else:
        complete = report.outcome is Outcome.ALREADY_COMPLETE
        _log.info(
            "already complete" if complete else "stream done",
            outcome=report.outcome,
            source=str(report.source),
            target=str(report.target),
            digest=report.digest,
            bytes=report.bytes,
            events=report.events,
        )
    return None
