"""Streams as tables without Spark and without a JVM: `sluice.open(...)`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from sluice.config import Settings
from sluice.core.tables.options import HEAD, TAIL, TableOptions
from sluice.engine.tables.opening import located, opened
from sluice.engine.tables.reading import batches, stretches_between

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import pandas as pd
    import polars as pl

    from sluice.core.tables.decoding import Decoder
    from sluice.core.tables.positions import StreamPosition
    from sluice.engine.tables.opening import Where

METADATA: Final = b"sluice"
"""The key of a table's metadata: JSON with the positions `start` and `end`, and `malformed`."""


class NotebookStream:
    """A stream that is open for reading. Close it, or use it as a block.

    Args:
        options: where the stream's events are.
        settings: deadlines, and the folders of credentials and volumes.
    """

    def __init__(self, options: TableOptions, settings: Settings) -> None:
        self._options = options
        self._stack = ExitStack()
        self._source = self._stack.enter_context(opened(options.place, settings))

    def __enter__(self) -> Self:
        """Enter the block, whose end closes the stream."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the stream."""
        self.close()

    def __repr__(self) -> str:
        """Return the name of the stream."""
        return f"<Stream {self._source.stream}>"

    def close(self) -> None:
        """Close the connections. Closing twice is fine."""
        self._stack.close()

    def head(self) -> StreamPosition:
        """Return the position of the oldest event."""
        return self._source.head()

    def tail(self) -> StreamPosition:
        """Return the position after the last event that the stream has now."""
        return self._source.tail()

    def batches(
        self,
        start: Where = HEAD,
        end: Where = TAIL,
        *,
        schema: pa.Schema | None = None,
        **options: Any,
    ) -> pa.RecordBatchReader:
        """Read events in batches of at most 8 MiB, and an event that is longer.

        Events of one routing key come in their order. Batches are read as they are taken, so memory
        does not grow with the stream.

        Args:
            start: where to begin: `Head`, `Tail`, a StreamCut's text, a position that a table or
                this stream has, or offsets in bytes by segment id.
            end: where to end, likewise. The tail is that of now.
            schema: the columns. Without one there are the event's place and its bytes or text.
            options: `format` (Bytes, Text, Json, Csv), `malformed` (Fail, Drop, Rescue),
                `delimiter`.

        Raises:
            InvalidSpec: an argument has a wrong value.
            SourceNotFound: there is no such stream.
            SourceTruncated: events are gone. Reading may raise it later, too.
            MalformedEvents: while reading; an event does not fit, and `malformed` is `Fail`.
        """
        decoder = self._decoder(schema, options)
        return self._reader(located(self._source, start), located(self._source, end), decoder)

    def to_arrow(
        self,
        start: Where = HEAD,
        end: Where = TAIL,
        *,
        schema: pa.Schema | None = None,
        **options: Any,
    ) -> pa.Table:
        """Read events into a table. Arguments and errors are those of `batches`.

        The table's metadata has, at the key `sluice`, JSON with `start` and `end`, which are
        positions for another call, and with the number of malformed events and the first pointers.
        """
        decoder = self._decoder(schema, options)
        begin, stop = located(self._source, start), located(self._source, end)
        table = self._reader(begin, stop, decoder).read_all()
        told = {
            "start": begin.to_json(),
            "end": stop.to_json(),
            "malformed": {
                "count": decoder.rejected.count,
                "pointers": decoder.rejected.pointers,
            },
        }
        return table.replace_schema_metadata({METADATA: json.dumps(told)})

    def to_pandas(self, start: Where = HEAD, end: Where = TAIL, **arguments: Any) -> pd.DataFrame:
        """Read events into a pandas DataFrame. Arguments and errors are those of `batches`."""
        return self.to_arrow(start, end, **arguments).to_pandas()

    def to_polars(self, start: Where = HEAD, end: Where = TAIL, **arguments: Any) -> pl.DataFrame:
        """Read events into a Polars DataFrame. Arguments and errors are those of `batches`."""
        import polars as pl  # noqa: PLC0415 - only those who want it have it

        table = self.to_arrow(start, end, **arguments)
        frame = pl.from_arrow(table)
        return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()

    def _decoder(self, schema: pa.Schema | None, options: dict[str, Any]) -> Decoder:
        return TableOptions.read(options).decoder(schema)

    def _reader(
        self, start: StreamPosition, end: StreamPosition, decoder: Decoder
    ) -> pa.RecordBatchReader:
        parts = stretches_between(self._source, start, end)
        rows: Iterator[pa.RecordBatch] = batches(self._source, parts, decoder)
        return pa.RecordBatchReader.from_batches(decoder.columns.schema, rows)


def end_of(table: pa.Table) -> dict[str, Any]:
    """Return the position at which a table of `to_arrow` ends, for the start of another call."""
    end: dict[str, Any] = json.loads(table.schema.metadata[METADATA])["end"]
    return end


def open_stream(options: dict[str, Any], settings: Settings | None = None) -> NotebookStream:
    """Open a stream; see `sluice.open`."""
    given = {name: value for name, value in options.items() if value is not None}
    return NotebookStream(TableOptions.read(given), settings or Settings.from_environment())
