"""Implement `sluice query-driver` and `query-verifier`, which run in pods of a StreamQuery."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sluice import tracing
from sluice.commands.pods import bind, heap_of, log_file
from sluice.commands.shared import settings_of
from sluice.errors import EXIT_CODES
from sluice.pipelines.driver.query_driver import QueryDriverOptions, drive_query

if TYPE_CHECKING:
    from sluice.core.values.trouble import Trouble

_PATH: Final = click.Path(dir_okay=False, path_type=Path)

_REQUEST: Final = click.option("--request", required=True, type=_PATH, help="The request's JSON.")
_SHA256: Final = click.option(
    "--request-sha256", help="The SHA-256 that the request's file has to have, in hex."
)


@click.command(hidden=True)
@_REQUEST
@_SHA256
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
    _exit(trouble)


@click.command(hidden=True)
@_REQUEST
@_SHA256
@click.option("--memory", type=click.IntRange(1 << 20), default=1 << 30, help="DuckDB's, in bytes.")
@click.option(
    "--disk", type=click.IntRange(1 << 20), default=1 << 30, help="DuckDB's on disk, in bytes."
)
@click.option("--slots", type=click.IntRange(1, 256), default=2, help="DuckDB's threads.")
def query_verifier(**options: Any) -> None:
    """Verify the results of one query: what the operator starts for spec.verify.

    The environment is that of `driver`. The exit code is 0 also if results differ.
    """
    from sluice.pipelines.driver.query_verifier import (  # noqa: PLC0415 - of the extra `verify`
        QueryVerifierOptions,
        verify_query,
    )

    bind()
    given = QueryVerifierOptions(termination_log=log_file(), **options)
    with tracing.started("sluice-verifier"):
        trouble = verify_query(given, settings_of(None))
    _exit(trouble)


def _exit(trouble: Trouble | None) -> None:
    sys.exit(0 if trouble is None else EXIT_CODES[trouble.category])
