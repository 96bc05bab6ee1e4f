"""Queries of Spark as DuckDB runs them: its windows are columns of views."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import InvalidQuery
from sluice.pipelines.query.duck_sql import WindowView, translated

if TYPE_CHECKING:
    from typing import Any

SECOND = 1_000_000
FAR = 1 << 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def computed(sql: str, events: list[dict[str, Any]], watermark: int = FAR) -> list[Any]:
    """Return DuckDB's result of a query over events."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute("CREATE TABLE clicks (k VARCHAR, v DOUBLE, ts TIMESTAMPTZ)")
        for event in events:
            database.execute("INSERT INTO clicks VALUES (?, ?, ?)", list(event.values()))
        text = translated(sql, ["clicks"])
        for view in text.views:
            database.execute(view.sql(watermark))
        rows = database.sql(text.sql).to_arrow_table().to_pylist()
        return [tuple(row.values()) for row in rows]


def event(second: int, key: str = "a") -> dict[str, Any]:
    """Return an event."""
    return {"k": key, "v": 1.0, "ts": EPOCH + timedelta(seconds=second)}


@given(
    seconds=st.lists(st.integers(-100, 100), min_size=1, max_size=8),
    slide=st.integers(1, 20),
    times=st.integers(1, 4),
    extra=st.integers(0, 19),
    start=st.integers(0, 20),
    watermark=st.integers(-150, 150),
)
def test_an_event_is_in_each_closed_window_around_it(
    seconds: list[int], slide: int, times: int, extra: int, start: int, watermark: int
) -> None:
    """Windows begin at multiples of the slide after the start, and include their begin."""
    length = slide * times + min(extra, slide - 1)
    window = f"window(ts, '{length} seconds', '{slide} seconds', '{start} seconds')"
    found = computed(
        f"SELECT window.start, window.end, count(*) FROM clicks GROUP BY {window}",  # noqa: S608
        [event(second) for second in seconds],
        watermark * SECOND,
    )
    expected: dict[int, int] = {}
    for second in seconds:
        for begin in range(-300, 300):
            inside = begin <= second < begin + length and begin + length <= watermark
            if (begin - start) % slide == 0 and inside:
                expected[begin] = expected.get(begin, 0) + 1
    assert [(round(b.timestamp()), round(e.timestamp()), n) for b, e, n in sorted(found)] == [
        (begin, begin + length, count) for begin, count in sorted(expected.items())
    ]


def test_windows_without_a_slide_follow_one_another() -> None:
    """The window itself may be a column of the result, in any case, behind a name."""
    events = [event(0), event(59), event(60), event(60, "b")]
    found = computed(
        "SELECT WINDOW, c.k, sum(v) FROM clicks c GROUP BY Window(ts, '1 minute'), k", events
    )
    assert [
        (w["start"].second, w["end"] - w["start"], k, v) for w, k, v in sorted(found, key=str)
    ] == [
        (0, timedelta(minutes=1), "a", 2.0),
        (0, timedelta(minutes=1), "a", 1.0),
        (0, timedelta(minutes=1), "b", 1.0),
    ]


def test_queries_without_windows_read_the_tables() -> None:
    """Parameters keep their names, and a text may contain the word."""
    text = translated("SELECT 'window(' AS w, k FROM clicks WHERE v > :least", ["clicks"])
    assert (text.views, text.parameters) == ((), {"least"})
    assert "'window('" in text.sql


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT count(*) FROM other GROUP BY window(ts, '1 minute')", "over a source itself"),
        (
            "WITH a AS (SELECT * FROM clicks) SELECT count(*) FROM a GROUP BY window(ts, '1 day')",
            "over a source itself",
        ),
        (
            "SELECT count(*) FROM clicks a, clicks b GROUP BY window(a.ts, '1 day')",
            "without a join",
        ),
        (
            "SELECT count(*) FROM clicks GROUP BY window(ts, '1 day'), window(ts, '2 days')",
            "two kinds",
        ),
        ("SELECT count(*) FROM clicks GROUP BY window(ts, '1 month')", "of whole units"),
        ("SELECT count(*) FROM clicks GROUP BY window(ts, '1 day', '1 microsecond')", "too many"),
        ("SELECT count(*) FROM clicks GROUP BY window(ts + INTERVAL 1 DAY, '1 day')", "a column"),
        ("SELECT FROM (", "cannot be translated"),
        ("SHOW TABLES", "may mean something else"),
        ("SELECT dayofweek(ts) FROM clicks", "may mean something else"),
        ("SELECT CAST(v AS INT) FROM clicks", "may mean something else"),
        ("SELECT window(ts, '1 day').start FROM clicks", "without a group"),
        ("SELECT k, count(*) FROM clicks GROUP BY k", "without a window"),
        ("SELECT DISTINCT k FROM clicks", "without a window"),
        ("SELECT a.k FROM clicks a LEFT JOIN clicks b ON a.k = b.k", "outer join"),
        ("WITH Clicks AS (SELECT * FROM clicks) SELECT k FROM Clicks", "name of a source"),
    ],
)
def test_what_cannot_be_computed_anew_is_refused(sql: str, said: str) -> None:
    """The error has the field, and a page that lists valid queries."""
    with pytest.raises(InvalidQuery, match=said) as raised:
        translated(sql, ["clicks"])
    assert raised.value.field == "spec.query.sql"


def test_names_are_quoted() -> None:
    """A column or a table may have any name."""
    view = WindowView('v"', 't"; DROP TABLE x', 'a"b', SECOND, SECOND, 0)
    with duckdb.connect() as database:
        database.execute('CREATE TABLE "t""; DROP TABLE x" ("a""b" TIMESTAMPTZ)')
        database.execute(view.sql(0))
        assert database.execute('SELECT count(*) FROM "v"""').fetchall() == [(0,)]
