"""The engine Arrow refuses what it cannot compute as Spark does, and fails where Spark fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from sluice.errors import InvalidQuery
from support.query.both_engines import selected

if TYPE_CHECKING:
    from support.query.both_engines import BothEngines

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
    selected(f"n{' + 1' * 200} AS m"): "more than 100 levels",
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


def test_parts_that_arrow_lacks_are_refused(both: BothEngines) -> None:
    """The refusal names the part, and says that Spark can."""
    for sql, part in _REFUSED.items():
        with pytest.raises(InvalidQuery) as refused:
            both.program(sql, [])
        assert part in str(refused.value), sql
        assert refused.value.field == "spec.engine"
        assert "Spark can" in str(refused.value.remedy)


@pytest.mark.parametrize("key", ["v", "d", "window"])
def test_keys_that_arrow_does_not_write_are_refused(both: BothEngines, key: str) -> None:
    """Keys are texts, whole numbers, truth values, dates and times."""
    sql = selected("window, max(v) AS v, max(d) AS d", "GROUP BY window(ts, '1 hour')")
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
def test_computations_that_fail_fail(both: BothEngines, sql: str) -> None:
    """Where Spark ends a query, for want of room or by a division by zero, so does Arrow."""
    with pytest.raises(pa.ArrowInvalid):
        both.by_arrow(sql, [])
    with pytest.raises(Exception, match=r"ARITHMETIC_OVERFLOW|DIVIDE_BY_ZERO|OVERFLOW"):
        both.by_spark(sql, [])
