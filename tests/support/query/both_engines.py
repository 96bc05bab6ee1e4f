"""Compute the same query by Spark and by Arrow, over rows in memory with the edges of each type."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from sluice.core.query.arrow.program import program
from sluice.core.query.arrow.texts import result_rows
from sluice.core.query.arrow.windows import OpenWindows
from sluice.core.query.rows import ResultRow
from sluice.pipelines.query.arrow.resolved import resolved_plan
from sluice.pipelines.query.compile import events_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from sluice.core.query.arrow.program import Program

_SCHEMA: Final = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int64()),
        ("i", pa.int32()),
        ("small", pa.int8()),
        ("v", pa.float64()),
        ("f", pa.float32()),
        ("b", pa.bool_()),
        ("d", pa.decimal128(10, 2)),
        ("on_", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
    ]
)

_VALUES: Final[dict[str, Sequence[Any]]] = {
    "k": [None, "", "a", "b", "Ä 中 😀", 'quo"te\\', "tab\t\x01\x1f\x7f\u2028\n", "null"],
    "n": [None, 0, 1, -1, 7, 10**12, -(10**12)],
    "i": [None, 0, 1, -1, (1 << 31) - 1, -(1 << 31)],
    "small": [None, 0, 127, -128],
    "v": [
        *(
            None,
            0.0,
            1.0,
            -1.5,
            3.5,
            0.1,
            1e-3,
            9.5e-4,
            1e7,
            12345678.9,
            1e22,
            1e-10,
        ),
        *(float("nan"), float("inf"), float("-inf")),
    ],
    "f": [None, 0.0, 1.5, -2.25, float("nan"), float("inf")],
    "b": [None, True, False],
    "d": [None, Decimal("0.00"), Decimal("1.50"), Decimal("-99999999.99"), Decimal("3.00")],
    "on_": [None, date(1970, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)],
    "ts": [None, *(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n) for n in range(25))],
    "local": [None, datetime(2026, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)],  # noqa: DTZ001 - it has no zone
    "raw": [None, b"", b"\x00\xff"],
}

_EARLY: Final = [
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 55, 500_000, tzinfo=UTC),
    datetime(1900, 5, 4, 1, 2, 3, 4, tzinfo=UTC),
]


def selected(columns: str, *clauses: str) -> str:
    """Return a query of columns over the rows."""
    return " ".join(("SELECT", columns, "FROM clicks", *clauses))


def named(terms: Sequence[str]) -> str:
    """Return terms as columns with names of their own."""
    return ", ".join(f"{term} AS c{at}" for at, term in enumerate(terms))


def drawn_rows(seed: int, size: int = 300) -> pa.Table:
    """Return rows whose values are drawn from the edges of each type."""
    draw = random.Random(seed)  # noqa: S311 - data of a test
    columns = {name: draw.choices(values, k=size) for name, values in _VALUES.items()}
    columns["ts"] += _EARLY
    for name in _VALUES.keys() - {"ts"}:
        columns[name] += draw.choices(_VALUES[name], k=len(_EARLY))
    return pa.table(columns, schema=_SCHEMA)


class BothEngines:
    """Computes queries by both engines over the same rows, the table `clicks`.

    Args:
        spark: a session of its own.
        rows: the rows.
    """

    def __init__(self, spark: SparkSession, rows: pa.Table) -> None:
        self._spark = spark
        self._rows = rows
        # Spark would compute over rows in memory at once, and in another way than over a stream.
        rule = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
        spark.conf.set("spark.sql.optimizer.excludedRules", rule)
        frame = spark.createDataFrame(rows)  # Spark takes times without a zone for others
        local = frame["local"].cast("timestamp_ntz")
        frame.withColumn("local", local).createOrReplaceTempView("clicks")

    def frame(self, sql: str) -> DataFrame:
        """Return what Spark makes of a query."""
        return self._spark.sql(sql)

    def by_spark(self, sql: str, keys: Sequence[str]) -> list[ResultRow]:
        """Return the rows of a query by Spark, sorted."""
        taken = events_of(self.frame(sql), keys).toArrow()
        return sorted(map(ResultRow, *(column.to_pylist() for column in taken.columns)))

    def by_arrow(self, sql: str, keys: Sequence[str], pieces: int = 7) -> list[ResultRow]:
        """Return the rows of a query by Arrow, sorted. The table comes in so many pieces."""
        made = self.program(sql, keys)
        draw = random.Random(pieces)  # noqa: S311 - data of a test
        at = [0, *sorted(draw.choices(range(len(self._rows)), k=pieces - 1))]
        batches = [
            self._rows.slice(begin, end - begin).combine_chunks().to_batches()
            for begin, end in itertools.pairwise([*at, len(self._rows)])
        ]
        whole = [batch for some in batches for batch in some]
        if made.folding is None:
            found = [
                row for batch in whole for row in result_rows(made.result, keys, made.events(batch))
            ]
            return sorted(found)
        windows = OpenWindows(made.folding)
        for batch in whole:
            rows = made.events(batch)
            windows.add(rows.columns, rows.size, -(1 << 50))
        closed = made.results(windows.close(1 << 50))
        assert not windows.table()
        return sorted(result_rows(made.result, keys, closed))

    def program(self, sql: str, keys: Sequence[str]) -> Program:
        """Return the program of a query. InvalidQuery."""
        return program(resolved_plan(self.frame(sql)), "ts", keys)

    def assert_equal(self, sql: str, keys: Sequence[str] = ()) -> None:
        """Assert that both engines give the same rows, text for text."""
        found, expected = self.by_arrow(sql, keys), self.by_spark(sql, keys)
        assert len(found) == len(expected), sql
        differ = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
        assert not differ, f"{sql[:200]}: {differ[:2]}"
