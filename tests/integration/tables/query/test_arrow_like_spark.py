"""The engine Arrow gives the rows that Spark gives, text for text.

Both compute the same query over the same rows in memory. The rows have the edges of each type.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

import pytest

from support.query.both_engines import BothEngines, drawn_rows, named, selected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_conditions_are_the_same(both: BothEngines) -> None:
    """Comparisons, IN, BETWEEN, CASE and their like are true, false or null as Spark's are."""
    both.assert_equal(selected(named(_CONDITIONS)))
    for condition in ("NOT (n < 1) OR v >= 3.5", "if(b, n, 0) > 0", "true", "nullif(b, b)"):
        both.assert_equal(selected("n, k, v", "WHERE", condition))


def test_columns_have_the_same_texts(both: BothEngines) -> None:
    """Computed columns have the texts that Spark writes, of all types and with null."""
    both.assert_equal(selected("k, n, i, small, v, b, d, on_, ts, local"))
    for columns in _COLUMNS:
        both.assert_equal(selected(columns))


def test_keys_have_the_same_texts(both: BothEngines) -> None:
    """Rows are routed by the texts that Spark makes of one key, and of several."""
    names = ["k", "n", "b", "on_", "ts", "small", "one"]
    for keys in (*([name] for name in names), names):
        both.assert_equal(selected("k, n, b, on_, ts, small, 1 AS one"), keys)


@pytest.mark.parametrize(
    "window", ["'10 seconds'", "'7 seconds', '7 seconds', '3 seconds'", "'100 days'"]
)
def test_windows_have_the_same_aggregates(both: BothEngines, window: str) -> None:
    """Aggregates of windows are those of Spark, over whichever batches the events come."""
    group = f"GROUP BY window(ts, {window}), k"
    columns = f"window.start AS start, k, {named(_AGGREGATES)}"
    both.assert_equal(selected(columns, group), ["start", "k"])


def test_more_forms_of_windows_are_the_same(both: BothEngines) -> None:
    """Windows of subqueries, several keys, HAVING and columns that are dropped again."""
    for sql in _NESTED:
        both.assert_equal(sql)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 8))
def test_drawn_queries_are_the_same(spark: SparkSession, seed: int) -> None:
    """Conditions and aggregates that are put together by chance give the rows of Spark."""
    both = BothEngines(spark, drawn_rows(seed))
    draw = random.Random(seed)  # noqa: S311 - data of a test
    for _ in range(12):
        conditions = " AND ".join(f"({one})" for one in draw.sample(_SAFE, 2))
        group = draw.choice(["k", "b", "n", "on_", "small"])
        aggregates = named(draw.sample(_AGGREGATES, 6))
        both.assert_equal(
            selected(
                f"window.start AS start, {group}, {aggregates}",
                f"WHERE {conditions}",
                f"GROUP BY window(ts, '{draw.randint(1, 30)} seconds'), {group}",
            )
        )


def test_sums_of_doubles_differ_in_their_last_digits_only(both: BothEngines) -> None:
    """Spark adds in another order."""
    sql = selected(
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
