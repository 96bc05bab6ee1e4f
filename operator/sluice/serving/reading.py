"""Read the rows of a result in a thread, and hand them to the event loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from sluice.engine.query.tail import follow_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.core.query.recent import Rows
    from sluice.core.values.model import StreamName
    from sluice.serving.hub import Hub
    from sluice.stores.base import Store


class RowSource(NamedTuple):
    """A place from which rows may be read. Another one is another result.

    Attributes:
        store: the store, opened with the present keys.
        stream: the stream.
        query_id: the identity of the query that made it.
        uid: the UID of the resource.
    """

    store: Store
    stream: StreamName
    query_id: str
    uid: str


class RowsReader:
    """Reads the rows of a result for a hub, until it is told to end.

    Args:
        hub: the hub, which only the event loop uses.
        result: the result.
    """

    def __init__(self, hub: Hub, result: RowSource) -> None:
        self._hub = hub
        self._result = result
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()

    def run(self) -> None:
        """Read in this thread. Raises as `follow_rows`."""
        store, stream, query_id, _ = self._result
        rows = follow_rows(store, stream, query_id)
        self._loop.call_soon_threadsafe(self._begin, next(rows))
        for found in rows:
            if self._ended.is_set():
                return
            if found.texts or found.skipped:
                self._loop.call_soon_threadsafe(self._add, found)

    def end(self) -> None:
        """Hand out no more rows, and end the thread once its call to the store has ended."""
        self._ended.set()

    def _begin(self, rows: Rows) -> None:
        if not self._ended.is_set():
            self._hub.begin(rows)
            self._hub.set_problem({})

    def _add(self, rows: Rows) -> None:
        if not self._ended.is_set():
            self._hub.add(rows)


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
        with suppress(RuntimeError):  # the loop is closed, and no caller waits
            loop.call_soon_threadsafe(tell, failed)

    threading.Thread(target=run, daemon=True).start()
    await done
