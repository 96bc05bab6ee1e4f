"""The engine Arrow gives the rows that Spark gives, text for text, or says that it cannot.

Both compute the same query over the same rows in memory. The rows have the edges of each type.
"""

from __future__ import annotations

import itertools
import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from sluice.core.query.arrow.program import program
from sluice.core.query.arrow.texts import result_rows
from sluice.core.query.arrow.windows import OpenWindows
from sluice.core.query.rows import ResultRow
from sluice.errors import InvalidQuery
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

_CONDITIONS: Final = (
    "n > 0",
    "n >= 1 AND n <> 7",
    "i = 1 OR i IS NULL",
    "NOT (n < 1)",
    "n <=> 1",
    "k <=> NULL",
    "v > 3",
    "v >= 3.5",
    "v < 0.1 OR v <= -1.5",
    "v = v",
    "v > f",
    "v <= f",
    "v <=> f",
    "v <> 1",
    "v <=> 0.0",
    "NOT v < 1e7",
    "k IN ('a', 'b', '')",
    "NOT k IN ('a')",
    "n IN (1, 7)",
    "k BETWEEN 'a' AND 'c'",
    "n BETWEEN -1 AND 1",
    "d > 1",
    "d = 1.5",
    "d <> 3.00",
    "b",
    "NOT b",
    "b = true",
    "b IS NOT NULL AND k IS NULL",
    "ts >= TIMESTAMP '2026-01-01 00:00:10'",
    "on_ < DATE '2000-01-01'",
    "on_ = DATE '2024-02-29'",
    "nvl(n, 5) = 5",
    "coalesce(k, 'a') = 'a'",
    "nullif(n, 1) IS NULL",
    "if(b, n, 0) > 0",
    "CASE WHEN n > 0 THEN true WHEN n < 0 THEN false END",
    "CASE k WHEN 'a' THEN 1 ELSE 2 END = 1",
    "true",
    "true AND n > 0",
    "nullif(b, b) OR n > 0",
    "CASE WHEN true THEN n ELSE 0 END = 1",
    "CASE WHEN nullif(1, 1) = 1 THEN 1 END IS NULL",
    "coalesce(nullif(1, 1), n) = 1",
    "nullif(nullif(nullif(n, 1), 7), 0) > 0",
    "((n <=> 1) <=> true) <=> (k <=> 'a')",
    "1 IN (1, 2)",
    "1 = 1",
    "1 <=> nullif(1, 1)",
    "NOT true",
    "n IN (1)",
    "CAST(NULL AS BOOLEAN)",
    "CAST(NULL AS BIGINT) > n",
    "local > TIMESTAMP_NTZ '2000-01-01 00:00:00'",
    "d BETWEEN 1 AND 3",
    "'a' < k",
    "nullif(b, b)",
    "small > i",
    "f IS NULL",
    "v * 2 - 1 > v / 2",
    "v + f > 1",
)

_SAFE: Final = [one for one in _CONDITIONS if "/" not in one]
"""Those that cannot fail."""

_COLUMNS: Final = (
    "k, n, v",
    'n AS `a %s b`, k AS `quo"te`',
    "n + 1 AS m, v * 2 AS w, small - 1L AS s",
    "i * 2L AS twice, n - i AS less",
    "v / 2 AS half, n / 4 AS quarter",
    "CASE WHEN v > 1 THEN 'more' WHEN v IS NULL THEN k ELSE 'less' END AS c",
    "coalesce(n, i, 0) AS c, nvl(v, n) AS w",
    "1 AS one, 'text' AS t, 2.5 AS d, true AS b, nullif(1, 1) AS nothing, 1.5D AS w",
    "cast(i AS BIGINT) AS m, cast(n AS DOUBLE) AS w, cast(n AS DECIMAL(25, 3)) AS d",
    "n = 1 AS x, n <=> NULL AS y, v < f AS z",
    "n AS n, n AS m",
)

