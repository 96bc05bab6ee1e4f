"""A result of a query, which a test writes as the query would, batch by batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sluice.core.query.plan import PlannedSink
from sluice.core.query.rows import ResultRow, in_order
from sluice.core.values.model import StoreAddress
from sluice.engine.query.results import ResultAppender
from sluice.engine.query.sinks import make_sink

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store

QUERY_ID = "f" * 32
_MOST = 1000


class ResultRows:
    """A new result stream of two segments, in a scope that exists.

    Args:
        store: its store.
        uri: the store's address.
        stream: the stream.

    Attributes:
        rows: the rows that were written.
    """

    def __init__(self, store: Store, uri: str, stream: StreamName) -> None:
        sink = PlannedSink(stream=stream, store=StoreAddress(uri=uri), segments=2)
        make_sink(sink, store, QUERY_ID)
        self.rows: list[dict[str, Any]] = []
        self._appender = ResultAppender(sink, store, QUERY_ID, 1)
        self._batch = 0

    def __enter__(self) -> Self:
        """Enter the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        self._appender.close()

    def add(self, rows: Iterable[dict[str, Any]], key: str = "k") -> None:
        """Append a batch of rows, which are routed by a column."""
        new = [*rows]
        self.rows += new
        events = in_order(ResultRow(str(row[key]), json.dumps(row)) for row in new)
        self._appender.append(self._batch, events, _MOST)
        self._batch += 1
