"""A query on a real store, run after run in one session of Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.api.load import load
from sluice.config import Settings
from sluice.core.query.request import query_request
from sluice.core.workloads.request import store_address
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.compile import planned
from sluice.pipelines.query.program import Run, run_query
from sluice.pipelines.query.session import HEAP
from support.store.counts import manifest
from support.until import PATIENT, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sluice.core.query.plan import QueryRequest
    from support.store.clicks import Clicks


class QueryRuns:
    """A query that counts clicks, run after run in one session of Spark.

    Args:
        spark: the session.
        uri: the store's address.
        clicks: the stream.
        folder: the folder of checkpoints.

    Attributes:
        heap: bytes of the JVM's heap, as the query is told.
    """

    def __init__(self, spark: SparkSession, uri: str, clicks: Clicks, folder: Path) -> None:
        self._spark = spark
        self._uri = uri
        self._clicks = clicks
        self.folder = folder
        self.settings = Settings(timeouts=PATIENT)
        self.identity = ""
        self.heap = HEAP

    def run(self, **changes: Any) -> int:
        """Run the query over the present events. Return the number of written rows."""
        request = self.request(**changes)
        self.identity = request.query_id
        run = Run.of(request, self.folder, listener=lambda *_: None, heap=self.heap)
        plan = planned(self._spark, request)
        with Stores(self.settings) as stores:
            return run_query(plan, self._spark, stores, self.settings, run)

    def request(self, **changes: Any) -> QueryRequest:
        """Return the request for the query."""
        resources = load(manifest(self._uri, self._clicks.name, **changes), copies=False)
        (query,) = resources.queries
        address = store_address(*resources.stores.values())
        request = query_request(query, lambda *_: address, cluster="local")
        return request.model_copy(update={"batch_bytes": 64 << 10})

    @contextmanager
    def running(self, **changes: Any) -> Iterator[None]:
        """Run the query in the background during a block, in the mode Continuous."""
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(self.run, mode="Continuous", **changes)
            try:
                yield
            finally:
                until("Spark runs it", lambda: done.done() or self._spark.streams.active)
                for stream in self._spark.streams.active:
                    stream.stop()
                done.result()
