"""Run a query to its end, and write the times of its batches as Spark tells them.

Run it as `python -m bench.query.batches URI FILE FOLDER TIMES`. The file TIMES gets a JSON array
with an object for each batch: milliseconds by the names of Spark's phases.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from sluice.api.load import load
from sluice.config import Settings
from sluice.core.query.request import query_request
from sluice.core.values.model import StoreAddress
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.attempt import Run
from sluice.pipelines.query.planning import planned
from sluice.pipelines.query.session import query_session
from sluice.pipelines.query.spark_query import run_by_spark
from support.until import until

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryProgressEvent


class Times(StreamingQueryListener):
    """Keep the times of the batches of a query.

    Attributes:
        batches: milliseconds of each batch by phase.
        ended: whether the query has ended, after all of its batches.
    """

    def __init__(self) -> None:
        self.batches: list[dict[str, int]] = []
        self.ended = False

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take no notice."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Keep the times of a batch."""
        self.batches.append(dict(event.progress.durationMs))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Take no notice."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Remember the end."""
        del event
        self.ended = True


def main() -> None:
    """Run the query of a file."""
    uri, file, folder, told = sys.argv[1:]
    (query,) = load(Path(file).read_text(), copies=False).queries
    request = query_request(query, lambda *_: StoreAddress(uri=uri), cluster="bench")
    times = Times()
    settings = Settings()
    with Stores(settings) as stores, query_session(2) as spark:
        session = spark.newSession()
        session.streams.addListener(times)
        run = Run.of(request, Path(folder) / "checkpoints", listener=lambda *_: None)
        run_by_spark(planned(session, request).plan, session, stores, settings, run)
        until("Spark has told of all batches", lambda: times.ended)
    Path(told).write_text(json.dumps(times.batches))


if __name__ == "__main__":
    main()
