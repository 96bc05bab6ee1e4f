"""The command line: `sluice plan | run | abort -f FILE`, and `sluice driver` in pods.

Exit codes: 0 done (or done before), 1 an error of Sluice itself, 2 wrong input, 3 the store said
no or was away too long, 4 what runs the copy broke, 5 no room to run it, 6 the data are not what
the plan says, 130 interrupted, 143 told to stop. With several copies in a file the highest counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from structlog import contextvars

from sluice import __version__, console, logs
from sluice.api.load import load
from sluice.api.quantities import Bytes
from sluice.config import Settings
from sluice.engine.report import StreamReport
from sluice.errors import Category, InfrastructureError, InvalidSpec, SluiceError
from sluice.pipelines.application import SparkLost, local_spark
from sluice.pipelines.driver import DriverOptions, drive
from sluice.pipelines.program import (
    Stores,
    abort_job,
    finish_abort_job,
    jobs,
    plan_job,
    run_plan,
    sweep_job,
)
from sluice.pipelines.stopping import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext

    from sluice.api.load import Resources
    from sluice.pipelines.program import Job, Planned

EXIT_CODES = {
    Category.SPEC: 2,
    Category.BACKEND: 3,
    Category.INFRASTRUCTURE: 4,
    Category.SCHEDULING: 5,
    Category.INTEGRITY: 6,
}

_FILE = click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    help="YAML with StreamStore and StreamCopy resources; - reads standard input.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one JSON value on standard output.",
)
_CREDENTIALS = click.option(
    "--credentials-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of Secrets, as Kubernetes mounts them: SECRET/username and SECRET/password.",
)
_PATIENCE = click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=None,
    metavar="SECONDS",
    help="Give a failing copy up after this long without progress. [default: 300 for the store]",
)
_PATH = click.Path(dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=__doc__)
@click.version_option(__version__, prog_name="sluice")
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    default="warning",
    show_default=True,
    help="debug shows every step of the protocol.",
)
@click.option("--log-json", is_flag=True, help="One JSON object a line.")
def cli(*, log_level: str, log_json: bool) -> None:
    """Copy streams exactly once, verified and restartable."""
    logs.configure(log_level, as_json=log_json)


@cli.command()
@_FILE
@_OUTPUT
@_CREDENTIALS
def plan(file: str, output: str, credentials_dir: Path | None) -> None:
    """Show what a run would do, without moving or making anything."""
    settings = _settings(credentials_dir)
    with Stores(settings) as stores:
        planned = [plan_job(job, stores) for job in jobs(_read(file), settings)]
    if output == "json":
        _print_json([_plan_json(entry) for entry in planned])
        return
    for entry in planned:
        if entry.plan is not None:
            console.out.print(console.plan_table(entry.plan, recorded=entry.recorded))
        elif entry.report is not None:
            console.show_report(entry.report, 0)


@cli.command()
@_FILE
@_OUTPUT
@_CREDENTIALS
@click.option(
    "--tasks",
    type=click.IntRange(1, 256),
    default=None,
    help="Tasks at once. [default: the number of processors]",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Read staged bytes again and compare them before they are published.",
)
@_PATIENCE
def run(
    *,
    file: str,
    output: str,
    credentials_dir: Path | None,
    tasks: int | None,
    verify: bool,
    patience: float | None,
) -> None:
    """Copy what the file asks for, or go on where an earlier run stopped."""
    settings = _settings(credentials_dir)
    began = time.monotonic()
    ended: list[tuple[str, StreamReport, float]] = []
    with Stores(settings) as stores, ExitStack() as stack:
        spark = cache(lambda: _start_spark(stack, tasks or os.cpu_count() or 1))
        for job in jobs(_read(file), settings, verify=verify):
            result = _run_job(job, stores, spark, settings, patience)
            if result is None:
                console.err.print(f"{job.name} is suspended: it is planned and not run")
                continue
            ended.append((job.name, *result))
            console.show_report(*result)
    if output == "json":
        _print_json([_report_json(*entry) for entry in ended])
    console.err.print(f"{console.summary(ended)} in {console.duration(time.monotonic() - began)}")
    sys.exit(_exit_code([report for _, report, _ in ended]))


@cli.command()
@_FILE
@_CREDENTIALS
def abort(file: str, credentials_dir: Path | None) -> None:
    """Delete what unfinished copies left: staging, unpublished targets, journals."""
    settings = _settings(credentials_dir)
    with Stores(settings) as stores:
        for job in jobs(_read(file), settings):
            deleted = abort_job(job, stores)
            console.err.print(f"{job.name}: {'aborted' if deleted else 'nothing to abort'}")


@cli.command()
@click.option("--plan", "plan_file", required=True, type=_PATH, help="The plan's JSON.")
@click.option("--controls", type=_PATH, help="JSON with the limits; read before every round.")
@click.option(
    "--slots",
    type=click.IntRange(1, 256),
    default=2,
    show_default=True,
    help="Tasks at once in this pod, without executors.",
)
@click.option(
    "--executors",
    type=click.IntRange(0, 256),
    default=0,
    show_default=True,
    help="Pods that run the tasks instead of this one.",
)
@click.option("--executor-template", type=_PATH, help="YAML of a Pod: what executors are.")
@click.option(
    "--executor-memory",
    "executor_heap",
    callback=lambda _context, _option, value: _heap(value),
    default="512Mi",
    show_default=True,
    help="Memory of an executor's JVM; the rest of its memory is for Python.",
)
@click.option(
    "--executor-cores",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Tasks at once in an executor.",
)
@click.option(
    "--spark-conf",
    "spark",
    multiple=True,
    callback=lambda _context, _option, values: dict(map(_setting, values)),
    metavar="KEY=VALUE",
    help="A setting of Spark's; may be repeated.",
)
@_PATIENCE
def driver(*, plan_file: Path, **options: Any) -> None:
    """Run one plan: what the pods do that the operator starts.

    Further settings are in the environment: SLUICE_RESOURCE and SLUICE_ATTEMPT go to each line of
    the log, SLUICE_TERMINATION_LOG names the file for the termination message. With executors,
    POD_NAME, POD_UID, POD_IP and POD_NAMESPACE are the pod's own.
    """
    contextvars.bind_contextvars(
        resource=os.environ.get("SLUICE_RESOURCE"), attempt=os.environ.get("SLUICE_ATTEMPT")
    )
    log = os.environ.get("SLUICE_TERMINATION_LOG")
    trouble = drive(
        DriverOptions(
            plan=plan_file,
            termination_log=Path(log) if log else None,
            **options,
        ),
        _settings(None),
    )
    sys.exit(0 if trouble is None else EXIT_CODES[trouble.category])


def _heap(text: str) -> int:
    """Bytes from an option."""
    try:
        return int(Bytes("64Mi", "1Ti").read(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _setting(text: str) -> tuple[str, str]:
    """Key and value from an option."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value


