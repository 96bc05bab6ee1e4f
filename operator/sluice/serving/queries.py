"""Look at StreamQueries for their viewers: at the API server, and at their rows in the store."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from sluice.administration.description import Description
from sluice.administration.following import followed
from sluice.administration.naming import Named
from sluice.api.kinds.streamquery import StreamQuery
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.registry import KINDS
from sluice.api.status.common import ConditionType
from sluice.api.status.query_status import StreamQueryStatus
from sluice.console.page import printable
from sluice.console.web.views import state_word
from sluice.core.query.result_columns import result_columns
from sluice.core.values.model import StreamName
from sluice.core.workloads import access
from sluice.core.workloads.request import store_address
from sluice.errors import (
    ApiUnavailable,
    BackendError,
    InvalidSpec,
    SluiceError,
    SourceNotFound,
    StoreNotFound,
)
from sluice.kube.api.kinds import STREAM_QUERY, STREAM_STORE
from sluice.kube.api.objects import parse
from sluice.serving.hub import Hub
from sluice.serving.reading import RowSource, RowsReader, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sluice.core.query.result_columns import ResultColumn
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.serving.shares import Shares

    _Json = dict[str, Any]

_log = structlog.get_logger()

QUERY: Final = next(kind for kind in KINDS if kind.model is StreamQuery)

LOOK: Final = 2.0
"""Seconds from one look at a query to the next."""

REST: Final = 5.0
"""Seconds after a failure until the rows are read again."""

MOST_QUERIES: Final = 64
"""The most queries that are followed at a time. Each has a thread and a few MiB."""

AWAY: Final = 300.0
"""Seconds for which rows are shown though the API server does not say that they still may be."""

LINGER: Final = 30.0
"""Seconds for which a query is followed after its last viewer has left, who may come again."""


class QueryName(NamedTuple):
    """The name of a query."""

    namespace: str
    name: str


class FoundQuery(NamedTuple):
    """A query as the API server has it.

    Attributes:
        body: the object.
        resource: the same as a model.
        status: its status.
        sink: the first stream that takes its results.
    """

    body: Object
    resource: StreamQuery
    status: StreamQueryStatus
    sink: StreamName


class Queries:
    """The queries that are looked at.

    Args:
        api: the API server.
        connections: connections to the stores.
        shares: places for queries that are followed.
        link: gives the address of the page about a reason, if it is known.
    """

    def __init__(
        self,
        api: Api,
        connections: Connections,
        shares: Shares,
        link: Callable[[str], str | None],
    ) -> None:
        self._api = api
        self._connections = connections
        self._shares = shares
        self._link = link
        self._watched: dict[QueryName, _Watched] = {}

    async def look(self, name: QueryName) -> FoundQuery:
        """Read a query.

        Raises:
            InvalidSpec: there is none of this name, or this version cannot read it.
            ApiUnavailable: the API server cannot be asked.
        """
        body = await self._api.get(STREAM_QUERY, name.namespace, name.name)
        if body is None:
            raise InvalidSpec(
                f"there is no StreamQuery {name.name!r} in namespace {name.namespace!r}",
                remedy="Look for it among all resources.",
            )
        resource = parse(body, StreamQuery)
        (_, sink), *_ = resource.spec.goals
        status = StreamQueryStatus.read(body.get("status"))
        return FoundQuery(body, resource, status, StreamName(scope=sink.scope, stream=sink.stream))

    def state(self, seen: FoundQuery) -> _Json:
        """Return the state of a query, as its page shows it."""
        told = state_of(seen)
        return told | {"documentation": self._link(told["reason"])}

    async def open(self, seen: FoundQuery) -> RowSource | None:
        """Connect to the store that has a query's results, with the present keys.

        Returns:
            None if the operator has not looked at the query, which then has no result.

        Raises:
            StoreNotFound: the StreamStore is not there.
            AccessDenied: it does not allow to read the sink.
            SluiceError: see `Connections.get`.
        """
        if seen.status.query_id is None:
            return None
        (field, sink), *_ = seen.resource.spec.goals
        namespace = seen.resource.metadata.namespace
        body = await self._api.get(STREAM_STORE, namespace, sink.ref.name)
        if body is None:
            raise StoreNotFound(
                f"there is no StreamStore {sink.ref.name!r}", field=f"{field}.{sink.store_field}"
            )
        found = parse(body, StreamStore)
        access.check_shown(found.spec, sink, field=field)
        store = await self._connections.get(namespace, store_address(found), strict=True)
        uid: str = seen.body["metadata"]["uid"]
        return RowSource(store, seen.sink, seen.status.query_id, uid)

    @asynccontextmanager
    async def watched(self, name: QueryName) -> AsyncIterator[Hub]:
        """Follow a query in the block, together with all others who do.

        Raises:
            InvalidSpec: there is no such query.
            StoreBusy: too many queries are followed.
            ApiUnavailable: the API server cannot be asked.
        """
        watched = self._watched.get(name)
        if watched is None:
            first = await self.look(name)
            watched = self._watched.get(name)  # another viewer may have come meanwhile
        if watched is None:
            state = self.state(first)  # before a place is taken, which an error would keep
            self._shares.take(name.namespace)
            watched = self._watched[name] = _Watched(self, name, state)
        watched.viewers += 1
        try:
            yield watched.hub
        finally:
            watched.viewers -= 1
            if not watched.viewers:
                asyncio.get_running_loop().call_later(LINGER, self._leave, name, watched)

    def _leave(self, name: QueryName, watched: _Watched) -> None:
        """Stop following a query, unless a viewer is back."""
        if not watched.viewers and self._watched.get(name) is watched:
            del self._watched[name]
            self._shares.give_back(name.namespace)
            watched.stop()

    def close(self) -> None:
        """Stop following all queries."""
        for watched in self._watched.values():
            watched.stop()
        self._watched.clear()


class _Watched:
    """A query that is followed: a task looks at it again and again, a thread reads its rows."""

    def __init__(self, queries: Queries, name: QueryName, state: _Json) -> None:
        self.hub = Hub()
        self.viewers = 0
        self._queries = queries
        self._name = name
        self._looked = time.monotonic()
        self.hub.set_state(state)
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        """End the task."""
        self._task.cancel()

    async def _run(self) -> None:
        """Show the rows, as long as they may be shown."""
        while True:
            try:
                result = await self._find()
                if result is not None:
                    await self._follow(result)
                    continue
                self.hub.clear()
            except SourceNotFound:
                self.hub.clear()
                self.hub.set_problem({})  # the query makes the stream when it begins
            except SluiceError as error:
                _log.info("rows cannot be read", query="/".join(self._name), error=str(error))
                self._tell(error)
            except Exception:  # noqa: BLE001 - or else the page would stand still without a word
                _log.exception("a query cannot be shown", query="/".join(self._name))
                self._tell(InvalidSpec("the gateway has a fault: its log says more"))
            await asyncio.sleep(REST)

    def _tell(self, error: SluiceError) -> None:
        """Tell why rows cannot be read. Those that may not be shown any more are forgotten."""
        if not isinstance(error, BackendError):
            self.hub.clear()
        self.hub.set_problem({"error": printable(str(error)), "remedy": printable(error.remedy)})

    async def _find(self) -> RowSource | None:
        """Look at the query, show its state, and return where its rows are."""
        try:
            seen = await self._queries.look(self._name)
        except SluiceError as error:
            self.hub.set_state(self._gone(error))
            raise
        self.hub.set_state(self._queries.state(seen))
        found = await self._queries.open(seen)
        self._looked = time.monotonic()
        return found

    async def _still(self, result: RowSource) -> bool:
        """Tell whether rows may still be read from there."""
        try:
            return await self._find() == result
        except ApiUnavailable:
            if time.monotonic() - self._looked > AWAY:
                raise
            return True

    def _gone(self, error: SluiceError) -> _Json:
        return {
            "namespace": self._name.namespace,
            "name": self._name.name,
            "state": "stalled",
            "ready": "-",
            "reason": error.reason,
            "message": printable(str(error)),
            "next": printable(error.remedy),
            "now": datetime.now(UTC).isoformat(),
        }

    async def _follow(self, result: RowSource) -> None:
        """Follow the rows in a thread, until they are to be read from elsewhere.

        Raises:
            SluiceError: they cannot be read, or may not be read any more.
        """
        reader = RowsReader(self.hub, result)
        work = asyncio.ensure_future(in_thread(reader.run))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=LOOK)
                if not work.done() and not await self._still(result):
                    self.hub.clear()
                    return
            work.result()
        finally:
            reader.end()
            work.cancel()


def state_of(seen: FoundQuery) -> _Json:
    """Return the state of a query, as its page shows it."""
    meta = seen.resource.metadata
    one = followed(Named(QUERY, meta.namespace, meta.name), seen.body)
    status = seen.status
    found = Description(one.resource, seen.body, status)
    ready = status.condition(ConditionType.READY)
    progress, version = status.progress, status.version
    columns = _columns("" if version is None else version.columns)
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "state": state_word(one),
        "ready": "-" if ready is None else ready.status,
        "reason": "" if ready is None else ready.reason,
        "message": "" if ready is None else printable(ready.message),
        "next": printable(found.next_step),
        "version": None if version is None else version.number,
        "batch": None if progress is None else progress.batch,
        "rows": None if progress is None else progress.rows,
        "lag": None if progress is None else progress.lag,
        "lagBytes": None if progress is None else progress.lag_bytes,
        "malformedEvents": None if progress is None else progress.malformed_events,
        "latency": None if progress is None else progress.latency_summary,
        "stateRows": None if progress is None else progress.state_rows,
        "lateEvents": None if progress is None else progress.late_events,
        "watermark": None if progress is None else _time(progress.watermark),
        "readTime": None if progress is None else _time(progress.time),
        "columns": [{"name": one.name, "type": one.type} for one in columns],
        "keys": list(seen.resource.spec.result.keys),
        "time": next((one.name for one in columns if one.type == "TIMESTAMP"), None),
        "sql": seen.resource.spec.query.sql,
        "sink": str(seen.sink),
        "now": datetime.now(UTC).isoformat(),
    }


def _columns(ddl: str) -> tuple[ResultColumn, ...]:
    """Return the columns of a result; none if the status has others than Spark writes."""
    with suppress(InvalidSpec):
        return result_columns(ddl)
    return ()


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
