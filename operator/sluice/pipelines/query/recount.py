"""Compute the results of a query anew by another engine, and compare them with its sinks.

DuckDB reads what the query has read: each source from where the version began to where its last
batch ended. Rows of windows that are still open are in no sink yet, and are left out.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from sluice.core.query.checks import FIELD
from sluice.core.query.result_columns import result_columns
from sluice.core.tables.columns import Format, Malformed, columns_of
from sluice.core.tables.decoding import Decoder
from sluice.core.tables.options import TableOptions
from sluice.core.tables.positions import StreamPosition
from sluice.engine.tables.opening import opened
from sluice.engine.tables.reading import batches, stretches_between
from sluice.engine.tables.source import StoredStream
from sluice.errors import InvalidQuery, QueryChanged, StoreBusy
from sluice.pipelines.query.compile import options_of, value_of
from sluice.pipelines.query.duck_sql import quoted, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.config import Settings
    from sluice.core.query.ledger import BatchRecord, VersionRecord
    from sluice.core.query.plan import PlannedSink, QueryRequest
    from sluice.core.values.model import StreamName
    from sluice.engine.query.ledger import QueryLedger
    from sluice.engine.tables.source import TableSource
    from sluice.pipelines.programs.stores import Stores
    from sluice.pipelines.query.duck_sql import Translated

_MEMORY: Final = "1GB"
"""The memory of DuckDB, which then goes on on disk."""

_EXAMPLES: Final = 5
"""Rows that a comparison shows of each kind."""

_TRIES: Final = 200
"""Looks for a moment at which no batch is being written. A look takes some milliseconds."""

_SAME: Final = ("sources", "sql", "parameters", "keys", "emit", "sinks")
"""The fields of a request that decide about results."""


class Comparison(NamedTuple):
    """A sink, compared with what was computed anew.

    Attributes:
        sink: the stream.
        batch: the last batch that is compared.
        rows: the rows that it has of the version.
        late: the late events of all versions. Those of closed windows are computed, and not there.
        missing: rows that were computed, and are not there.
        extra: rows that are there, and were not computed.
        examples: some of both, as JSON behind `-` and `+`.
    """

    sink: StreamName
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
    ends: tuple[StreamPosition, ...]


def recounted(
    request: QueryRequest, ledger: QueryLedger, stores: Stores, settings: Settings
) -> list[Comparison]:
    """Compute the results of the version that runs, and compare each sink with them.

    The query may run meanwhile. Windows are closed by the watermark of its last batch.

    Raises:
        InvalidQuery: the query cannot be computed anew, or has written no batch.
        QueryChanged: the request is not that of the version that runs.
        StoreBusy: batches are written all the time.
        SourceTruncated: events that it has read are gone.
        BackendError: a store does not answer.
    """
    sinks = [(sink, StoredStream(stores[sink.store], sink.stream)) for sink in request.sinks]
    moment = _moment(ledger, [sink for _, sink in sinks])
    _check(request, moment.version)
    text = translated(request.sql, [one.name for one in request.sources])
    with _database() as database:
        for at, source in enumerate(request.sources):
            begin = StreamPosition.from_json(moment.version.begins[at])
            end = StreamPosition.from_json(moment.last.ends[at])
            options = TableOptions.read(options_of(source))
            schema = None if source.columns is None else _schema(source.columns)
            with opened(options.place, settings) as stream:
                _load(database, source.name, stream, (begin, end), options.decoder(schema))
        columns = moment.version.plan.compiled.columns
        _compute(database, request, text, moment.last.watermark)
        return [_compared(database, sink, at, moment, columns) for at, sink in enumerate(sinks)]


def _moment(ledger: QueryLedger, sinks: Sequence[StoredStream]) -> _Moment:
    """Find how much each sink has at the end of a batch."""
    for _ in range(_TRIES):
        before = ledger.load()
        ends = tuple(sink.tail() for sink in sinks) if before.last else ()
        after = ledger.load()
        if before.version is None or before.last is None:
            raise InvalidQuery("the query has written no batch", field=FIELD, remedy="Run it.")
        if (before.last, None) == (after.last, after.begun):
            return _Moment(before.version, before.last, before.late, ends)
    raise StoreBusy("the query writes batches all the time: suspend it, or try again")


def _check(request: QueryRequest, version: VersionRecord) -> None:
    """Check that a request is that of a version, and that it can be computed anew."""
    if any(getattr(request, name) != getattr(version.plan, name) for name in _SAME):
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


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database in memory, which goes on on disk if it has too much."""
    with (
        tempfile.TemporaryDirectory(prefix="sluice-verify-") as folder,
        duckdb.connect() as database,
    ):
        for setting, value in (
            ("TimeZone", "UTC"),
            ("memory_limit", _MEMORY),
            ("temp_directory", folder),
            # The text of a query is a user's: it reaches no file and no network.
            ("enable_external_access", False),
        ):
            database.execute(f"SET {setting} = ?", [value])
        database.execute("SET lock_configuration = true")
        yield database