_AGGREGATES: Final = (
    *("count(*)", "count(1)", "count(n)", "count(v)", "count(k)", "count(CASE WHEN b THEN 1 END)"),
    *("sum(n)", "sum(i)", "sum(small)", "sum(d)", "sum(n * 2)", "sum(n) / count(*)"),
    *("min(n)", "max(n)", "min(k)", "max(k)", "min(i)", "max(small)", "min(b)", "max(b)"),
    *("min(v)", "max(v)", "min(ts)", "max(ts)", "min(on_)", "max(d)", "max(n + 1)"),
    *("avg(n)", "avg(i)", "avg(small)", "count(*) + 1", "sum(n) - min(n)"),
    *("sum(CASE WHEN n > 0 THEN 1 ELSE 0 END)", "max(coalesce(k, ''))"),
    "CASE WHEN count(*) > 2 THEN 'many' ELSE 'few' END",
    *("count('text')", "count(2.5D)", "avg(2.5D)", "count(coalesce('a', 'b'))", "count(2.5)"),
    *("count(DATE '2024-01-01')", "sum(1)", "sum(2.5)", "min(2.5)", "max('x')", "avg(1)"),
    *("count(nullif(1, 1))", "avg(nullif(1, 1))", "count(on_)", "count(ts)", "count(d)"),
)

_NESTED: Final = (
    (
        "SELECT window.end, count(*) AS c FROM clicks GROUP BY window(ts, '10 seconds') "
        "HAVING count(*) > 40 AND max(n) IS NOT NULL"
    ),
    (
        "SELECT w.start, w.end, k, count(*) AS c FROM (SELECT window(ts, '5 seconds') AS w, k "
        "FROM clicks WHERE n > 0) GROUP BY w, k"
    ),
    "SELECT b, n, small, sum(n) AS s FROM clicks GROUP BY window(ts, '1 hour'), b, n, small",
    "SELECT n + 1 AS more, count(*) AS c FROM clicks GROUP BY window(ts, '1 hour'), n + 1",
    (
        "SELECT c + 1 AS d, k FROM (SELECT k, count(*) AS c FROM clicks "
        "GROUP BY window(ts, '20 seconds'), k) WHERE c > 3"
    ),
    (
        "SELECT coalesce(k, 'none') AS name, on_, d, count(*) AS c FROM clicks "
        "GROUP BY window(ts, '1 day'), coalesce(k, 'none'), on_, d"
    ),
    (
        "SELECT window(ts, '1 hour').start AS s, count(*) AS c FROM clicks AS t "
        "WHERE t.n IS NOT NULL GROUP BY window(ts, '1 hour')"
    ),
    "SELECT window, count(*) AS c FROM clicks GROUP BY window(ts, '1 minute')",
    "SELECT 'x' AS x, count(*) AS c, max(1) AS m FROM clicks GROUP BY window(ts, '1 minute'), 'x'",
    (
        "SELECT k AS a, k AS b, window, window AS w FROM "
        "(SELECT window(ts, '1 day') AS window, k, n FROM clicks) WHERE n > 0"
    ),
    (
        "SELECT k, c FROM (SELECT k, 10 / sum(n - n) AS r, count(*) AS c FROM clicks "
        "GROUP BY window(ts, '1 minute'), k)"
    ),
    "SELECT k FROM (SELECT k, 10 / (n - n) AS r FROM clicks)",
    (
        "SELECT count(*) AS c FROM (SELECT 10 / (n - n) AS r, ts FROM clicks) "
        "GROUP BY window(ts, '1 minute')"
    ),
    "SELECT local, count(*) AS c FROM clicks GROUP BY window(ts, '1 minute'), local",
    "SELECT k, k AS again, count(*) AS c FROM clicks GROUP BY window(ts, '1 minute'), k, k",
    (
        "SELECT count(nullif(1, 1)) AS c, sum(nullif(1, 1)) AS s, min(nullif('a', 'a')) AS m "
        "FROM clicks GROUP BY window(ts, '1 minute')"
    ),
    "SELECT count(*) AS c FROM clicks WHERE false GROUP BY window(ts, '1 minute')",
    (
        "SELECT m, count(*) AS c FROM (SELECT ts, n > 0 AS m FROM clicks) AS t "
        "GROUP BY window(ts, '1 minute'), m HAVING m"
    ),
)


