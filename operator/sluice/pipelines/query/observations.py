"""Count the events of each batch that come behind its watermark, or do not fit the schema.

Spark counts what it leaves out only after it has joined events of one window, so its number is too
small. An observation of the source counts each event.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from sluice.core.tables.columns import BEAT, DROPPED, WATERMARK
from sluice.core.values import text
from sluice.pipelines.spark.lost import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sluice.core.query.plan import EventTime

_log = structlog.get_logger()

_OBSERVED: Final = "_sluice_late_"
"""The observation of a source has this name, followed by the source's."""


_MOST: Final = (1 << 40) - 1
"""The largest number in a record of a ledger."""

_BATCHES: Final = 100
"""The last batches whose times are remembered."""

_MALFORMED: Final = "_sluice_malformed_"
"""Likewise."""


class BatchCounts(NamedTuple):
    """The events of a batch that were left out, or may have been.

    Attributes:
        late: those behind the watermark. Those of closed windows are left out.
        malformed: those that do not fit format and schema.
    """

    late: int = 0
    malformed: int = 0


def without_dropped(table: DataFrame, name: str) -> DataFrame:
    """Observe the number of malformed events of a source, and leave out the rows that tell it.

    Args:
        table: the source, with the column DROPPED.
        name: the source's name in the query.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - comes with Spark

    seen = table.observe(f"{_MALFORMED}{name}", f.sum(DROPPED).alias("events"))
    return seen.where(f.col(DROPPED).isNull()).drop(DROPPED)


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


def counts_of(spark: SparkSession, batch: int) -> BatchCounts:
    """Return the events of the batch that Spark has just read which are no rows, and log them.

    Args:
        spark: the session whose only query it is.
        batch: the batch, for the log.
    """
    try:
        return _told(spark, batch)
    except Exception as error:  # noqa: BLE001 - no number is worth the end of a query
        _log.exception("events could not be counted", batch=batch, error=first_line(error))
        return BatchCounts()


def _told(spark: SparkSession, batch: int) -> BatchCounts:
    (query,) = spark.streams.active
    # PySpark has no public way to it.
    told: Any = query._jsq.streamingQuery().lastExecution().observedMetrics()  # noqa: SLF001
    names = told.keysIterator()
    late = malformed = 0
    while names.hasNext():
        name = str(names.next())
        row = told.apply(name)
        number = 0 if row.isNullAt(0) else int(row.getLong(0))
        if number and name.startswith(_OBSERVED):
            late += number
            log_late(name.removeprefix(_OBSERVED), batch, number, row.getLong(1) // 1000)
        elif number and name.startswith(_MALFORMED):
            malformed += number
            log_malformed(name.removeprefix(_MALFORMED), batch, number)
    return BatchCounts(_bounded(late), _bounded(malformed))


def log_late(source: str, batch: int, late: int, oldest: int) -> None:
    """Log how many events came behind the watermark, and the time of the oldest, if any did."""
    if late:
        _log.warning(
            "events came behind the watermark; those of closed windows are left out",
            source=source,
            batch=batch,
            late=late,
            oldest=text.instant(oldest),
        )


def log_malformed(source: str, batch: int, malformed: int) -> None:
    """Log how many events do not fit, if any."""
    if malformed:
        _log.warning(
            "events do not fit format and schema, and are left out",
            source=source,
            batch=batch,
            malformed=malformed,
        )


class BatchProgress(NamedTuple):
    """How the last batch that has ended went.

    Attributes:
        batch: its number.
        millis: how long it took.
        state_rows: the rows of windows, and of whatever else Spark keeps; 0 for Arrow, which counts
            its own.
        state_bytes: the memory of these.
    """

    batch: int
    millis: int
    state_rows: int
    state_bytes: int


def last_progress(spark: SparkSession) -> BatchProgress | None:
    """Return how the last batch went; None before the first, and if Spark does not tell.

    Args:
        spark: the session whose only query it is.
    """
    try:
        (query,) = spark.streams.active
        told: Any = query._jsq.lastProgress()  # noqa: SLF001 - PySpark has no public way to it
        if told is None:
            return None
        states = list(told.stateOperators())
        return BatchProgress(
            batch=int(told.batchId()),
            millis=_bounded(int(told.durationMs().get("triggerExecution") or 0)),
            state_rows=_bounded(sum(int(one.numRowsTotal()) for one in states)),
            state_bytes=_bounded(sum(int(one.memoryUsedBytes()) for one in states)),
        )
    except Exception as error:  # noqa: BLE001 - as above
        _log.exception("the last batch could not be measured", error=first_line(error))
        return None


def _bounded(number: int) -> int:
    """Return a number as a ledger takes it, whatever Spark has counted."""
    return max(0, min(number, _MOST))


class BatchTimes:
    """How long the last batches took."""

    def __init__(self) -> None:
        self._last = -1
        self._millis: deque[int] = deque(maxlen=_BATCHES)

    def after(self, progress: BatchProgress | None) -> tuple[int, int] | None:
        """Take in how the last batch went, once. Return the median and the 99th percentile.

        Args:
            progress: of the last batch; None if it is not known.

        Returns:
            Milliseconds; None before the first batch.
        """
        if progress is not None and progress.batch > self._last:
            self._last = progress.batch
            self._millis.append(progress.millis)
        if not self._millis:
            return None
        found = sorted(self._millis)
        return found[(len(found) - 1) // 2], found[(len(found) - 1) * 99 // 100]
