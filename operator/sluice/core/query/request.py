"""Turn a StreamQuery into the request to run it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sluice.api.fields.query_sinks import LiveStream, ResultStream
from sluice.api.kinds.streamquery import QueriedArchive, QueriedStream
from sluice.core.query.plan import (
    EventTime,
    PlannedParameter,
    PlannedSink,
    PlannedSource,
    QueryRequest,
)
from sluice.core.tables.columns import EventFormat, Malformed
from sluice.core.values import identity
from sluice.core.values.model import StreamName

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.fields.ranges import Begin
    from sluice.api.kinds.streamquery import EventTimeSpec as WrittenTime
    from sluice.api.kinds.streamquery import QuerySource, StreamQuery
    from sluice.core.values.model import StoreAddress

    AddressOf = Callable[[str, "Place"], StoreAddress]
    """Gives the address of the store that a place names, by the path of its field."""

Place = QueriedStream | QueriedArchive | ResultStream
"""A part of a query that names a StreamStore."""


def query_id(query: StreamQuery, *, cluster: str) -> str:
    """Return the identity of a query: 32 hexadecimal digits.

    Args:
        query: the resource.
        cluster: tells clusters apart that share a store.
    """
    return identity.copy_id(
        cluster=cluster,
        namespace=query.metadata.namespace,
        name=query.metadata.name,
        identity={"kind": query.kind, **query.spec.identity()},
    )


def query_request(query: StreamQuery, address_of: AddressOf, *, cluster: str) -> QueryRequest:
    """Return the request to run a query.

    Args:
        query: the resource.
        address_of: gives addresses, or raises why a store may not be used.
        cluster: tells clusters apart that share a store.
    """
    spec = query.spec
    return QueryRequest(
        query_id=query_id(query, cluster=cluster),
        sources=tuple(
            _source(source, f"spec.sources[{at}]", address_of)
            for at, source in enumerate(spec.sources)
        ),
        sql=spec.query.sql,
        parameters=tuple(
            PlannedParameter(name=one.name, type=one.type, value=one.value)
            for one in spec.query.parameters
        ),
        keys=spec.result.keys,
        emit=spec.result.emit,
        sinks=tuple(
            PlannedSink(
                stream=StreamName(scope=sink.scope, stream=sink.stream),
                store=address_of(field, sink),
                segments=sink.segments,
                keep_ms=sink.keep_seconds * 1000 if isinstance(sink, LiveStream) else None,
            )
            for field, sink in spec.goals
        ),
        engine=spec.engine,
        once=spec.mode == "Once",
        interval_seconds=spec.trigger.interval_seconds,
        batch_bytes=spec.limits.batch_bytes,
        restart=spec.on_change == "Restart",
    )


def _source(source: QuerySource, field: str, address_of: AddressOf) -> PlannedSource:
    archive = source.archive
    time = source.event_time
    return PlannedSource(
        name=source.name,
        stream=StreamName(scope=source.stream.scope, stream=source.stream.stream),
        store=address_of(f"{field}.stream", source.stream),
        archive=None if archive is None else _below(address_of, field, archive),
        begins=_begins(source.from_),
        format=EventFormat(source.format),
        columns=source.schema_,
        delimiter=source.delimiter,
        malformed=Malformed(source.malformed),
        event_time=None if time is None else _time(time),
    )


def _time(time: WrittenTime) -> EventTime:
    idle = time.idle_after_seconds
    return EventTime(
        column=time.column,
        lateness_ms=time.lateness_seconds * 1000,
        idle_after_ms=None if idle is None else idle * 1000,
    )


def _below(address_of: AddressOf, field: str, archive: QueriedArchive) -> StoreAddress:
    """Return the address of an archive: that of its store, and the path in it."""
    store = address_of(f"{field}.archive", archive)
    return store.model_copy(update={"uri": f"{store.uri.rstrip('/')}/{archive.path}"})


def _begins(begin: Begin) -> str:
    if begin.stream_cut is not None:
        return begin.stream_cut
    if begin.offsets is not None:
        return json.dumps({str(one.segment_id): one.offset for one in begin.offsets})
    return begin.at
