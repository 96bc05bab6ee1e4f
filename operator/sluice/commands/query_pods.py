"""Implement `sluice query-driver`, which runs in the pod of a StreamQuery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sluice import tracing
from sluice.commands.pods import bind, heap_of, log_file
from sluice.commands.shared import settings_of
from sluice.errors import EXIT_CODES
from sluice.pipelines.driver.query_driver import QueryDriverOptions, drive_query

_PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(hidden=True)
@click.option("--request", required=True, type=_PATH, help="The request's JSON.")
@click.option("--request-sha256", help="The SHA-256 that the request's file has to have, in hex.")
@click.option(
    "--checkpoints-dir",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of checkpoints.",
)
@click.option("--slots", type=click.IntRange(1, 256), default=2, help="Tasks at once.")
@click.option(
    "--heap",
    callback=lambda _context, _option, value: heap_of(value),
    default="1Gi",
    show_default=True,
    help="Memory of the JVM, for the windows; the rest of the pod's memory is for Python.",
)
def query_driver(**options: Any) -> None:
    """Run one query: what the pods do that the operator starts for a StreamQuery.

    The environment is that of `driver`.
    """
    bind()
    given = QueryDriverOptions(termination_log=log_file(), **options)
    with tracing.started("sluice-driver"):
        trouble = drive_query(given, settings_of(None))
    sys.exit(0 if trouble is None else EXIT_CODES[trouble.category])