def _load(
    database: duckdb.DuckDBPyConnection,
    name: str,
    stream: TableSource,
    between: tuple[StreamPosition, StreamPosition],
    decoder: Decoder,
) -> None:
    """Read what a stream has between two positions into a table."""
    empty = decoder.columns.schema.empty_table()
    _take(database, f"CREATE TABLE {quoted(name)} AS", empty)
    for batch in batches(stream, stretches_between(stream, *between), decoder):
        _take(database, f"INSERT INTO {quoted(name)}", pa.Table.from_batches([batch]))


def _take(database: duckdb.DuckDBPyConnection, statement: str, rows: pa.Table) -> None:
    """Execute a statement that takes rows from a table of Arrow."""
    database.register("taken", rows)
    _asked(lambda: database.execute(f"{statement} SELECT * FROM taken"))  # noqa: S608 - our words
    database.unregister("taken")


def _compute(
    database: duckdb.DuckDBPyConnection, request: QueryRequest, text: Translated, watermark: int
) -> None:
    """Make the table `expected` of all rows that have to be in a sink."""
    values = {one.name: value_of(one) for one in request.parameters if one.name in text.parameters}
    for view in text.views:
        _asked(partial(database.execute, view.sql(watermark * 1000)))
    _asked(partial(database.execute, f"CREATE TABLE expected AS {text.sql}", values))


def _compared(
    database: duckdb.DuckDBPyConnection,
    sink: tuple[PlannedSink, StoredStream],
    at: int,
    moment: _Moment,
    columns: str,
) -> Comparison:
    """Compare a sink with the table `expected`."""
    version, (planned, stream) = moment.version, sink
    begin = StreamPosition.from_json(version.results[at]) if version.results else stream.head()
    decoder = Decoder(columns_of(Format.JSON, _schema(columns)), Format.JSON, Malformed.FAIL)
    found = f"found {at}"
    _load(database, found, stream, (begin, moment.ends[at]), decoder)
    told = database.execute(f"DESCRIBE {quoted(found)}").fetchall()
    names = [f"column {place}" for place in range(len(told))]
    listed = ", ".join(map(quoted, names))
    shown = ", ".join(
        f"{_comparable(quoted(name), kind)} AS {quoted(title)}"
        for name, (title, kind, *_) in zip(names, told, strict=True)
    )
    expected, there = (
        f"SELECT {shown} FROM {quoted(table)} AS t({listed})"  # noqa: S608 - names are quoted
        for table in ("expected", found)
    )
    missing, lacking = _rest(database, "-", f"{expected} EXCEPT ALL {there}")
    extra, others = _rest(database, "+", f"{there} EXCEPT ALL {expected}")
    return Comparison(
        sink=planned.stream,
        batch=moment.last.batch,
        rows=_number(database, f"SELECT count(*) FROM {quoted(found)}"),  # noqa: S608 - quoted
        late=moment.late,
        missing=missing,
        extra=extra,
        examples=(*lacking, *others),
    )


def _rest(
    database: duckdb.DuckDBPyConnection, sign: str, difference: str
) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows of a difference, and some of them behind a sign."""
    rest = f"FROM ({difference}) AS rest"
    rows = _asked(lambda: database.execute(f"SELECT to_json(rest) {rest} LIMIT {_EXAMPLES}"))
    examples = tuple(f"{sign} {text}" for (text,) in rows.fetchall())
    return _number(database, f"SELECT count(*) {rest}"), examples


def _comparable(name: str, kind: str) -> str:
    """Return an expression by which values of both engines can be compared.

    The last digits of floating-point numbers depend on the order of the summands.
    """
    if kind in {"DOUBLE", "FLOAT"}:
        return f"format('{{:.9e}}', CAST({name} AS DOUBLE))"
    return f"CAST({name} AS {kind})"


def _number(database: duckdb.DuckDBPyConnection, sql: str) -> int:
    row: Any = _asked(lambda: database.execute(sql).fetchone())
    return int(row[0])


def _asked(call: Callable[[], Any]) -> Any:
    """Ask DuckDB something.

    Raises:
        InvalidQuery: it cannot compute this.
    """
    try:
        return call()
    except duckdb.Error as error:
        raise InvalidQuery(
            f"DuckDB cannot compute the query: {str(error).splitlines()[0]}", field=FIELD
        ) from error
