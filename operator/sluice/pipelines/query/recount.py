"""Compute the results of a query anew by another engine, and compare them with its sinks.

DuckDB reads what the query has read: each source from where the version began to where its last
batch ended. Rows of windows that are still open are in no sink yet, and are left out.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from sluice.core.query.checks import FIELD
from sluice.core.query.result_columns import result_columns
from sluice.core.tables.columns import PLACES, EventFormat, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.core.tables.options import TableOptions
from sluice.core.tables.positions import StreamPosition
from sluice.engine.tables.opening import opened
from sluice.engine.tables.reading import batches, stretches_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import InvalidQuery, QueryChanged, StoreBusy
from sluice.pipelines.query.compile import options_of, source_schema, value_of
from sluice.pipelines.query.duck import ROOM, ask, opened_database, take
from sluice.pipelines.query.duck_sql import quoted, translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from sluice.config import Settings
    from sluice.core.query.ledger import BatchRecord, VersionRecord
    from sluice.core.query.plan import PlannedSink, QueryRequest
    from sluice.core.values.model import StreamName
    from sluice.engine.query.ledger import QueryLedger
    from sluice.engine.tables.source import TableSource
    from sluice.pipelines.programs.stores import Stores
    from sluice.pipelines.query.duck import Room
    from sluice.pipelines.query.duck_sql import Translated

_EXAMPLES: Final = 5
"""Rows that a comparison shows of each kind."""

_TRIES: Final = 200
"""Looks for a moment at which no batch is being written."""

_PAUSE: Final = 0.05
"""Seconds between two of them."""

EXPECTED: Final = "expected rows"
"""The table of what was computed. Names of sources have no blanks, so none of them is this."""

_SAME: Final = ("sql", "parameters", "keys", "emit")
_SAME_OF_SOURCES: Final = (
    *("name", "stream", "format", "columns", "delimiter", "malformed", "event_time"),
)
"""The fields of a request and of its sources that decide about results."""

_TOLERANCE: Final = 1e-11
"""The part of a floating-point number by which it may differ: its last digits depend on the order
of the summands."""

_FLOATS: Final = ("DOUBLE", "FLOAT")
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")


class SinkComparison(NamedTuple):
    """A sink, compared with what was computed anew.

    Attributes:
        sink: the stream.
        version: the number of the query's version.
        batch: the last batch that is compared.
        rows: the rows that it has of the version.
        late: the late events of all versions. Those of closed windows are computed, and not there.
        missing: rows that were computed, and are not there.
        extra: rows that are there, and were not computed.
        examples: some of both, as JSON behind `-` and `+`.
    """

    sink: StreamName
    version: int
    batch: int
    rows: int
    late: int
    missing: int
    extra: int
    examples: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether both have the same rows, each as often."""
        return not (self.missing or self.extra)


class _Moment(NamedTuple):
    """A query between two batches."""

    version: VersionRecord
    last: BatchRecord
    late: int
    ends: Mapping[int, StreamPosition]

    def end(self, stream: StreamName) -> StreamPosition | None:
        """Return where the last batch ends in a source; None for one that the text leaves out.

        Spark has an end for each time that the text names a table, in an order of its own.

        Raises:
            InvalidQuery: it has ends in one stream that differ.
        """
        places = [StreamPosition.from_json(one) for one in self.last.ends]
        found = [one for one in places if one.stream == stream]
        if any(one != found[0] for one in found):
            raise InvalidQuery(f"the query reads {stream} twice, to two ends", field=FIELD)
        return found[0] if found else None


