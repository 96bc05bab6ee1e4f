"""Implement `sluice driver` and `sluice operator`, which run in pods."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click
from structlog import contextvars

from sluice import tracing
from sluice.api.scalars.quantities import Bytes
from sluice.commands.shared import PATIENCE, settings_of
from sluice.errors import EXIT_CODES
from sluice.pipelines.driver.driver import DriverOptions, drive

_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(hidden=True)
@click.option("--plan", "plan_file", required=True, type=_PATH, help="The plan's JSON.")
@click.option("--plan-sha256", help="The SHA-256 that the plan's file has to have, in hex.")
@click.option("--controls", type=_PATH, help="JSON with the limits; read again and again.")
@click.option("--keep-last", type=click.IntRange(1), help="Runs of an archive to keep at least.")
@click.option("--keep-seconds", type=click.IntRange(1), help="For how long to keep runs at least.")
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
@click.option("--executor-template-sha256", help="The SHA-256 that this file has to have, in hex.")
@click.option(
    "--executor-memory",
    "executor_heap",
    callback=lambda _context, _option, value: heap_of(value),
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
@click.option(
    "--until-live", is_flag=True, help="End once a copy follows its source: a follower goes on."
)
@click.option("--here", is_flag=True, help="Move all bytes in this process, without Spark.")
@click.option("--owner", default="", help="The key of the copy's owner, for wishes to seal.")
@PATIENCE
def driver(*, plan_file: Path, **options: Any) -> None:
    """Run one plan: what the pods do that the operator starts.

    Further settings are in the environment: SLUICE_RESOURCE and SLUICE_ATTEMPT go to each line of
    the log, SLUICE_TERMINATION_LOG names the file for the termination message. With executors,
    POD_NAME, POD_UID, POD_IP and POD_NAMESPACE are the pod's own.
    """
    bind()
    given = DriverOptions(plan=plan_file, termination_log=log_file(), **options)
    with tracing.started("sluice-driver"):
        trouble = drive(given, settings_of(None))
    sys.exit(0 if trouble is None else EXIT_CODES[trouble.category])


@click.command(hidden=True)
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
    from sluice.kube.loop.settings import OperatorSettings  # noqa: PLC0415

    with tracing.started("sluice-operator"):
        asyncio.run(operate(OperatorSettings.read(config)))


def bind() -> None:
    """Name resource and attempt in each line of the log."""
    contextvars.bind_contextvars(
        resource=os.environ.get("SLUICE_RESOURCE"), attempt=os.environ.get("SLUICE_ATTEMPT")
    )


def log_file() -> Path | None:
    """Return the file for the termination message, if there is one."""
    log = os.environ.get("SLUICE_TERMINATION_LOG")
    return Path(log) if log else None


def heap_of(text: str) -> int:
    """Read an option's number of bytes."""
    try:
        return int(Bytes("64Mi", "1Ti").read(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _setting(text: str) -> tuple[str, str]:
    """Split an option `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value
