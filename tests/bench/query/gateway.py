"""Run a gateway for one query without an API server: `python -m bench.query.gateway URI`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, cast

from bench.query.viewers import STREAM, TOKEN
from sluice.api.load import load
from sluice.api.status.query_status import StreamQueryStatus
from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.serving.access import OneToken
from sluice.serving.app import Address, Gateway, serving
from sluice.serving.board import Boards
from sluice.serving.queries import FoundQuery, Queries, QueryName
from sluice.serving.reading import RowSource
from sluice.serving.shares import Shares
from sluice.stores.connect import connect
from support.store.counts import manifest
from support.store.rows import QUERY_ID

if TYPE_CHECKING:
    from sluice.api.kinds.streamquery import StreamQuery
    from sluice.stores.base import Store


class OneQuery(Queries):
    """A query that does not change."""

    def __init__(self, resource: StreamQuery, store: Store) -> None:
        unused = cast("Any", None)
        super().__init__(unused, unused, Shares("queries", 1, alone=True), lambda _: None)
        self._resource = resource
        self._store = store

    async def look(self, name: QueryName) -> FoundQuery:
        """Return the query, as `Queries.look` does."""
        body = {
            "metadata": {"namespace": name.namespace, "name": name.name, "uid": "bench"},
            "status": {"queryID": QUERY_ID},
        }
        status = StreamQueryStatus.read(body["status"])
        return FoundQuery(body, self._resource, status, STREAM)

    async def open(self, seen: FoundQuery) -> RowSource:
        """Return the source of its rows, as `Queries.open` does."""
        return RowSource(self._store, seen.sink, QUERY_ID, "bench")


async def main(uri: str) -> None:
    """Serve until a signal ends the process."""
    text = manifest(uri, StreamName(scope=STREAM.scope, stream="clicks"))
    (resource,) = load(text, copies=False).queries
    store = connect(StoreAddress(uri=uri), Settings())
    boards = Boards(cast("Any", None), ["bench"])
    gateway = Gateway(OneToken(TOKEN), boards, OneQuery(resource, store))
    async with serving(gateway, Address("127.0.0.1", 0)) as address:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
