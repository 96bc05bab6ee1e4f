"""Turn a StreamQuery into what its plan says, without what Spark makes of the text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sluice.core.query.plan import EventTime, PlannedParameter, PlannedSink, PlannedSource
from sluice.core.tables.columns import Format, Malformed
from sluice.core.values import identity
from sluice.core.values.model import StreamName

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.api.fields.ranges import Begin
    from sluice.api.kinds.streamquery import (
        QueriedArchive,
        QueriedStream,
        QuerySource,
        ResultStream,
        StreamQuery,
    )
    from sluice.core.values.model import StoreAddress

    AddressOf = Callable[[str, QueriedStream | QueriedArchive | ResultStream], StoreAddress]
    """Gives the address of the store that a place names, by the path of its field."""


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


def planned_sources(query: StreamQuery, address_of: AddressOf) -> list[PlannedSource]:
    """Return the sources of a query."""
    return [
        _source(source, f"spec.sources[{at}]", address_of)
        for at, source in enumerate(query.spec.sources)
    ]


def planned_parameters(query: StreamQuery) -> list[PlannedParameter]:
    """Return the parameters of a query."""
    return [
        PlannedParameter(name=one.name, type=one.type, value=one.value)
        for one in query.spec.query.parameters
    ]


def planned_sinks(query: StreamQuery, address_of: AddressOf) -> list[PlannedSink]:
    """Return the sinks of a query."""
    return [
        PlannedSink(
            stream=StreamName(scope=sink.scope, stream=sink.stream),
            store=address_of(field, sink),
            segments=sink.segments,
        )
        for field, sink in query.spec.goals
    ]


def _source(source: QuerySource, field: str, address_of: AddressOf) -> PlannedSource:
    archive = source.archive
    time = source.event_time
    return PlannedSource(
        name=source.name,
        stream=StreamName(scope=source.stream.scope, stream=source.stream.stream),
        store=address_of(f"{field}.stream", source.stream),
        archive=None if archive is None else _below(address_of, field, archive),
        begins=_begins(source.from_),
        format=Format(source.format),
        columns=source.schema_,
        delimiter=source.delimiter,
        malformed=Malformed(source.malformed),
        event_time=None
        if time is None
        else EventTime(column=time.column, lateness_ms=time.lateness_seconds * 1000),
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
