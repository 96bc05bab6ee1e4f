"""Compile a query: check its text, let Spark resolve it, and check what came out."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

import pyarrow as pa

from sluice.core.query.checks import FIELD, check_parsed, check_resolved
from sluice.core.query.plan import MOST_TREE, Compiled
from sluice.core.query.result_columns import result_columns
from sluice.core.tables.columns import (
    BEAT,
    DROPPED,
    EVENT,
    OURS,
    WATERMARK,
    EventFormat,
    Malformed,
)
from sluice.errors import InvalidQuery, InvalidSpec
from sluice.pipelines.query.observations import observed, without_dropped
from sluice.pipelines.query.spark_plans import Reader, fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sluice.core.query.plan import PlannedParameter, PlannedSource
    from sluice.core.query.tree import Node
    from sluice.core.values.model import StoreAddress

_T = TypeVar("_T")

OUTPUT_MODES: Final = {"Final": "append", "Changes": "update"}
"""Spark's word for when rows are written, by that of the spec."""

_JSON: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""How rows are written as JSON: times in UTC, and columns that are null as null."""

_COLLATION: Final = re.compile(r"\bcollat(e|ion)\b", re.IGNORECASE)
_POSITION: Final = re.compile(r"\(?;? ?\(?line (\d+),? pos (\d+)\)?")
_REST: Final = re.compile(r"( SQLSTATE: \w+)?[.;]?\s*(\n|$).*", re.DOTALL)
_REASON: Final = re.compile(r"^\[([A-Z0-9_.]+)\] ")


class UncompiledQuery(NamedTuple):
    """A query before it is compiled.

    Attributes:
        sources, sql, parameters, keys, emit: see `core.query.plan.QueryPlan`.
        batch_bytes: the most bytes of each source in a batch; None for no limit.
        checkpoint: the folder of Spark's checkpoint, by which late events are found; None if there
            is none.
    """

    sources: Sequence[PlannedSource]
    sql: str
    parameters: Sequence[PlannedParameter]
    keys: Sequence[str]
    emit: str
    batch_bytes: int | None = None
    checkpoint: str | None = None


def compiled(spark: SparkSession, wanted: UncompiledQuery) -> Compiled:
    """Return what Spark makes of a query. No store is asked.

    Raises:
        InvalidQuery: the text, a schema, a parameter or a key is wrong. The text, before anything
            of it was carried out.
    """
    _check_text(spark, wanted)
    frame = resolved(spark, wanted)
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way
    tree = _tree(spark, plan, resolved=True)
    check_resolved(tree)
    for key in wanted.keys:
        if key not in frame.columns:
            raise InvalidQuery(
                f"the result has no column {key}",
                field="spec.result.keys",
                remedy=f"Its columns are {', '.join(frame.columns)}.",
            )
    _check_columns(frame)
    _asked(FIELD, lambda: events_of(frame, wanted.keys))
    _check_streaming(spark, plan, wanted.emit)
    text = fingerprint(plan, tree)
    if len(text) > MOST_TREE:
        raise InvalidQuery("the query is too long", field=FIELD, remedy="Divide it.")
    return Compiled(
        spark=spark.version,
        columns=frame._jdf.schema().toDDL(),  # noqa: SLF001 - PySpark has no public way to it
        tree=text,
    )


def resolved(spark: SparkSession, wanted: UncompiledQuery) -> DataFrame:
    """Return the result of a query whose text was checked, as a table that goes on.

    Raises:
        InvalidQuery: a name, a schema or a parameter is wrong.
    """
    for index, source in enumerate(wanted.sources):
        table = _table(spark, source, wanted, f"spec.sources[{index}]")
        table.createOrReplaceTempView(source.name)
    values = {one.name: value_of(one) for one in wanted.parameters}
    return _asked(FIELD, lambda: spark.sql(wanted.sql, args=values or None))


def _check_columns(frame: DataFrame) -> None:
    """Check that an event can have a field for each column."""
    for name in frame.columns:
        if frame.columns.count(name) > 1:
            raise InvalidQuery(
                f"two columns of the result have the name {name}",
                field=FIELD,
                remedy="Give one of them another name by AS.",
            )


def events_of(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return two columns of texts: the key of each row, and the row as JSON.

    Args:
        frame: the rows.
        keys: the columns that make the key. One column is written as a text, several as JSON.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - comes with Spark

    if not keys:
        key = f.lit("")
    elif len(keys) == 1:
        key = f.coalesce(f.col(f"`{keys[0]}`").cast("string"), f.lit(""))
    else:
        key = f.to_json(f.struct(*(f"`{one}`" for one in keys)), _JSON)
    return frame.select(key.alias("key"), f.to_json(f.struct("*"), _JSON).alias("event"))


def _check_text(spark: SparkSession, wanted: UncompiledQuery) -> None:
    """Parse the text, and check it before anything in it is resolved."""
    _check_collations(wanted)
    # PySpark has no public way to it.
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    parsed = _asked(FIELD, lambda: parser.parsePlan(wanted.sql))
    tree = _tree(spark, parsed, resolved=False)
    check_parsed(tree, [source.name for source in wanted.sources])


def _check_collations(wanted: UncompiledQuery) -> None:
    """Refuse collations: of texts that are equal by one, the order of events would choose."""
    texts = {FIELD: wanted.sql} | {
        f"spec.sources[{at}].schema": source.columns or ""
        for at, source in enumerate(wanted.sources)
    }
    for field, text in texts.items():
        if _COLLATION.search(text):
            raise InvalidQuery(
                "a query may not have a collation", field=field, remedy="Compare lower(...)."
            )


def _tree(spark: SparkSession, plan: Any, *, resolved: bool) -> Node:
    """Read a plan as a tree.

    Raises:
        InvalidQuery: it is nested too deeply.
    """
    try:
        return Reader(_gateway(spark), resolved=resolved).relation(plan)
    except RecursionError:
        raise InvalidQuery(
            "the query is nested too deeply", field=FIELD, remedy="Divide it."
        ) from None


def _check_streaming(spark: SparkSession, resolved: Any, emit: str) -> None:
    """Have Spark check that it can go on for ever with the plan."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to it
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, OUTPUT_MODES[emit].capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    _asked(FIELD, lambda: checker.checkForStreaming(resolved, mode))


