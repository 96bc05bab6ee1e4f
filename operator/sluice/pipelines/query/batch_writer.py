"""Write the batches that Spark computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.core.query.rows import ResultRow
from sluice.engine.query.batches import check_state
from sluice.errors import InfrastructureError
from sluice.pipelines.query.observations import BatchTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from sluice.engine.query.batches import BatchAppender
    from sluice.pipelines.query.checkpoint import SparkCheckpoint
    from sluice.pipelines.query.observations import BatchCounts, BatchProgress


class BatchWriter:
    """Takes Spark's batches, and writes them.

    Args:
        batches: writes them.
        checkpoint: the checkpoint of the version.
        counts: returns the events that are no rows, of the batch that was read last.
        progress: returns how the last batch went.
        most_state: see `attempt.Run`.

    Attributes:
        failure: what ended a batch; None if nothing has.
    """

    def __init__(
        self,
        batches: BatchAppender,
        checkpoint: SparkCheckpoint,
        *,
        counts: Callable[[int], BatchCounts],
        progress: Callable[[], BatchProgress | None],
        most_state: int,
    ) -> None:
        self._batches = batches
        self.checkpoint = checkpoint
        self._counts = counts
        self._progress = progress
        self._most_state = most_state
        self._times = BatchTimes()
        self.failure: BaseException | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch, as `compile.events_of` has its rows.

        Spark calls this again for a batch that it does not know to be done.
        """
        try:
            self._write(frame, batch)
        except BaseException as error:
            self.failure = error
            # Py4J answers the JVM for an Exception only, and Spark would wait for the answer.
            raise InfrastructureError(f"the batch ended: {error!r}") from error

    def _write(self, frame: DataFrame, batch: int) -> None:
        taken = frame.toArrow()
        counts = self._counts(batch)
        progress = self._progress()
        if progress is not None:
            check_state(progress.state_rows, progress.state_bytes, self._most_state)
        planned = self.checkpoint.planned(batch)
        self._batches.write(
            batch,
            planned.ends,
            map(ResultRow, *(column.to_pylist() for column in taken.columns)),
            watermark=planned.watermark,
            late=counts.late,
            malformed=counts.malformed,
            **self._measured(progress),
        )

    def _measured(self, progress: BatchProgress | None) -> dict[str, Any]:
        """Return what a record says of the last batch; of an earlier one, if it is not known."""
        latency = self._times.after(progress)
        last = self._batches.state.last
        if progress is None and last is not None:
            kept = {"state_rows": last.state_rows, "state_bytes": last.state_bytes}
            return {**kept, "latency": latency or last.latency}
        return {
            "state_rows": 0 if progress is None else progress.state_rows,
            "state_bytes": 0 if progress is None else progress.state_bytes,
            "latency": latency,
        }
