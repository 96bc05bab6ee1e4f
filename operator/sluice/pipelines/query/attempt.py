"""Begin an attempt to run a query: choose its version, and prepare its sinks and its checkpoint."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from sluice.core.query.versions import check_whole, chosen
from sluice.core.tables.options import TableOptions
from sluice.engine.query.batches import BatchAppender
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.results import ResultAppender, fence, release, written
from sluice.engine.query.sinks import prepare_sinks, renew_live
from sluice.engine.tables.opening import located, opened
from sluice.engine.tables.source import StoredStream
from sluice.errors import CheckpointDiverged
from sluice.pipelines.query.checkpoint import QueryCheckpoint
from sluice.pipelines.query.compile import options_of
from sluice.pipelines.query.session import HEAP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sluice.config import Settings
    from sluice.core.query.ledger import LedgerState, VersionRecord
    from sluice.core.query.plan import PlannedSink, PlannedSource, QueryPlan, QueryRequest
    from sluice.engine.query.batches import Listener
    from sluice.pipelines.programs.stores import Stores
    from sluice.stores.base import Store

_Kept = TypeVar("_Kept", bound=QueryCheckpoint)


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
            heap: bytes that windows may take, and others beside them.
        """
        return cls(
            folder=folder / request.query_id,
            once=request.once,
            interval_seconds=request.interval_seconds,
            batch_bytes=request.batch_bytes,
            restart=request.restart,
            most_state=heap // 2,  # the other half is needed to work with it
            listener=listener,
        )


@dataclass(frozen=True)
class QueryAttempt(Generic[_Kept]):
    """An attempt that owns the ledger and the sinks of a query.

    Attributes:
        version: the version that runs.
        checkpoint: its checkpoint.
        batches: writes its batches.
    """

    version: VersionRecord
    checkpoint: _Kept
    batches: BatchAppender


@contextmanager
def begun(
    plan: QueryPlan,
    stores: Stores,
    settings: Settings,
    run: Run,
    checkpoint_of: Callable[[Path, int], _Kept],
) -> Iterator[QueryAttempt[_Kept]]:
    """Begin an attempt for the block.

    Args:
        plan: the plan.
        stores: opens stores.
        settings: the process's settings.
        run: how the query is run.
        checkpoint_of: returns the checkpoint of a version in a folder.

    Raises:
        QueryChanged, CheckpointLost, CheckpointDiverged: see `core.query.versions.chosen`.
        QuerySuperseded: another attempt has begun.
    """
    first = plan.sinks[0]
    ledger = QueryLedger(stores[first.store], plan.query_id, first.stream)
    choose = partial(
        _chosen,
        ledger,
        plan,
        stores,
        settings,
        lambda number: checkpoint_of(run.folder, number),
        restart=run.restart,
    )
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
        yield QueryAttempt(version, checkpoint, BatchAppender(ledger, appenders, run.listener))


def _chosen(
    ledger: QueryLedger,
    plan: QueryPlan,
    stores: Stores,
    settings: Settings,
    checkpoint_of: Callable[[int], _Kept],
    *,
    restart: bool,
) -> tuple[VersionRecord, _Kept]:
    """Return the version that runs, and its checkpoint. Errors as `core.query.versions.chosen`."""
    state = ledger.load()
    number = 1 if state.version is None else state.version.number
    batches = [record.batch for record in (state.last, state.begun) if record is not None]
    version = chosen(
        state,
        plan,
        partial(checkpoint_of(number).look, batches),
        partial(_begins, plan.sources, settings),
        lambda before: written(
            [(sink, stores[sink.store]) for sink in plan.sinks], plan.query_id, before.number
        ),
        restart=restart,
    )
    return version, checkpoint_of(version.number)


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
