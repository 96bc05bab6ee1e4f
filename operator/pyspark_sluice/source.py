"""The data source, as Spark makes it in the processes that plan and in those that read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_sluice.batch import BatchReader
from pyspark_sluice.stream import StreamReader
from sluice.core.tables.columns import EVENT, OFFSET, POINTER, SEGMENT, EventFormat
from sluice.core.tables.options import TableOptions
from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_PLACES = f"{SEGMENT} BIGINT, {OFFSET} BIGINT, {POINTER} STRING"


class DefaultSource(DataSource):
    """A stream, an archive, or the archive and then the stream."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "sluice"

    def schema(self) -> str:
        """Return the columns if the user names none: the event's place, and the event.

        Raises:
            InvalidSpec: the format needs a schema, or an option is wrong.
        """
        match self._options().format:
            case EventFormat.BYTES:
                return f"{_PLACES}, {EVENT} BINARY"
            case EventFormat.TEXT:
                return f"{_PLACES}, {EVENT} STRING"
            case form:
                raise InvalidSpec(
                    f"the format {form} has no schema of its own",
                    field="schema",
                    remedy='Name the fields and their types: .schema("k STRING, v DOUBLE").',
                )

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of what the stream has now."""
        return BatchReader(self._options(), _arrow(schema))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream that goes on."""
        return StreamReader(self._options(), _arrow(schema))

    def _options(self) -> TableOptions:
        return TableOptions.read(dict(self.options))


def _arrow(schema: StructType) -> pa.Schema:
    """Return the schema of the batches that Spark takes for its own schema."""
    return to_arrow_schema(schema, timezone="UTC")