def _selected(columns: str, *clauses: str) -> str:
    return " ".join(("SELECT", columns, "FROM clicks", *clauses))


def _named(terms: Sequence[str]) -> str:
    """Return terms as columns with names of their own."""
    return ", ".join(f"{term} AS c{at}" for at, term in enumerate(terms))


def _rows(seed: int, size: int = 300) -> pa.Table:
    draw = random.Random(seed)  # noqa: S311 - data of a test
    columns = {name: draw.choices(values, k=size) for name, values in _VALUES.items()}
    columns["ts"] += _EARLY
    for name in _VALUES.keys() - {"ts"}:
        columns[name] += draw.choices(_VALUES[name], k=len(_EARLY))
    return pa.table(columns, schema=_SCHEMA)


class _Both:
    """Computes queries by both engines over the same rows."""

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
        return self._spark.sql(sql)

    def by_spark(self, sql: str, keys: Sequence[str]) -> list[ResultRow]:
        taken = events_of(self.frame(sql), keys).toArrow()
        return sorted(map(ResultRow, *(column.to_pylist() for column in taken.columns)))

    def by_arrow(self, sql: str, keys: Sequence[str], pieces: int = 7) -> list[ResultRow]:
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
        return program(resolved_plan(self.frame(sql)), "ts", keys)

    def assert_equal(self, sql: str, keys: Sequence[str] = ()) -> None:
        found, expected = self.by_arrow(sql, keys), self.by_spark(sql, keys)
        assert len(found) == len(expected), sql
        differ = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
        assert not differ, f"{sql[:200]}: {differ[:2]}"


@pytest.fixture
def both(spark: SparkSession) -> _Both:
    """Return both engines over one table of drawn rows."""
    return _Both(spark, _rows(1))


def test_conditions_are_the_same(both: _Both) -> None:
    """Comparisons, IN, BETWEEN, CASE and their like are true, false or null as Spark's are."""
    both.assert_equal(_selected(_named(_CONDITIONS)))
    for condition in ("NOT (n < 1) OR v >= 3.5", "if(b, n, 0) > 0", "true", "nullif(b, b)"):
        both.assert_equal(_selected("n, k, v", "WHERE", condition))


def test_columns_have_the_same_texts(both: _Both) -> None:
    """Computed columns have the texts that Spark writes, of all types and with null."""
    both.assert_equal(_selected("k, n, i, small, v, b, d, on_, ts, local"))
    for columns in _COLUMNS:
        both.assert_equal(_selected(columns))


def test_keys_have_the_same_texts(both: _Both) -> None:
    """Rows are routed by the texts that Spark makes of one key, and of several."""
    names = ["k", "n", "b", "on_", "ts", "small", "one"]
    for keys in (*([name] for name in names), names):
        both.assert_equal(_selected("k, n, b, on_, ts, small, 1 AS one"), keys)


@pytest.mark.parametrize(
    "window", ["'10 seconds'", "'7 seconds', '7 seconds', '3 seconds'", "'100 days'"]
)
def test_windows_have_the_same_aggregates(both: _Both, window: str) -> None:
    """Aggregates of windows are those of Spark, over whichever batches the events come."""
    group = f"GROUP BY window(ts, {window}), k"
    columns = f"window.start AS start, k, {_named(_AGGREGATES)}"
    both.assert_equal(_selected(columns, group), ["start", "k"])