def recounted(
    request: QueryRequest,
    ledger: QueryLedger,
    stores: Stores,
    settings: Settings,
    *,
    room: Room = ROOM,
) -> list[SinkComparison]:
    """Compute the results of the version that runs, and compare each sink with them.

    The query may run meanwhile. Windows are closed by the watermark of its last batch.

    Args:
        request: the query.
        ledger: its ledger.
        stores: opens stores.
        settings: the process's settings.
        room: what DuckDB may take.

    Raises:
        InvalidQuery: the query cannot be computed anew, or has written no batch.
        QueryChanged: the request is not that of the version that runs.
        StoreBusy: batches are written all the time.
        SourceTruncated: events that it has read are gone.
        BackendError: a store does not answer.
    """
    sinks = [(sink, StoredStream(stores[sink.store], sink.stream)) for sink in request.sinks]
    lasting = [at for at, (sink, _) in enumerate(sinks) if sink.keep_ms is None]
    if not lasting:
        raise InvalidQuery(
            "a live sink does not keep the rows that would be compared",
            field="spec.sinks",
            remedy="Give the query a sink `stream` as well.",
        )
    moment = _moment(ledger, {at: sinks[at][1] for at in lasting})
    _check(request, moment.version)
    text = translated(request.sql, [one.name for one in request.sources])
    with opened_database(room) as database:
        places = zip(request.sources, moment.version.begins, strict=True)
        for source, begins in places:
            begin = StreamPosition.from_json(begins)
            end = moment.end(source.stream) or begin
            options = TableOptions.read(options_of(source))
            schema = source_schema(source)
            with opened(options.place, settings) as stream:
                _load(database, source.name, stream, (begin, end), options.decoder(schema))
        columns = moment.version.plan.compiled.columns
        _compute(database, request, text, moment.last.watermark)
        return [_compared(database, sinks[at], at, moment, columns) for at in lasting]


def _moment(ledger: QueryLedger, sinks: Mapping[int, StoredStream]) -> _Moment:
    """Find how much each sink has at the end of a batch."""
    for _ in range(_TRIES):
        before = ledger.load()
        ends = {at: sink.tail() for at, sink in sinks.items()} if before.last else {}
        after = ledger.load()
        if before.version is None or before.last is None:
            raise InvalidQuery("the query has written no batch", field=FIELD, remedy="Run it.")
        if (before.last, None) == (after.last, after.begun):
            return _Moment(before.version, before.last, before.late, ends)
        time.sleep(_PAUSE)
    raise StoreBusy(
        "the query is always within a batch",
        remedy="If it runs, suspend it, or try again. If it was cut off, let it run on first.",
    )


def _check(request: QueryRequest, version: VersionRecord) -> None:
    """Check that a request is that of a version, and that it can be computed anew."""
    plan = version.plan
    here, there = (
        (
            [getattr(one, name) for name in _SAME],
            [getattr(source, name) for source in one.sources for name in _SAME_OF_SOURCES],
            [sink.stream for sink in one.sinks],
        )
        for one in (request, plan)
    )
    if here != there:
        raise QueryChanged(
            f"the query is not that of version {version.number}, which runs",
            remedy="Verify it by the file that it runs by.",
        )
    if request.emit != "Final":
        raise InvalidQuery(
            "only rows that are written once can be computed anew", field="spec.result.emit"
        )
    if version.number > 1 and len(version.results) != len(request.sinks):
        raise InvalidQuery(
            f"the ledger does not say where the rows of version {version.number} begin", field=FIELD
        )


def _schema(ddl: str) -> pa.Schema:
    return pa.schema([(one.name, one.kind) for one in result_columns(ddl)])


def _load(
    database: duckdb.DuckDBPyConnection,
    name: str,
    stream: TableSource,
    between: tuple[StreamPosition, StreamPosition],
    decoder: Decoder,
) -> None:
    """Read what a stream has between two positions into a table."""
    empty = decoder.columns.schema.empty_table()
    take(database, f"CREATE TABLE {quoted(name)} AS", empty)
    for batch in batches(stream, stretches_between(stream, *between), decoder):
        take(database, f"INSERT INTO {quoted(name)}", pa.Table.from_batches([batch]))


def _compute(
    database: duckdb.DuckDBPyConnection, request: QueryRequest, text: Translated, watermark: int
) -> None:
    """Make the table of all rows that have to be in a sink."""
    values = {one.name: value_of(one) for one in request.parameters if one.name in text.parameters}
    for view in text.views:
        ask(partial(database.execute, view.sql(watermark * 1000)))
    ask(partial(database.execute, f"CREATE TABLE {quoted(EXPECTED)} AS {text.sql}", values))


