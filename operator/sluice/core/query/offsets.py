"""The file in which Spark's checkpoint says which batch it planned.

Its lines: the format's version, metadata as JSON, and the end of each source as the source wrote
it (`org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

from sluice.errors import CheckpointDiverged


class PlannedOffsets(NamedTuple):
    """What such a file says.

    Attributes:
        watermark: that of the batch, in milliseconds since 1970.
        ends: a line for each source.
    """

    watermark: int
    ends: list[str]


def parse_offsets(text: str) -> PlannedOffsets:
    """Parse the file of a batch.

    Raises:
        CheckpointDiverged: Spark cannot have written it.
    """
    try:
        _, about, *ends = text.splitlines()
        mark = json.loads(about)["batchWatermarkMs"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointDiverged(f"not the offsets of a batch: {error}") from error
    if type(mark) is not int:  # Spark writes a whole number; True and 1e999 are none
        raise CheckpointDiverged("not the offsets of a batch: its watermark is no whole number")
    return PlannedOffsets(mark, ends)
