"""Look at StreamQueries for their viewers: at the API server, and at their rows in the store."""

from __future__ import annotations

import asyncio
import threading
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
from sluice.engine.query.tail import follow_rows
from sluice.errors import InvalidSpec, SluiceError, SourceNotFound, StoreBusy, StoreNotFound
from sluice.kube.api.kinds import STREAM_QUERY, STREAM_STORE
from sluice.kube.api.objects import parse
from sluice.serving.hub import Hub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sluice.core.query.result_columns import ResultColumn
    from sluice.kube.api.client import Api
    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.stores.base import Store

    _Json = dict[str, Any]

_log = structlog.get_logger()

QUERY: Final = next(kind for kind in KINDS if kind.model is StreamQuery)

LOOK: Final = 2.0
"""Seconds from one look at a query to the next."""

REST: Final = 5.0
"""Seconds after a failure until the rows are read again."""

LINGER: Final = 30.0
"""Seconds for which a query is followed after its last viewer has left, who may come again."""

MOST_QUERIES: Final = 64
"""The most queries that are followed at a time. Each has a thread and a few MiB."""


class Name(NamedTuple):
    """The name of a query."""

    namespace: str
    name: str


class Seen(NamedTuple):
    """A query as the API server has it.

    Attributes:
        body: the object.
        resource: the same as a model.
        sink: the first stream that takes its results.
    """

    body: Object
    resource: StreamQuery
    sink: StreamName


class Queries:
    """The queries that are looked at.

    Args:
        api: the API server.
        connections: connections to the stores.
        link: gives the address of the page about a reason, if it is known.
    """

    def __init__(
        self, api: Api, connections: Connections, link: Callable[[str], str | None]
    ) -> None:
        self._api = api
        self._link = link
        self._connections = connections
        self._watched: dict[Name, _Watched] = {}

    async def look(self, name: Name) -> Seen:
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
        return Seen(body, resource, StreamName(scope=sink.scope, stream=sink.stream))

    def state(self, seen: Seen) -> _Json:
        """Return the state of a query, as its page shows it."""
        told = state_of(seen)
        return told | {"documentation": self._link(told["reason"])}

    async def open(self, seen: Seen) -> Store:
        """Connect to the store that has a query's results, with the keys of its namespace.

        Raises:
            StoreNotFound: the StreamStore is not there.
            AccessDenied: it may not be used.
            SluiceError: see `Connections.get`.
        """
        (field, sink), *_ = seen.resource.spec.goals
        namespace = seen.resource.metadata.namespace
        body = await self._api.get(STREAM_STORE, namespace, sink.ref.name)
        if body is None:
            raise StoreNotFound(f"there is no StreamStore {sink.ref.name!r}", field=field)
        store = parse(body, StreamStore)
        access.check_queried(store.spec, sink, field=field)
        return await self._connections.get(namespace, store_address(store), strict=True)

    @asynccontextmanager
    async def watched(self, name: Name) -> AsyncIterator[Hub]:
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
            if len(self._watched) >= MOST_QUERIES:
                raise StoreBusy(
                    f"viewers follow {MOST_QUERIES} queries, and no more at a time",
                    remedy="Close pages that nobody looks at, or run another gateway.",
                )
            watched = self._watched[name] = _Watched(self, name, first)
        watched.viewers += 1
        try:
            yield watched.hub
        finally:
            watched.viewers -= 1
            if not watched.viewers:
                asyncio.get_running_loop().call_later(LINGER, self._leave, name, watched)

    def _leave(self, name: Name, watched: _Watched) -> None:
        """Stop following a query, unless somebody looks at it again."""
        if not watched.viewers and self._watched.get(name) is watched:
            del self._watched[name]
            watched.stop()

    def close(self) -> None:
        """Stop following all queries."""
        for watched in self._watched.values():
            watched.stop()
        self._watched.clear()


class _Watched:
    """A query that is followed by two tasks: one for its state, and one for its rows."""

    def __init__(self, queries: Queries, name: Name, first: Seen) -> None:
        self.hub = Hub()
        self.viewers = 0
        self._queries = queries
        self._name = name
        self.hub.set_state(queries.state(first))
        self._tasks = [
            asyncio.create_task(self._keep_state()),
            asyncio.create_task(self._keep_rows()),
        ]

    def stop(self) -> None:
        """End the tasks."""
        for task in self._tasks:
            task.cancel()

    async def _keep_state(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                seen = await self._queries.look(self._name)
                self.hub.set_state(self._queries.state(seen))
            except SluiceError as error:
                self.hub.set_state(self._gone(error))

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

    async def _keep_rows(self) -> None:
        while True:
            try:
                seen = await self._queries.look(self._name)
                store = await self._queries.open(seen)
                await self._follow(store, seen.sink)
            except SourceNotFound:
                self.hub.set_problem({})  # the query makes the stream when it begins
            except SluiceError as error:
                _log.info("rows cannot be read", query="/".join(self._name), error=str(error))
                self.hub.set_problem(
                    {"error": printable(str(error)), "remedy": printable(error.remedy)}
                )
            await asyncio.sleep(REST)

    async def _follow(self, store: Store, sink: StreamName) -> None:
        """Follow the rows in a thread, until that fails or this task is cancelled."""
        loop, ended = asyncio.get_running_loop(), threading.Event()

        def follow() -> None:
            rows = follow_rows(store, sink)
            begun = next(rows)
            loop.call_soon_threadsafe(self.hub.begin, begun)
            loop.call_soon_threadsafe(self.hub.set_problem, {})
            for found in rows:
                if ended.is_set():
                    return
                if found.texts or found.skipped:
                    loop.call_soon_threadsafe(self.hub.add, found)

        try:
            await in_thread(follow)
        finally:
            ended.set()


async def in_thread(work: Callable[[], None]) -> None:
    """Run blocking work in a thread of its own, which outlives this call if it is cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failed: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            failed = error
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(tell, failed)

    threading.Thread(target=run, daemon=True).start()
    await done


def state_of(seen: Seen) -> _Json:
    """Return the state of a query, as its page shows it."""
    meta = seen.resource.metadata
    one = followed(Named(QUERY, meta.namespace, meta.name), seen.body)
    status = StreamQueryStatus.read(seen.body.get("status"))
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