def _compared(
    database: duckdb.DuckDBPyConnection,
    sink: tuple[PlannedSink, StoredStream],
    at: int,
    moment: _Moment,
    columns: str,
) -> SinkComparison:
    """Compare a sink with what was computed."""
    version, (planned, stream) = moment.version, sink
    begin = StreamPosition.from_json(version.results[at]) if version.results else stream.head()
    schema = _schema(columns)
    if not PLACES.keys().isdisjoint(schema.names):
        raise InvalidQuery(
            "a column of the result has the name of an event's place",
            field=FIELD,
            remedy="Give it another one by AS.",
        )
    decoder = Decoder(columns_of(EventFormat.JSON, schema), EventFormat.JSON, Malformed.FAIL)
    found = f"found rows {at}"
    _load(database, found, stream, (begin, moment.ends[at]), decoder)
    kinds = [
        [row[1] for row in database.execute(f"DESCRIBE {quoted(table)}").fetchall()]
        for table in (EXPECTED, found)
    ]
    if len(kinds[0]) != len(kinds[1]):
        raise InvalidQuery("the result has other columns for DuckDB", field=FIELD)
    columns_of_both = list(zip(schema.names, *kinds, strict=True))
    missing, extra, examples = differences(database, found, columns_of_both)
    return SinkComparison(
        sink=planned.stream,
        version=version.number,
        batch=moment.last.batch,
        rows=_number(database, f"SELECT count(*) FROM {quoted(found)}"),  # noqa: S608 - quoted
        late=moment.late,
        missing=missing,
        extra=extra,
        examples=examples,
    )


def differences(
    database: duckdb.DuckDBPyConnection, found: str, columns: Sequence[tuple[str, str, str]]
) -> tuple[int, int, tuple[str, ...]]:
    """Return how many rows were computed only, how many are there only, and some of both.

    Rows are paired by all columns but those of floating-point numbers, by which pairs are ordered.

    Args:
        database: the database, with the table `EXPECTED`.
        found: the table of the rows that are there.
        columns: name of each column, its type as it was computed, and its type there.
    """
    names = [f"c{place}" for place in range(len(columns))]
    floats = [name for name, one in zip(names, columns, strict=True) if _is_float(*one[1:])]
    others = [name for name in names if name not in floats]
    for table, side in ((EXPECTED, "e"), (found, "f")):
        values = ", ".join(
            f"CAST({name} AS {'DOUBLE' if name in floats else kind}) AS {name}"
            for name, (_, _, kind) in zip(names, columns, strict=True)
        )
        # Names are ours or quoted, and types are DuckDB's own.
        rows = f"SELECT {values} FROM {quoted(table)} AS t({', '.join(names)})"  # noqa: S608
        parted = f"PARTITION BY {', '.join(others)}" if others else ""
        number = f"row_number() OVER ({parted} ORDER BY {', '.join(names)})"
        # Names are ours or quoted, and types are DuckDB's own.
        sql = f"CREATE OR REPLACE TABLE {side} AS SELECT *, {number} AS nth FROM ({rows})"  # noqa: S608
        ask(partial(database.execute, sql))
    paired = " AND ".join(f"e.{name} IS NOT DISTINCT FROM f.{name}" for name in [*others, "nth"])
    near = " AND ".join(
        f"(e.{name} IS NOT DISTINCT FROM f.{name} OR coalesce(abs(e.{name} - f.{name}) <= "
        f"{_TOLERANCE} * greatest(abs(e.{name}), abs(f.{name})), false))"
        for name in floats
    )
    titled = ", ".join(
        f"{name} AS {quoted(title)}" for name, (title, *_) in zip(names, columns, strict=True)
    )
    counts, examples = [], []
    for sign, this, that in (("-", "e", "f"), ("+", "f", "e")):
        rest = (
            f"FROM {this} WHERE NOT EXISTS (FROM {that} "
            f"WHERE {paired}{' AND ' + near if near else ''})"
        )
        counts.append(_number(database, f"SELECT count(*) {rest}"))
        some = f"(SELECT {titled} {rest} LIMIT {_EXAMPLES})"
        shown = f"SELECT to_json(r) FROM {some} AS r"  # noqa: S608 - names of our own
        rows_shown = ask(partial(database.execute, shown)).fetchall()
        examples += [f"{sign} {text}" for (text,) in rows_shown]
    return counts[0], counts[1], tuple(examples)


def _is_float(computed: str, there: str) -> bool:
    """Tell whether values are compared as floating-point numbers.

    DuckDB computes some of Spark's decimals so; and an integer may be no rounded one.
    """
    fraction = computed in _FLOATS or computed.startswith("DECIMAL")
    return there in _FLOATS or computed in _FLOATS or (fraction and there in _INTEGERS)


def _number(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    row: Any = ask(lambda: database.execute(sql).fetchone())
    return int(row[0])