def main() -> None:
    """Run the command line; errors of the tree become a message and an exit code."""
    try:
        cli(standalone_mode=False)
    except SluiceError as error:
        console.show_error(error)
        sys.exit(EXIT_CODES[error.category])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Terminated:
        sys.exit(143)
    except (KeyboardInterrupt, click.Abort):
        console.err.print("Interrupted. What is staged is kept: run again to go on.")
        sys.exit(130)


def _run_job(
    job: Job,
    stores: Stores,
    spark: Callable[[], SparkContext],
    settings: Settings,
    patience: float | None,
) -> tuple[StreamReport, float] | None:
    """Plan and run one copy; None when it is suspended.

    Returns:
        What came of it, and the seconds it took without the start of Spark.
    """
    began = time.monotonic()
    try:
        if not job.suspend and finish_abort_job(job, stores):
            console.err.print(f"{job.name}: finished an abort that was cut off")
        planned = plan_job(job, stores)
        if planned.report is not None:
            left = sweep_job(job, stores)
            if left:
                console.err.print(f"{job.name}: deleted {left} leftover staging segments")
            return planned.report, time.monotonic() - began
        if planned.plan is None or job.suspend:
            return None
        console.err.print(console.plan_table(planned.plan, recorded=planned.recorded))
        live = console.LiveProgress(planned.plan, settings)
        context = spark()
        began = time.monotonic()
        with live.shown():
            (report,) = run_plan(
                planned.plan,
                context,
                settings=settings,
                limits=lambda: job.limits,
                listener=live,
                patience=patience,
            )
    except SluiceError as error:
        report = StreamReport.failed(job.request, error)
    except SparkLost as error:
        report = StreamReport.failed(job.request, InfrastructureError(f"Spark was lost: {error}"))
    return report, time.monotonic() - began


def _start_spark(stack: ExitStack, slots: int) -> SparkContext:
    """Start Spark when the first copy needs it; it ends with the command."""
    with console.err.status(f"Starting Spark with {slots} tasks"):
        return stack.enter_context(local_spark(slots))


@cli.command()
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The operator's configuration, as the Helm chart writes it.",
)
def operator(config: Path) -> None:
    """Run the operator (in its pod)."""
    # Imported here: no other command needs Kubernetes' client or kopf, which take a second.
    from sluice.handlers.main import operate  # noqa: PLC0415
    from sluice.kube.settings import OperatorSettings  # noqa: PLC0415

    asyncio.run(operate(OperatorSettings.read(config)))


def _settings(credentials_dir: Path | None) -> Settings:
    """The environment's settings; an option goes before its variable."""
    try:
        settings = Settings.from_environment()
    except ValueError as error:
        raise InvalidSpec(str(error), remedy="Correct the environment's variable.") from error
    return (
        settings if credentials_dir is None else replace(settings, credentials_dir=credentials_dir)
    )


def _read(file: str) -> Resources:
    """The resources of a file."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(
            f"{file} cannot be read: {error}", remedy="Name a YAML file that exists."
        ) from error
    return load(text)


def _exit_code(reports: list[StreamReport]) -> int:
    """The highest exit code of the failures, 0 without any."""
    return max((EXIT_CODES[r.error.category] for r in reports if r.error is not None), default=0)


def _print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, indent=2))


def _plan_json(planned: Planned) -> dict[str, Any]:
    """A planned copy for programs."""
    return {
        "name": planned.job.name,
        "copyId": planned.job.request.copy_id,
        "recorded": planned.recorded,
        "complete": planned.report is not None,
        "planHash": None if planned.plan is None else planned.plan.hash,
        "plan": None if planned.plan is None else planned.plan.model_dump(mode="json"),
    }


def _report_json(name: str, report: StreamReport, seconds: float) -> dict[str, Any]:
    """A report for programs: camelCase, bytes and seconds."""
    return {
        "name": name,
        **report.model_dump(mode="json"),
        "bytes": report.bytes,
        "events": report.events,
        "seconds": round(seconds, 3),
    }
