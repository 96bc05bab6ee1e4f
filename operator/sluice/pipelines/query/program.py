"""Run a query: choose its version, prepare its sinks, and have Spark make batches."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from sluice import errors
from sluice.core.query.versions import check_whole, chosen
from sluice.core.tables.options import TableOptions
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.results import ResultAppender, fence, release, written
from sluice.engine.query.sinks import prepare_sinks, renew_live
from sluice.engine.tables.opening import located, opened
from sluice.engine.tables.source import StoredStream
from sluice.errors import (
    CheckpointDiverged,
    InfrastructureError,
    SluiceError,
)
from sluice.pipelines.query.batch_writer import BatchWriter
from sluice.pipelines.query.checkpoint import QueryCheckpoint
from sluice.pipelines.query.compile import (
    OUTPUT_MODES,
    UncompiledQuery,
    events_of,
    options_of,
    resolved,
)
from sluice.pipelines.query.observations import counts_of, last_progress
from sluice.pipelines.query.session import HEAP
from sluice.pipelines.spark.lost import SparkLost, first_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sluice.config import Settings
    from sluice.core.query.ledger import LedgerState, VersionRecord
    from sluice.core.query.plan import PlannedSink, PlannedSource, QueryPlan, QueryRequest
    from sluice.pipelines.programs.stores import Stores
    from sluice.pipelines.query.batch_writer import Listener
    from sluice.stores.base import Store

_log = structlog.get_logger()

_TOLD: Final = re.compile(r"(?:sluice\.errors\.\w+\.)?(\w+): (.+)")


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a query is run.

    Attributes:
        folder: the folder of its checkpoints.
        once: whether it ends at the tail that its sources have at the beginning.
        interval_seconds: from the beginning of a batch to that of the next one; 0 for no pause.
        batch_bytes: the most bytes of each source in a batch.
        restart: see `core.query.versions.chosen`.
        most_state: the most bytes of windows that are not closed.
        listener: see `Listener`.
    """

    folder: Path
    once: bool
    interval_seconds: int
    batch_bytes: int
    restart: bool
    most_state: int
    listener: Listener

    @classmethod
    def of(
        cls, request: QueryRequest, folder: Path, *, listener: Listener, heap: int = HEAP
    ) -> Self:
        """Return how a request is run.

        Args:
            request: the request.
            folder: the folder that has one of each query.
            listener: see `Listener`.
            heap: bytes of the JVM's largest heap.
        """
        return cls(
            folder=folder / request.query_id,
            once=request.once,
            interval_seconds=request.interval_seconds,
            batch_bytes=request.batch_bytes,
            restart=request.restart,
            most_state=heap // 2,  # Spark needs the other half to work with it
            listener=listener,
        )


def run_query(
    plan: QueryPlan, spark: SparkSession, stores: Stores, settings: Settings, run: Run
) -> int:
    """Run a query until it ends or is interrupted. Return the number of rows that it has written.

    Raises:
        QueryChanged, CheckpointLost, CheckpointDiverged: see `core.query.versions.chosen`.
        QuerySuperseded: another attempt has begun.
        ResultTooLarge, MalformedEvents, SourceTruncated, BackendError: what ended a batch. All
            batches before it are whole.
    """
    first = plan.sinks[0]
    ledger = QueryLedger(stores[first.store], plan.query_id, first.stream)
    choose = partial(_chosen, ledger, plan, stores, settings, run)
    choose()  # a query that is refused makes nothing, and ends no other attempt
    sinks = [(sink, stores[sink.store]) for sink in plan.sinks]
    prepare_sinks(sinks, plan.query_id, first=ledger.state.version is None)
    ledger.begin()
    version, checkpoint = choose()
    ledger.check()
    before = ledger.state.version
    if before is None:
        renew_live(sinks, plan.query_id)
    if before is not None and version.number == before.number:
        release(sinks, plan.query_id, version.number)
    else:
        if before is not None:
            _end(sinks, plan.query_id, before.number, ledger.state)
        tails = (StoredStream(store, sink.stream).tail().to_json() for sink, store in sinks)
        ledger.add(version.model_copy(update={"results": tuple(tails)}))
        checkpoint.clear()
    checkpoint.drop_others()
    with ExitStack() as stack:
        appenders = [
            stack.enter_context(ResultAppender(*sink, plan.query_id, version.number))
            for sink in sinks
        ]
        writer = BatchWriter(
            ledger,
            appenders,
            checkpoint,
            counts=partial(counts_of, spark),
            progress=partial(last_progress, spark),
            most_state=run.most_state,
            listener=run.listener,
        )
        _stream(spark, _started(plan, version, run), writer, run)
    return writer.rows


def _chosen(
    ledger: QueryLedger, plan: QueryPlan, stores: Stores, settings: Settings, run: Run
) -> tuple[VersionRecord, QueryCheckpoint]:
    """Return the version that runs, and its checkpoint. Errors as `core.query.versions.chosen`."""
    state = ledger.load()
    number = 1 if state.version is None else state.version.number
    batches = [record.batch for record in (state.last, state.begun) if record is not None]
    version = chosen(
        state,
        plan,
        partial(QueryCheckpoint(run.folder, number).look, batches),
        partial(_begins, plan.sources, settings),
        lambda before: written(
            [(sink, stores[sink.store]) for sink in plan.sinks], plan.query_id, before.number
        ),
        restart=run.restart,
    )
    return version, QueryCheckpoint(run.folder, version.number)


def _end(
    sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, version: int, state: LedgerState
) -> None:
    """Let a version append no more, before another one takes its place.

    Raises:
        CheckpointDiverged: it has rows of a batch that is not whole. It may go on.
    """
    try:
        check_whole(state, fence(sinks, query_id, version))
    except CheckpointDiverged:
        release(sinks, query_id, version)
        raise


def _begins(sources: Sequence[PlannedSource], settings: Settings) -> list[dict[str, Any]]:
    """Return the position of each source where its spec says that the query begins."""
    found = []
    for source in sources:
        place = TableOptions.read(options_of(source)).place
        with opened(place, settings) as stream:
            found.append(located(stream, source.begins).to_json())
    return found


def _started(plan: QueryPlan, version: VersionRecord, run: Run) -> UncompiledQuery:
    """Return the query with the positions at which its version begins."""
    sources = [
        source.model_copy(update={"begins": json.dumps(place)})
        for source, place in zip(plan.sources, version.begins, strict=True)
    ]
    checkpoint = QueryCheckpoint(run.folder, version.number).path.resolve()
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
