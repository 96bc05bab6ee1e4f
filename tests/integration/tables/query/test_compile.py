"""A query is checked before Spark executes any part of it, and an error has its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluice.api.load import load
from sluice.core.query.plan import EventTime, PlannedParameter
from sluice.core.query.request import query_request
from sluice.core.values.model import StoreAddress
from sluice.errors import InvalidQuery
from sluice.pipelines.query.compile import UncompiledQuery, compiled
from sluice.pipelines.query.planning import planned
from support.engine.queries import source
from support.search import near, searches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.core.query.plan import Compiled

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("streamquery*.yaml"))
SCHEMA = "k STRING, v DOUBLE, n INT, ts TIMESTAMP, a ARRAY<INT>"

GOOD = {
    "windows": "SELECT window.start AS start, k, count(*) AS n, avg(v) AS mean FROM clicks"
    " WHERE v > 3 AND k IS NOT NULL GROUP BY window(ts, '10 seconds'), k HAVING count(*) > 1",
    "sessions": "SELECT session_window.start AS start, k, max(v) AS most FROM clicks"
    " GROUP BY session_window(ts, '5 minutes'), k",
    "operators": "SELECT v::int AS a, -v AS b, v % 2 AS c, k || 'x' AS d, NOT true AS e, a[0] AS f,"
    " CASE WHEN v > 1 THEN 'a' ELSE NULL END AS g, k IN ('a', 'b') AS h, v BETWEEN 1 AND 2 AS i,"
    " try_cast(k AS INT) AS j, k RLIKE 'a+' AS l, v <=> 3 AS m, n >> 1 AS o FROM clicks",
    "functions in the words of SQL": "SELECT date '2026-01-01' AS a, extract(hour FROM ts) AS b,"
    " substring(k FROM 1 FOR 2) AS c, trim(BOTH ' ' FROM k) AS d, position('a' IN k) AS e,"
    " ts + INTERVAL 1 DAY AS f FROM clicks",
    "structures": "SELECT named_struct('a', 1).a AS a, struct(1, 2) AS b, map('a', 1)['a'] AS c,"
    " transform(a, x -> x + 1) AS d, filter(a, x -> x > 1) AS e FROM clicks",
    "a common table": "WITH x AS (SELECT k, v FROM clicks) SELECT k FROM x WHERE v > 1",
    "rows of a list": "SELECT k, e FROM clicks LATERAL VIEW explode(a) t AS e",
    "a join in time": "SELECT a.k FROM clicks a JOIN clicks b ON a.k = b.k AND a.ts = b.ts",
    "a union": "SELECT k FROM clicks UNION ALL SELECT upper(k) FROM clicks",
    "a list of values": "SELECT k, c FROM clicks JOIN (VALUES ('a', 1) AS t(key, c)) ON k = key",
    "a parameter": "SELECT k FROM clicks WHERE v > :least",
}


BAD: dict[str, tuple[str, str]] = {
    "no SQL": ("SELEC 1", r"syntax error at or near 'SELEC' \(line 1, column 1\)"),
    "two statements": ("SELECT * FROM clicks; DROP TABLE clicks", r"line 1, column 23"),
    "a table that is none": ("SELECT * FROM nope", r"no source 'nope' \(line 1, column 15\)"),
    "a file as a table": ("SELECT * FROM parquet.`{marked}`", "no source 'parquet"),
    "a file in a common table": ("WITH x AS (SELECT * FROM csv.`{marked}`) SELECT * FROM x", "csv"),
    "a file in a subquery": ("SELECT * FROM (SELECT * FROM json.`{marked}`) y", "json"),
    "a file in a condition": (
        "SELECT k FROM clicks WHERE EXISTS (SELECT 1 FROM text.`{marked}`)",
        "a subquery in a condition",
    ),
    "a file in a list": ("SELECT k FROM clicks WHERE k IN (SELECT * FROM text.`{marked}`)", "text"),
    "a table of a catalogue": ("SELECT * FROM spark_catalog.default.clicks", "no source"),
    "a table by another name": ("SELECT * FROM identifier('cli' || 'cks')", "may not have"),
    "a setting": ("SET spark.sql.ansi.enabled=false", "a set command"),
    "a view": ("CREATE TEMPORARY VIEW x AS SELECT * FROM clicks", "a create view command"),
    "a jar": ("ADD JAR '/tmp/x.jar'", "an add jars command"),
    "an insertion": ("INSERT INTO clicks SELECT * FROM clicks", "an insert into statement"),
    "a description": ("DESCRIBE clicks", "a describe relation"),
    "a script": ("BEGIN SELECT * FROM clicks; END", "a compound body"),
    "Java by reflection": (
        "SELECT reflect('java.lang.System', 'exit', '1') FROM clicks",
        r"may not call reflect \(line 1, column 8\)",
    ),
    "Java by another name": ("SELECT try_reflect('a', 'b') FROM clicks", "call try_reflect"),
    "a program": ("SELECT TRANSFORM(k) USING 'cat' FROM clicks", "TRANSFORM ... USING"),
    "chance": ("SELECT k, rand() AS r FROM clicks", r"call rand \(line 1, column 11\)"),
    "chance by a whole name": ("SELECT system.builtin.rand() FROM clicks", "system.builtin.rand"),
    "ids by chance": ("SELECT uuid() AS u FROM clicks", "call uuid"),
    "the time": ("SELECT k, now() AS n FROM clicks", "call now"),
    "the time as a column": ("SELECT k, current_timestamp AS n FROM clicks", "current timestamp"),
    "the time as a word": ("SELECT TIMESTAMP 'now' AS n FROM clicks", "is no time that stays"),
    "the day as a word": ("SELECT DATE /* */ ' today' AS n FROM clicks", "is no time"),
    "the time in disguise": ("SELECT TIMESTAMP 'n\\u006fw' AS n FROM clicks", "is no time"),
    "the time by a cast": ("SELECT CAST('now' AS TIMESTAMP) AS n FROM clicks", "'now' as a time"),
    "the time by parts": ("SELECT k FROM clicks WHERE ts < concat('n', 'ow')", "'now' as a time"),
    "the time by a function": ("SELECT to_timestamp('today') AS n FROM clicks", "as a time"),
    "the time behind a function": (
        "SELECT CAST(nvl('now', 'x') AS TIMESTAMP) AS n FROM clicks",
        "as a time changes",
    ),
    "a class by its name": (
        """SELECT from_json(k, '{{"type":"udt","class":"X"}}') AS x FROM clicks""",
        "call from_json",
    ),
    "a collation": ("SELECT max(k COLLATE UTF8_LCASE) AS m FROM clicks", "collation"),
    "a table that only has the name of an alias": (
        "SELECT orders.k FROM clicks AS orders JOIN orders ON true",
        "no source 'orders'",
    ),
    "the user": ("SELECT user AS u FROM clicks", "current user"),
    "the machine": ("SELECT input_file_name() AS f FROM clicks", "call input_file_name"),
    "the order of events": (
        "SELECT first(k) AS f FROM clicks GROUP BY window(ts, '1 minute')",
        "first, last or any_value",
    ),
    "a mistyped function": ("SELECT uper(k) FROM clicks", "call uper"),
    "a mistyped column": ("SELECT kk FROM clicks", r"`kk`.* \(line 1, column 8\)"),
    "other types": ("SELECT a + v AS x FROM clicks", r"line 1, column 8"),
    "a sorted result": ("SELECT k FROM clicks ORDER BY k", "ORDER BY"),
    "a few rows": ("SELECT k FROM clicks LIMIT 3", "LIMIT"),
    "rows over others": ("SELECT max(v) OVER () AS m FROM clicks", r"OVER \(\.\.\.\)"),
    "a sample": ("SELECT k FROM clicks TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    "a function as a table": ("SELECT * FROM range(10)", "a function as a table"),
    "no source": ("SELECT 1 AS one", "a SELECT without FROM"),
    "values alone": ("VALUES (1)", "reads no source"),
    "a group that is never closed": ("SELECT k, count(*) AS n FROM clicks GROUP BY k", "watermark"),
    "two columns of one name": ("SELECT k, upper(k) AS k FROM clicks", "two columns"),
    "a parameter without a value": ("SELECT k FROM clicks WHERE v > :most", "most"),
}

SOME_GOOD = near(
    GOOD, "functions in the words of SQL", "a common table", "a join in time", "a parameter"
)
SOME_BAD = near(
    BAD,
    "no SQL",
    "two statements",
    "a file in a common table",
    "a file in a condition",
    "a setting",
    "Java by reflection",
    "a program",
    "chance by a whole name",
    "the time in disguise",
    "the time by parts",
    "a class by its name",
    "a table that only has the name of an alias",
    "a mistyped column",
    "a group that is never closed",
)
"""A query for each check, of the text or of the plan, that refuses one."""


def compile_query(spark: SparkSession, sql: str, **changes: Any) -> Compiled:
    """Compile a query over one source."""
    wanted = UncompiledQuery(
        sources=[source(columns=SCHEMA)],
        sql=sql,
        parameters=[PlannedParameter(name="least", type="Double", value="3.5")],
        keys=(),
        emit="Final",
    )
    return compiled(spark, wanted._replace(**changes))


@searches
@pytest.mark.parametrize("sql", SOME_GOOD.values(), ids=SOME_GOOD)
def test_a_query_that_depends_on_its_events_alone_is_compiled(
    spark: SparkSession, sql: str
) -> None:
    """Such a query is compiled without a store."""
    assert compile_query(spark, sql).columns


@searches
@pytest.mark.parametrize(("sql", "said"), SOME_BAD.values(), ids=SOME_BAD)
def test_a_wrong_query_is_refused_with_its_place(
    spark: SparkSession, sql: str, said: str, tmp_path: Path
) -> None:
    """The error names the field and a remedy. Nothing in the text is executed or looked up."""
    marked = tmp_path / "marked"
    marked.write_text("a line\n")
    accessed = marked.stat().st_atime_ns
    with pytest.raises(InvalidQuery, match=said) as caught:
        compile_query(spark, sql.format(marked=marked))
    assert caught.value.field == "spec.query.sql"
    assert caught.value.remedy
    assert marked.stat().st_atime_ns == accessed
    assert [view.name for view in spark.catalog.listTables()] in ([], ["clicks"])
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "a schema that is none": ({"sources": [source(columns="k STRIN")]}, "spec.sources[0].schema"),
    "a column of Sluice's own": (
        {"sources": [source(columns="k STRING, _Sluice_Beat STRING, ts TIMESTAMP")]},
        "spec.sources[0].schema",
    ),
    "a format without a schema": ({"sources": [source(columns=None)]}, "spec.sources[0].schema"),
    "event time that is no column": (
        {"sources": [source(event_time=EventTime(column="at", lateness_ms=0))]},
        "spec.sources[0].eventTime.column",
    ),
    "event time that is no time": (
        {"sources": [source(event_time=EventTime(column="k", lateness_ms=0))]},
        "spec.sources[0].eventTime.column",
    ),
    "a key that is no column": ({"keys": ("v",)}, "spec.result.keys"),
    "a time without a zone": (
        {"parameters": [PlannedParameter(name="least", type="Timestamp", value="2026-01-01")]},
        "spec.query.parameters[least].value",
    ),
    "a time that no machine has": (
        {
            "parameters": [
                PlannedParameter(name="least", type="Timestamp", value="0001-01-01T00:00:00+14:00")
            ]
        },
        "spec.query.parameters[least].value",
    ),
    "a number of 65 bits": (
        {"parameters": [PlannedParameter(name="least", type="BigInt", value=str(1 << 64))]},
        "spec.query.parameters[least].value",
    ),
    "a schema with a collation": (
        {"sources": [source(columns="k STRING COLLATE UTF8_LCASE")]},
        "spec.sources[0].schema",
    ),
    "no number": (
        {"parameters": [PlannedParameter(name="least", type="Double", value="much")]},
        "spec.query.parameters[least].value",
    ),
}

SOME_FIELDS = near(FIELDS, "event time that is no column", "a number of 65 bits")


@searches
@pytest.mark.parametrize(("change", "field"), SOME_FIELDS.values(), ids=SOME_FIELDS)
def test_a_wrong_field_is_named(spark: SparkSession, change: dict[str, Any], field: str) -> None:
    """Errors in schemas, keys and parameters name their field."""
    with pytest.raises(InvalidQuery) as caught:
        compile_query(spark, "SELECT k FROM clicks", **change)
    assert caught.value.field == field


@pytest.mark.exhaustive
def test_a_plan_is_the_same_in_other_words_and_another_for_other_results(
    spark: SparkSession,
) -> None:
    """Blanks, letter case, aliases and comments do not change a plan. Other results do."""
    text = "SELECT k, count(*) AS n FROM clicks WHERE v > 1 GROUP BY window(ts, '1 minute'), k"
    words = (
        "select k, COUNT( * ) n -- all\nfrom clicks c where c.v > 1 "
        "group by window(c.ts, '60 seconds'), k"
    )
    one = compile_query(spark, text)
    assert one == compile_query(spark, words)
    longer = text.replace("1 minute", "2 minutes")
    assert compile_query(spark, longer).tree != one.tree
    ids = [f"00000000-0000-0000-0000-00000000000{digit}" for digit in "12"]
    for values in (ids, ["joe@facade", "joe@decade"], ["a', 'b", "a, b"]):
        texts = [text.replace("v > 1", f"k IN ('{value}')") for value in values]
        first, second = (compile_query(spark, one) for one in texts)
        assert first.tree != second.tree
    more = text.replace("v > 1", "v > 2")
    assert compile_query(spark, more).tree != one.tree


@pytest.mark.exhaustive
def test_the_order_of_aggregates_is_a_part_of_the_plan(spark: SparkSession) -> None:
    """A checkpoint has them in the order of the text, and sums have one order for Spark.

    Other names of tables and other cases of letters are no other order.
    """
    columns = "SELECT k, max(n) + count(*) AS a, max(n) AS b FROM clicks "
    group = "GROUP BY window(ts, '1 minute'), k"
    one = compile_query(spark, columns + group)
    words = columns.replace("max(n)", "MAX(c.n)").replace("clicks", "clicks AS c")
    assert compile_query(spark, words + group) == one
    turned = columns.replace("max(n) + count(*)", "count(*) + max(n)")
    assert compile_query(spark, turned + group).tree != one.tree


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_have_a_plan(spark: SparkSession, path: Path) -> None:
    """The query of each example passes all checks, and its result has the keys that it names."""
    (query,) = load(path.read_text(), copies=False).queries
    address = StoreAddress(uri="tcp://127.0.0.1:9090")
    plan = planned(spark, query_request(query, lambda *_: address, cluster="local")).plan
    names = [column.split()[0] for column in plan.compiled.columns.split(",")]
    assert set(query.spec.result.keys) < set(names)


def test_a_text_that_is_nested_too_deeply_is_refused(spark: SparkSession) -> None:
    """A text with too much nesting raises InvalidQuery with a message."""
    sums = " + ".join(["v"] * 700)
    with pytest.raises(InvalidQuery, match=r"deep|complex"):
        compile_query(spark, f"SELECT {sums} AS s FROM clicks")  # noqa: S608 - no user's text
