"""A query on a real store, run after run by one engine, and with one session of Spark."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from sluice.api.load import load
from sluice.config import Settings
from sluice.core.query.request import query_request
from sluice.core.workloads.request import store_address
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.arrow.query import run_by_arrow
from sluice.pipelines.query.attempt import Run
from sluice.pipelines.query.planning import planned
from sluice.pipelines.query.session import HEAP
from sluice.pipelines.query.spark_query import run_by_spark
from support.store.counts import manifest
from support.until import PATIENT, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from sluice.core.query.plan import QueryRequest
    from support.store.clicks import Clicks


ROUNDS: Final = 70
"""Events of each key in a run. They close at least one window."""


class QueryRuns:
    """A query that counts clicks, run after run.

    Args:
        spark: the session of Spark, which compiles queries for both engines.
        uri: the store's address.
        clicks: the stream.
        folder: the folder of checkpoints.
        engine: what computes batches.

    Attributes:
        heap: bytes that windows may take, and others beside them.
    """

    def __init__(
        self, spark: SparkSession, uri: str, clicks: Clicks, folder: Path, engine: str = "Spark"
    ) -> None:
        self._spark = spark
        self._uri = uri
        self._clicks = clicks
        self.folder = folder
        self._engine = engine
        self._stopped = Event()
        self.settings = Settings(timeouts=PATIENT)
        self.identity = ""
        self.heap = HEAP

    def run(self, **changes: Any) -> int:
        """Run the query over the present events. Return the number of written rows."""
        request = self.request(**changes)
        self.identity = request.query_id
        run = Run.of(request, self.folder, listener=lambda *_: None, heap=self.heap)
        plan, program = planned(self._spark, request)
        with Stores(self.settings) as stores:
            if program is not None:
                return run_by_arrow(plan, program, stores, self.settings, run, sleep=self._sleep)
            return run_by_spark(plan, self._spark, stores, self.settings, run)

    def request(self, **changes: Any) -> QueryRequest:
        """Return the request for the query."""
        changes = {"engine": self._engine, **changes}
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
                self._stop(done)
                with suppress(_Stopped):
                    done.result()

    def _stop(self, done: Future[int]) -> None:
        if self._engine == "Arrow":
            self._stopped.set()
            return
        until("Spark runs it", lambda: done.done() or self._spark.streams.active)
        for stream in self._spark.streams.active:
            stream.stop()

    def _sleep(self, seconds: float) -> None:
        """Wait for a stream's next events, unless the query is stopped."""
        if self._stopped.wait(seconds):
            raise _Stopped


class _Stopped(Exception):
    """The end of a query that Arrow runs."""