def test_more_forms_of_windows_are_the_same(both: _Both) -> None:
    """Windows of subqueries, several keys, HAVING and columns that are dropped again."""
    for sql in _NESTED:
        both.assert_equal(sql)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_drawn_queries_are_the_same(spark: SparkSession, seed: int) -> None:
    """Conditions and aggregates that are put together by chance give the rows of Spark."""
    both = _Both(spark, _rows(seed))
    draw = random.Random(seed)  # noqa: S311 - data of a test
    for _ in range(12):
        conditions = " AND ".join(f"({one})" for one in draw.sample(_SAFE, 2))
        group = draw.choice(["k", "b", "n", "on_", "small"])
        aggregates = _named(draw.sample(_AGGREGATES, 6))
        both.assert_equal(
            _selected(
                f"window.start AS start, {group}, {aggregates}",
                f"WHERE {conditions}",
                f"GROUP BY window(ts, '{draw.randint(1, 30)} seconds'), {group}",
            )
        )


def test_sums_of_doubles_differ_in_their_last_digits_only(both: _Both) -> None:
    """Spark adds in another order."""
    sql = _selected(
        "k, sum(v) AS s, avg(v) AS m, avg(f) AS mf, sum(f) AS sf",
        "WHERE v < 1e10 AND v > -1e10 AND f < 100 AND ts > TIMESTAMP '2026-01-01 00:00:00' "
        "AND ts < TIMESTAMP '2027-01-01 00:00:00'",
        "GROUP BY window(ts, '1 hour'), k",
    )
    expected = {row["k"]: row for row in both.frame(sql).collect()}
    found = [json.loads(row.text) for row in both.by_arrow(sql, ["k"])]
    assert {row["k"] for row in found} == expected.keys()
    for row in found:
        for name in ("s", "m", "mf", "sf"):
            assert row[name] == pytest.approx(expected[row["k"]][name], rel=1e-12)


_REFUSED: Final = {
    "SELECT k FROM clicks WHERE k LIKE 'a%'": "the function Like",
    "SELECT upper(k) AS u FROM clicks": "the function Upper",
    "SELECT count(DISTINCT n) AS c FROM clicks GROUP BY window(ts, '1 hour')": "DISTINCT",
    "SELECT count(*) FILTER (WHERE b) AS c FROM clicks GROUP BY window(ts, '1 hour')": "FILTER",
    "SELECT stddev(v) AS s FROM clicks GROUP BY window(ts, '1 hour')": "the aggregate StddevSamp",
    "SELECT count(n, k) AS c FROM clicks GROUP BY window(ts, '1 hour')": "the aggregate Count",
    "SELECT try_sum(n) AS s FROM clicks GROUP BY window(ts, '1 hour')": "a sum that does not fail",
    "SELECT avg(d) AS m FROM clicks GROUP BY window(ts, '1 hour')": "the average of DECIMAL(10,2)",
    "SELECT max(f) AS m FROM clicks GROUP BY window(ts, '1 hour')": "MIN and MAX of FLOAT",
    "SELECT k, count(*) AS c FROM clicks GROUP BY k": "groups without a window",
    "SELECT count(*) AS c FROM clicks GROUP BY window(ts, '10 seconds', '5 seconds')": "Expand",
    "SELECT count(*) AS c FROM clicks GROUP BY session_window(ts, '5 seconds')": "STRUCT",
    "SELECT v, count(*) AS c FROM clicks GROUP BY window(ts, '1 hour'), v": "groups by DOUBLE",
    "SELECT DISTINCT k FROM clicks": "the relation Distinct",
    "SELECT a.k FROM clicks a JOIN clicks b ON a.n = b.n": "the relation Join",
    "SELECT k FROM clicks UNION ALL SELECT k FROM clicks": "the relation Union",
    "WITH t AS (SELECT k FROM clicks) SELECT k FROM t": "the relation WithCTE",
    "SELECT f FROM clicks": "the column f, of the type FLOAT",
    "SELECT raw FROM clicks": "the column raw, of the type BINARY",
    "SELECT cast(n AS INT) AS i FROM clicks": "a cast of BIGINT to INT",
    "SELECT cast(n AS STRING) AS i FROM clicks": "a cast of BIGINT to STRING",
    "SELECT k FROM clicks WHERE n <> 0 AND 10 / n > 1": "a computation that may fail within AND",
    "SELECT if(n = 0, 0, 10 / n) AS r FROM clicks": "a computation that may fail within IF",
    "SELECT r FROM (SELECT 10 / n AS r, n FROM clicks) WHERE n > 1": "a condition over a computat",
    "SELECT try_add(n, 1) AS m FROM clicks": "Add that does not fail",
    "SELECT r FROM (SELECT 10 / n AS r, k FROM clicks) WHERE k IS NOT NULL": "a condition over a",
    "SELECT sum(r) AS s FROM (SELECT 10 / n AS r, ts FROM clicks) GROUP BY window(ts, '1 hour')": (
        "a condition over a computation"
    ),
    "SELECT k, sum(10 / n) AS s FROM clicks GROUP BY window(ts, '1 hour'), k HAVING k = 'a'": (
        "a condition over a computation"
    ),
    _selected(f"n{' + 1' * 200} AS m"): "more than 100 levels",
    "SELECT d * d AS m FROM clicks": "arithmetic of DECIMAL(10,2)",
    "SELECT n % 2 AS m FROM clicks": "the function Remainder",
    "SELECT array(n) AS m FROM clicks": "values of the type ARRAY<BIGINT>",
    "SELECT named_struct('a', n).a AS x FROM clicks": "fields of structures",
    "SELECT count(*) AS c FROM clicks GROUP BY window(ts + INTERVAL 1 SECOND, '1 hour')": "the f",
    "SELECT sum(c) AS s FROM (SELECT window, count(*) AS c FROM clicks GROUP BY "
    "window(ts, '1 second')) GROUP BY window": "aggregates of aggregates",
    "SELECT explode(sequence(1, 3)) AS x FROM clicks": "the relation Generate",
    "SELECT k, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM clicks": "the relation",
    "SELECT k FROM clicks ORDER BY k LIMIT 3": "the relation",
    "SELECT k IN (SELECT k FROM clicks) AS x FROM clicks": "the function",
    "SELECT (SELECT max(n) FROM clicks) AS x FROM clicks": "the function",
    "SELECT b AS x FROM clicks WHERE v IN (1.0D, 2.0D)": "IN with values",
    "SELECT b AS x FROM clicks WHERE n IN (1, NULL)": "IN with values",
}


