"""Tell the rows of a batch which watermark Spark has for it, so that late events can be counted.

Spark leaves out events of closed windows, and tells no source and no query which. It writes the
watermark of a batch into its checkpoint before it asks a source for the batch's partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark_sluice.batch import SegmentPartition
from sluice.core.query.offsets import parse_offsets
from sluice.errors import CheckpointDiverged

_MOST: Final = 1 << 53
"""The farthest from 1970 that a watermark is told, in milliseconds: in microseconds, as Spark
counts, it still has 64 bits."""


@dataclass
class DatedPartition(SegmentPartition):
    """The bytes of a segment in a batch.

    Attributes:
        watermark: that of the batch, in milliseconds since 1970; None if it is not known.
    """

    watermark: int | None


def watermark_of(checkpoint: str) -> int | None:
    """Return the watermark of the batch that a checkpoint planned last.

    Returns:
        Milliseconds since 1970; None for a time that Spark cannot compare with.

    Raises:
        CheckpointDiverged: the checkpoint cannot be read.
    """
    folder = Path(checkpoint) / "offsets"
    try:
        planned = [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]
        found = parse_offsets((folder / str(max(planned))).read_text(encoding="utf-8")).watermark
    except (OSError, ValueError, CheckpointDiverged) as error:
        raise CheckpointDiverged(f"{folder} cannot be read: {error}") from error
    return found if abs(found) <= _MOST else None
