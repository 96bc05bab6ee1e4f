"""Read what a stream has between two positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from sluice.config import Settings
from sluice.core.tables.positions import EventStretch
from sluice.engine.tables.opening import located, opened
from sluice.engine.tables.reading import batches, stretches_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from sluice.core.tables.decoding import Decoder
    from sluice.core.tables.options import TableOptions


@dataclass
class SegmentPartition(InputPartition):
    """The bytes of a segment that one task reads. No partition stands for a stream without any."""

    segment: int
    start: int
    end: int


class BatchReader(DataSourceReader):
    """A reader with a partition for each segment.

    Args:
        options: the options, which hold no password.
        schema: the columns.

    Raises:
        InvalidSpec: an option is wrong, or the schema does not fit the format.
    """

    def __init__(self, options: TableOptions, schema: pa.Schema) -> None:
        options.decoder(schema)  # before anything is read
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the segments between the positions of the options.

        Raises:
            SourceNotFound: there is no such stream.
            SourceTruncated: events between the positions are gone.
        """
        options = self._options
        with opened(options.place, Settings.from_environment()) as source:
            begin = located(source, options.starting_position)
            end = located(source, options.ending_position)
            return partitions_of(stretches_between(source, begin, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of a partition. Errors as `sluice.engine.tables.reading.batches`."""
        return read_partition(self._options, self._options.decoder(self._schema), partition)


def partitions_of(stretches: Sequence[EventStretch]) -> list[InputPartition]:
    """Return a partition for each stretch."""
    return [SegmentPartition(*one) for one in stretches]


def read_partition(
    options: TableOptions, decoder: Decoder, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition; none for that which Spark makes for no partitions."""
    if not isinstance(partition, SegmentPartition):
        return
    stretch = EventStretch(partition.segment, partition.start, partition.end)
    with opened(options.place, Settings.from_environment()) as source:
        yield from batches(source, [stretch], decoder)