def test_parts_that_arrow_lacks_are_refused(both: _Both) -> None:
    """The refusal names the part, and says that Spark can."""
    for sql, part in _REFUSED.items():
        with pytest.raises(InvalidQuery) as refused:
            both.program(sql, [])
        assert part in str(refused.value), sql
        assert refused.value.field == "spec.engine"
        assert "Spark can" in str(refused.value.remedy)


@pytest.mark.parametrize("key", ["v", "d", "window"])
def test_keys_that_arrow_does_not_write_are_refused(both: _Both, key: str) -> None:
    """Keys are texts, whole numbers, truth values, dates and times."""
    sql = _selected("window, max(v) AS v, max(d) AS d", "GROUP BY window(ts, '1 hour')")
    with pytest.raises(InvalidQuery, match=f"keys of the result such as {key}"):
        both.program(sql, [key])


_FAILING: Final = (
    "SELECT n * 9223372036854775807L AS m FROM clicks",
    "SELECT small + small AS m FROM clicks WHERE small = 127Y",
    "SELECT v / 0 AS m FROM clicks",
    (
        "SELECT sum(n + 9223372036854700000L) AS m FROM clicks WHERE n = 7 OR n = 0 "
        "GROUP BY window(ts, '1 hour')"
    ),
)


@pytest.mark.parametrize("sql", _FAILING)
def test_computations_that_fail_fail(both: _Both, sql: str) -> None:
    """Where Spark ends a query, for want of room or by a division by zero, so does Arrow."""
    with pytest.raises(pa.ArrowInvalid):
        both.by_arrow(sql, [])
    with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|OVERFLOW"):
        both.by_spark(sql, [])