def _table(
    spark: SparkSession, source: PlannedSource, wanted: UncompiledQuery, field: str
) -> DataFrame:
    """Return a source as a table that goes on, with its watermark."""
    time, columns = source.event_time, source.columns
    drops = source.malformed is Malformed.DROP
    if drops and columns is None and source.format is EventFormat.TEXT:
        columns = f"{EVENT} STRING"
    _check_names(columns, f"{field}.schema")
    filled = {} if time is None else {WATERMARK: "BIGINT"}
    if drops and columns is not None:
        filled[DROPPED] = "BIGINT"
    given: dict[str, object] = {"maxBytesPerTrigger": wanted.batch_bytes}
    if time is not None:
        given["checkpoint"] = wanted.checkpoint
        if time.idle_after_ms is not None:
            filled[BEAT] = "BOOLEAN"
            given |= {"eventTime": time.column, "idleAfterMs": time.idle_after_ms}
    options = {name: str(value) for name, value in given.items() if value is not None}
    reader = spark.readStream.format("sluice").options(**options_of(source), **options)
    if columns is not None:
        # A comment at the end of the user's text ends with its line.
        schema = "\n, ".join([columns, *map(" ".join, filled.items())])
        reader = _asked(f"{field}.schema", lambda: reader.schema(schema))
    table = _asked(f"{field}.schema", reader.load)
    if DROPPED in filled:  # before the watermark, since the rows that tell it have no time
        table = without_dropped(table, source.name)
        del filled[DROPPED]
    if time is None:
        return table
    known = table.drop(*filled).dtypes
    if dict(known).get(time.column) not in {"timestamp", "timestamp_ntz"}:
        raise InvalidQuery(
            f"the schema has no column {time.column} of the type TIMESTAMP",
            field=f"{field}.eventTime.column",
            remedy=f"Its columns are {', '.join(' '.join(one) for one in known)}.",
        )
    table = _asked(
        f"{field}.eventTime.column",
        lambda: table.withWatermark(time.column, f"{time.lateness_ms} milliseconds"),
    )
    return _asked(f"{field}.eventTime", lambda: observed(table, source.name, time))


