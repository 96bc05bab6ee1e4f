"""Run a query by Spark."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from sluice import errors
from sluice.errors import InfrastructureError, SluiceError
from sluice.pipelines.query.attempt import begun
from sluice.pipelines.query.batch_writer import BatchWriter
from sluice.pipelines.query.checkpoint import SparkCheckpoint
from sluice.pipelines.query.compile import (
    OUTPUT_MODES,
    UncompiledQuery,
    events_of,
    resolved,
)
from sluice.pipelines.query.observations import counts_of, last_progress
from sluice.pipelines.spark.lost import SparkLost, first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sluice.config import Settings
    from sluice.core.query.plan import QueryPlan
    from sluice.pipelines.programs.stores import Stores
    from sluice.pipelines.query.attempt import QueryAttempt, Run

_log = structlog.get_logger()

_TOLD: Final = re.compile(r"(?:sluice\.errors\.\w+\.)?(\w+): (.+)")


def run_by_spark(
    plan: QueryPlan, spark: SparkSession, stores: Stores, settings: Settings, run: Run
) -> int:
    """Run a query until it ends or is interrupted. Return the number of rows that it has written.

    Raises:
        QueryChanged, CheckpointLost, CheckpointDiverged: see `core.query.versions.chosen`.
        QuerySuperseded: another attempt has begun.
        ResultTooLarge, MalformedEvents, SourceTruncated, BackendError: what ended a batch. All
            batches before it are whole.
    """
    with begun(plan, stores, settings, run, SparkCheckpoint) as attempt:
        writer = BatchWriter(
            attempt.batches,
            attempt.checkpoint,
            counts=partial(counts_of, spark),
            progress=partial(last_progress, spark),
            most_state=run.most_state,
        )
        _stream(spark, _started(plan, attempt, run), writer, run)
        return attempt.batches.rows


def _started(plan: QueryPlan, attempt: QueryAttempt[SparkCheckpoint], run: Run) -> UncompiledQuery:
    """Return the query with the positions at which its version begins."""
    sources = [
        source.model_copy(update={"begins": json.dumps(place)})
        for source, place in zip(plan.sources, attempt.version.begins, strict=True)
    ]
    checkpoint = attempt.checkpoint.path.resolve()
    return UncompiledQuery(
        sources,
        plan.sql,
        plan.parameters,
        plan.keys,
        plan.emit,
        run.batch_bytes,
        str(checkpoint),
    )


def _stream(spark: SparkSession, wanted: UncompiledQuery, writer: BatchWriter, run: Run) -> None:
    """Have Spark make batches until the query ends."""
    # The query was checked when the plan was made. Its rows are made texts here, and not in each
    # batch, which would be planned once more for it.
    frame = events_of(resolved(spark, wanted), wanted.keys)
    stream = (
        frame.writeStream.foreachBatch(writer)
        .outputMode(OUTPUT_MODES[wanted.emit])
        .option("checkpointLocation", str(writer.checkpoint.path))
    )
    if run.once:
        stream = stream.trigger(availableNow=True)
    else:
        stream = stream.trigger(processingTime=f"{run.interval_seconds} seconds")
    query = stream.start()
    # Waited for in a thread, with a connection of its own to the JVM: Ctrl-C would interrupt a call
    # on this thread's connection, by which the query is stopped.
    with ThreadPoolExecutor(1, "query") as pool:
        ended = pool.submit(_ended, query)
        try:
            failure = ended.result()
        finally:
            _stop(query)
    if failure is not None:
        raise _cause(failure, writer) from failure


def _ended(query: StreamingQuery) -> Exception | None:
    """Wait for the end of a query. Return what has ended it; None if nothing is wrong."""
    try:
        query.awaitTermination()
    except Exception as error:  # noqa: BLE001 - Spark's and Py4J's have no common class
        return error
    return None


def _cause(failure: Exception, writer: BatchWriter) -> BaseException:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - comes with Spark

    cause = writer.failure or failure
    if isinstance(cause, PySparkException):
        return _told(str(cause))
    return cause if cause is writer.failure else SparkLost(first_line(failure))


def _stop(query: StreamingQuery) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001 - whatever it is, the JVM is killed after this
        _log.debug("the query did not stop in order", error=first_line(error))


def _told(text: str) -> SluiceError:
    """Return the error of a process of Spark, which has crossed the JVM as a text."""
    for line in text.splitlines():
        found = _TOLD.match(line.strip())
        kind = getattr(errors, found[1], None) if found else None
        if found and isinstance(kind, type) and issubclass(kind, SluiceError):
            return kind(found[2])
    return InfrastructureError(f"Spark ended the query: {text.strip().splitlines()[0]}")
