"""Make the streams that take the results of queries, check them, and delete those that are live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values import identity
from sluice.core.values.model import (
    RetentionType,
    ScaleType,
    Scaling,
    StreamConfig,
    StreamRetention,
)
from sluice.errors import (
    ScopeNotFound,
    StreamNotFound,
    TargetExists,
    TargetReplaced,
    TargetScopeNotFound,
    TargetSealed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.core.query.plan import PlannedSink
    from sluice.core.values.model import Segment, StreamName
    from sluice.stores.base import Store
    from sluice.stores.reading import Topology
    from sluice.stores.writing import Admin


def prepare_sinks(
    sinks: Sequence[tuple[PlannedSink, Store]], query_id: str, *, first: bool
) -> None:
    """Make the streams of sinks, or check that they are as the query left them.

    Args:
        sinks: the sinks and their stores.
        query_id: the query's identity.
        first: whether the query has no ledger, and so begins with its first version.

    Raises:
        TargetExists, TargetReplaced, TargetSealed, TargetScopeNotFound: see `make_sink`.
    """
    for sink, store in sinks:
        if sink.keep_ms is not None:
            make_live(sink, store, query_id)
        else:
            (make_sink if first else check_sink)(sink, store, query_id)


def make_live(sink: PlannedSink, store: Store, query_id: str) -> None:
    """Make the stream of a live sink, if there is none that is as wanted.

    It only shows results, so one that was deleted, sealed or changed is made again.

    Raises:
        TargetExists, TargetReplaced, TargetSealed, TargetScopeNotFound: see `make_sink`.
    """
    found = store.describe(sink.stream)
    if found is not None and (found.sealed or not _is_kept(found.config.retention, sink)):
        drop_live(sink.stream, store, query_id)
    if not _made(sink, store, query_id):
        check_sink(sink, store, query_id)


def renew_live(sinks: Sequence[tuple[PlannedSink, Store]], query_id: str) -> None:
    """Make the streams of live sinks anew. The caller owns the ledger, which has no version.

    What an earlier query of this name has left in them would refuse the rows of this one: the
    numbers of its batches begin anew.

    Args:
        sinks: the sinks and their stores.
        query_id: the query's identity.
    """
    for sink, store in sinks:
        if sink.keep_ms is not None:
            drop_live(sink.stream, store, query_id)
            make_live(sink, store, query_id)


def drop_live(stream: StreamName, store: Store, query_id: str) -> bool:
    """Delete the stream of a live sink; False if there is none that this query has made.

    This is safe to repeat. No driver of the query may be at work.

    Raises:
        BackendError: the store refuses, or does not answer.
    """
    try:
        found = store.describe(stream)
        if found is None or _mark(query_id) not in found.config.tags:
            return False
        if not found.sealed:
            store.seal_stream(stream)
        return store.delete_stream(stream)
    except (ScopeNotFound, StreamNotFound):
        return False


def _mark(query_id: str) -> str:
    """Return the tag of streams that a query has made."""
    return f"{identity.TAG_QUERY}{query_id}"


def check_sink(sink: PlannedSink, store: Topology, query_id: str) -> None:
    """Check that a sink that was made is as the query left it.

    Raises:
        TargetExists: another stream took its place.
        TargetReplaced, TargetSealed: it was deleted, scaled or sealed.
    """
    segments_of(sink, store, query_id)


def make_sink(sink: PlannedSink, store: Store, query_id: str) -> None:
    """Make the stream of a sink if there is none.

    Raises:
        TargetScopeNotFound: its scope does not exist.
        TargetExists: the stream is there, and this query did not make it, or it has rows.
        TargetReplaced, TargetSealed: it was scaled or sealed.
    """
    if _made(sink, store, query_id):
        return
    names = [store.segment_name(sink.stream, one.id) for one in segments_of(sink, store, query_id)]
    if any(info is not None and info.length for info in store.infos(names)):
        raise TargetExists(
            f"{sink.stream} has rows, and the query's ledger beside its first sink is gone",
            remedy="Give the query another sink: it begins anew.",
        )


def _made(sink: PlannedSink, store: Admin, query_id: str) -> bool:
    """Make the stream of a sink; False if there is a stream of this name.

    Raises:
        TargetScopeNotFound: its scope does not exist.
    """
    config = StreamConfig(
        scaling=Scaling(type=ScaleType.FIXED, min_segments=sink.segments),
        retention=_retention(sink),
        tags=tuple(sorted((identity.TAG_MANAGED, _mark(query_id)))),
    )
    try:
        return store.create_stream(sink.stream, config)
    except ScopeNotFound as error:
        raise TargetScopeNotFound(f"there is no scope {sink.stream.scope}") from error


def _retention(sink: PlannedSink) -> StreamRetention:
    """Return how long the store keeps the rows of a sink."""
    if sink.keep_ms is None:
        return StreamRetention()
    return StreamRetention(type=RetentionType.TIME, minimum=sink.keep_ms)


def _is_kept(there: StreamRetention, sink: PlannedSink) -> bool:
    """Tell whether the store keeps rows for as long as a sink asks for."""
    wanted = _retention(sink)
    return (there.type, there.minimum) == (wanted.type, wanted.minimum)


def segments_of(sink: PlannedSink, store: Topology, query_id: str) -> tuple[Segment, ...]:
    """Return the segments of a sink, which are those that it was made with."""
    found = store.describe(sink.stream)
    if found is None:
        raise TargetReplaced(
            f"{sink.stream} was deleted",
            remedy="Give the query another name, or another sink: it begins anew.",
        )
    if _mark(query_id) not in found.config.tags:
        raise TargetExists(f"{sink.stream} exists, and this query did not make it")
    if found.sealed:
        raise TargetSealed(f"{sink.stream} is sealed")
    if len(found.tail) != sink.segments or not all(store.is_original(s.id) for s in found.tail):
        raise TargetReplaced(
            f"{sink.stream} has other segments than the {sink.segments} that it was made with",
            remedy="Name another stream: a query appends to segments that stay.",
        )
    return found.tail
