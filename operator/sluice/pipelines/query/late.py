"""Count the events of each batch that come behind its watermark.

Spark counts what it leaves out only after it has joined events of one window, so its number is too
small. An observation of the source counts each event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from sluice.core.tables.columns import BEAT, WATERMARK
from sluice.core.values import text
from sluice.pipelines.spark.lost import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from sluice.core.query.plan import EventTime

_log = structlog.get_logger()

_OBSERVED: Final = "_sluice_late_"
"""The observation of a source has this name, followed by the source's."""


def observed(table: DataFrame, name: str, time: EventTime) -> DataFrame:
    """Observe the late events of a source. Leave out the columns that its reader fills in.

    Beats are left out, too. Spark moves a filter before the watermark if it does not name the event
    time, and beats would never reach the watermark: they have no values for a filter of the query.
    It moves none before an observation.

    Args:
        table: the source, behind its watermark.
        name: the source's name in the query.
        time: its event time.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - comes with Spark

    at = f.unix_micros(f.col(f"`{time.column}`").cast("timestamp"))
    late = at < f.col(WATERMARK) * 1000
    seen = table.observe(
        f"{_OBSERVED}{name}",
        f.count(f.when(late, 1)).alias("events"),
        f.min(f.when(late, at)).alias("oldest"),
    )
    if time.idle_after_ms is not None:
        seen = seen.where(~f.col(BEAT))
    return seen.drop(BEAT, WATERMARK)


def late_events(spark: SparkSession, batch: int) -> int:
    """Return how many events of the batch that Spark has just read are late, and log each source.

    Args:
        spark: the session whose only query it is.
        batch: the batch, for the log.
    """
    try:
        return sum(_told(spark, batch))
    except Exception as error:  # noqa: BLE001 - no number is worth the end of a query
        _log.exception("late events could not be counted", batch=batch, error=first_line(error))
        return 0


def _told(spark: SparkSession, batch: int) -> Iterator[int]:
    """Yield the number of late events of each source that has some, and log it."""
    (query,) = spark.streams.active
    told: Any = query._jsq.streamingQuery().lastExecution().observedMetrics()  # noqa: SLF001
    names = told.keysIterator()
    while names.hasNext():
        name = str(names.next())
        row = told.apply(name)
        late = int(row.getLong(0)) if name.startswith(_OBSERVED) else 0
        if late:
            yield late
            _log.warning(
                "events came behind the watermark; those of closed windows are left out",
                source=name.removeprefix(_OBSERVED),
                batch=batch,
                late=late,
                oldest=text.instant(row.getLong(1) // 1000),
            )