def _check_names(columns: str | None, field: str) -> None:
    """Refuse columns that have the names of those which the reader fills in."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 - comes with Spark

    if columns is None:
        return
    found = _asked(field, lambda: StructType.fromDDL(columns))
    for name in found.names if isinstance(found, StructType) else ():
        if name.lower().startswith(OURS):
            raise InvalidQuery(
                f"the column {name} has a name of Sluice's own", field=field, remedy="Rename it."
            )


def options_of(source: PlannedSource) -> dict[str, str]:
    """Return the options by which `pyspark_sluice` reads a source."""
    found: dict[str, str | None] = {
        "stream": str(source.stream),
        "format": source.format.value,
        "delimiter": source.delimiter,
        "malformed": source.malformed.value,
        "startingPosition": source.begins,
        **_of_store(source.store),
    }
    if source.archive is not None:
        found |= _of_archive(source.archive)
    return {name: value for name, value in found.items() if value is not None}


def source_schema(source: PlannedSource) -> pa.Schema | None:
    """Return the columns of a source; None for those of its format.

    Raises:
        InvalidQuery: a column has a type that Arrow lacks.
    """
    if source.columns is None:
        return None
    try:
        return pa.schema([(one.name, one.kind) for one in result_columns(source.columns)])
    except InvalidSpec:
        raise InvalidQuery(
            f"the source {source.name!r} has a column of a type that only Spark knows",
            field=f"spec.sources[{source.name}].schema",
            remedy="Give it another type, such as STRING, in the next version of the query.",
        ) from None


def _of_store(store: StoreAddress) -> Mapping[str, str | None]:
    return {
        "store": store.uri,
        "secret": store.secret,
        "ca": store.ca,
        "serverName": store.server_name,
        "clientCertificate": store.client_certificate,
    }


def _of_archive(store: StoreAddress) -> Mapping[str, str | None]:
    return {
        "archive": store.uri,
        "archiveSecret": store.secret,
        "archiveEndpoint": store.endpoint,
        "archiveRegion": store.region,
        "archiveCa": store.ca,
    }


def value_of(parameter: PlannedParameter) -> Any:
    """Return the value of a parameter, of its type."""
    read: Mapping[str, Callable[[str], Any]] = {
        "String": str,
        "BigInt": _big,
        "Double": lambda text: float(Decimal(text)),
        "Boolean": lambda text: {"true": True, "false": False}[text.lower()],
        "Timestamp": _time,
    }
    try:
        return read[parameter.type](parameter.value)
    except (ArithmeticError, KeyError, OSError, ValueError):
        raise InvalidQuery(
            f"{parameter.value!r} is no {parameter.type}",
            field=f"spec.query.parameters[{parameter.name}].value",
            remedy="Write it as '3.5', 'true' or '2026-05-04T12:00:00Z'.",
        ) from None


def _big(text: str) -> int:
    """Read a number of 64 bits. ValueError."""
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _time(text: str) -> datetime:
    """Read a time with its zone: without one, each machine would read another. ValueError."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    time.timestamp()  # OverflowError and OSError for times that no machine has
    return time.astimezone(UTC)


def _asked(field: str, call: Callable[[], _T]) -> _T:
    """Ask Spark something.

    Raises:
        InvalidQuery: Spark found a mistake.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return call()
    except PySparkException as error:
        _refuse(field, str(error))
    except Py4JJavaError as error:
        _refuse(field, str(error.java_exception.getMessage()))


def _refuse(field: str, said: str) -> NoReturn:
    """Raise Spark's words as one sentence, with the place in the text."""
    said = said.strip()
    found = _POSITION.search(said)
    where = f" (line {found[1]}, column {int(found[2]) + 1})" if found else ""
    words = _POSITION.sub("", _REASON.sub("", said))
    words = _REST.sub("", words).strip().rstrip(".")
    raise InvalidQuery(f"{words[:1].lower()}{words[1:]}{where}", field=field) from None


def _gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way to it
