"""Run a query in a driver pod until it ends, and write how it ended.

The operator judges how far the query is by its ledger. So the message matters only after a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from pydantic import ValidationError

from sluice.core.query.plan import QueryRequest
from sluice.core.values.trouble import Trouble
from sluice.errors import InvalidSpec, SluiceError
from sluice.pipelines.driver.ending import reported
from sluice.pipelines.driver.given import read_given
from sluice.pipelines.driver.stopping import SigtermHandler
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.arrow.query import run_by_arrow
from sluice.pipelines.query.attempt import Run
from sluice.pipelines.query.planning import planned
from sluice.pipelines.query.session import query_session
from sluice.pipelines.query.spark_query import run_by_spark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sluice.config import Settings
    from sluice.core.query.ledger import BatchRecord
    from sluice.core.query.rows import ResultRow

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDriverOptions:
    """The command-line options of a query's driver.

    Attributes:
        request: file with the request's JSON.
        request_sha256: SHA-256 of that file, in hexadecimal digits; any is taken if left out.
        checkpoints_dir: the folder that has a folder of each query.
        slots: tasks at once.
        heap: heap of the JVM, in bytes.
        termination_log: file for the termination message.
    """

    request: Path
    request_sha256: str | None = None
    checkpoints_dir: Path
    slots: int = 2
    heap: int = 1 << 30
    termination_log: Path | None = None


def drive_query(options: QueryDriverOptions, settings: Settings) -> Trouble | None:
    """Run a query until it ends, and write the termination message.

    Returns:
        Why it failed; None if it has read all that it was to read.

    Raises:
        Terminated: SIGTERM came; Spark is stopped.
        Exception: a bug in Sluice.
    """
    with SigtermHandler():
        return reported("query driver", options.termination_log, lambda: _drive(options, settings))


def _drive(options: QueryDriverOptions, settings: Settings) -> tuple[Trouble | None, None]:
    try:
        _run(options, settings)
    except SluiceError as error:
        return Trouble.of(error), None
    return None, None


def _run(options: QueryDriverOptions, settings: Settings) -> None:
    request = read_request(options.request, options.request_sha256)
    run = Run.of(request, options.checkpoints_dir, listener=_tell, heap=options.heap)
    with Stores(settings) as stores:
        with query_session(options.slots, heap=options.heap) as spark:
            _log.info("spark started", slots=options.slots)
            plan, program = planned(spark, request)
            _log.info("compiled", plan=plan.hash, columns=plan.compiled.columns)
            if program is None:
                rows = run_by_spark(plan, spark.newSession(), stores, settings, run)
        if program is not None:  # the JVM has ended, and its memory is free
            rows = run_by_arrow(plan, program, stores, settings, run)
        _log.info("query done", rows=rows)


def _tell(record: BatchRecord, rows: Sequence[ResultRow]) -> None:
    if rows:
        _log.info("batch written", batch=record.batch, rows=record.rows)


def read_request(path: Path, sha256: str | None = None) -> QueryRequest:
    """Read the request of a file.

    Args:
        path: the file.
        sha256: see `read_given`.

    Raises:
        InfrastructureError: the file is not the one that the operator wrote.
        InvalidSpec: it cannot be read, or is no request that this version understands.
    """
    try:
        return QueryRequest.model_validate_json(read_given(path, sha256))
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    raise InvalidSpec(f"{path} is no request of a query: {reason}")
