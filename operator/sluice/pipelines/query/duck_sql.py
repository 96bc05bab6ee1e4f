"""Write a query in DuckDB's SQL, whose windows are columns of views.

DuckDB has no `window(time, length)`. A table over which a query has windows becomes a view with a
row for each closed window that an event is in, and the window as a column.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from sqlglot import exp, parse_one, tokenize
from sqlglot.errors import SqlglotError

from sluice.core.query.checks import FIELD
from sluice.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Collection

_WINDOW: Final = "_sluice_window"
"""Stands for the word `window`, which begins a clause of its own in other dialects."""

_PART: Final = re.compile(
    r"(\d+)\s*(week|day|hour|minute|second|millisecond|microsecond)s?\s*", re.IGNORECASE
)
_MICROS: Final = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_MOST_WINDOWS: Final = 10_000
"""The most windows that one event is in."""

_SAME: Final = (
    *(exp.Select, exp.Union, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Table, exp.TableAlias),
    *(exp.Join, exp.Where, exp.Group, exp.Having, exp.Alias, exp.Column, exp.Identifier, exp.Star),
    *(exp.Dot, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Interval),
    *(exp.Var, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.EQ, exp.NEQ),
    *(exp.NullSafeEQ, exp.Case, exp.If, exp.Coalesce, exp.Abs, exp.Lower),
    *(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between),
    *(exp.Count, exp.Sum, exp.Min, exp.Max, exp.Avg, exp.Distinct),
)
"""The parts of a text that mean the same to both engines. Many functions of one name do not: days
of the week are counted from another one, and a cast to an integer rounds."""

_INNER: Final = ("", "INNER", "CROSS")
"""Joins whose rows no watermark holds back."""


class WindowView(NamedTuple):
    """A view of a table with a row for each window of an event.

    Attributes:
        name: the view.
        table: the table.
        time: its column that says when an event happened.
        length, slide, start: of the windows, in microseconds.
    """

    name: str
    table: str
    time: str
    length: int
    slide: int
    start: int

    def sql(self, watermark: int) -> str:
        """Return the statement that makes the view.

        Args:
            watermark: windows that end later are left out, in microseconds since 1970.
        """
        # The last window of an event begins at the remainder below it; both may be negative.
        at, begins = "_sluice_at", "_sluice_begins"
        behind = f"(({at} - {self.start}) % {self.slide} + {self.slide}) % {self.slide}"
        windows = f"range({at} - {behind}, {at} - {behind} - {self.length}, -{self.slide})"
        timed = f"SELECT *, epoch_us({quoted(self.time)}) AS {at} FROM {quoted(self.table)}"  # noqa: S608 - names are quoted
        parts = (
            f"CREATE VIEW {quoted(self.name)} AS SELECT * EXCLUDE ({at}, {begins}),",
            f"{{'start': make_timestamptz({begins}),",
            f"'end': make_timestamptz({begins} + {self.length})}} AS {_WINDOW}",
            # All parts are rendered from the plan.
            f"FROM (SELECT *, unnest({windows}) AS {begins} FROM ({timed}))",  # noqa: S608
            f"WHERE {begins} + {self.length} > {at} AND {begins} + {self.length} <= {watermark}",
        )
        return " ".join(parts)


class Translated(NamedTuple):
    """A query for DuckDB.

    Attributes:
        sql: the text. Parameters are written `$name`.
        parameters: those that the text names.
        views: the views that it reads in place of tables.
    """

    sql: str
    parameters: frozenset[str]
    views: tuple[WindowView, ...]


def translated(sql: str, tables: Collection[str]) -> Translated:
    """Translate a query of Spark.

    Args:
        sql: the text, which Spark has compiled.
        tables: the names of the sources.

    Raises:
        InvalidQuery: this kind of query cannot be computed anew.
    """
    try:
        tree = parse_one(_renamed(sql), read="spark")
        _check_closed(tree, tables)
        views = _with_views(tree, tables)
        _check_same(tree)
        names = frozenset(one.name for one in tree.find_all(exp.Placeholder) if one.this)
        return Translated(tree.sql("duckdb", identify=True), names, views)
    except SqlglotError as error:
        _refuse(f"it has a form that cannot be translated: {str(error).splitlines()[0]}", error)


def _check_closed(tree: exp.Expr, tables: Collection[str]) -> None:
    """Check that the watermark alone tells which rows are in a sink: by windows, or all are."""
    known = {table.casefold() for table in tables}
    if any(one.alias.casefold() in known for one in tree.find_all(exp.CTE)):
        _refuse("a common table has the name of a source")
    if any(one.side or one.kind not in _INNER for one in tree.find_all(exp.Join)):
        _refuse("it has an outer join")
    for select in tree.find_all(exp.Select):
        own = [one for one in select.find_all(exp.Func) if one.find_ancestor(exp.Select) is select]
        windows = any(one.name.lower() == _WINDOW for one in own if isinstance(one, exp.Anonymous))
        grouped = select.args.get("group") is not None
        counts = grouped or any(isinstance(one, exp.AggFunc) for one in own)
        if select.args.get("distinct") or counts != windows or windows != grouped:
            _refuse("it groups without a window, or has a window without a group")


def _check_same(tree: exp.Expr) -> None:
    """Check that a text consists of what means the same to both engines."""
    for part in tree.walk():
        if type(part) not in _SAME:
            _refuse(f"{part.sql('spark')} may mean something else to it")


def _renamed(sql: str) -> str:
    """Return the text with another word in the place of `window`."""
    parts, at = [], 0
    for token in tokenize(sql, read="spark"):
        if token.text.lower() == "window" and sql[token.start] not in "'\"":
            parts += [sql[at : token.start], _WINDOW]
            at = token.end + 1
    return "".join([*parts, sql[at:]])


def _with_views(tree: exp.Expr, tables: Collection[str]) -> tuple[WindowView, ...]:
    """Replace calls of `window` by a column, and the tables of these calls by views."""
    calls = [one for one in tree.find_all(exp.Anonymous) if one.name.lower() == _WINDOW]
    places: dict[int, tuple[exp.Table, WindowView]] = {}
    for call in calls:
        table = _table_of(call, tables)
        view = _view(call, table.name, f"{_WINDOW}_{len(places)}")
        known = places.setdefault(id(table), (table, view))[1]
        if known._replace(name="") != view._replace(name=""):
            _refuse("one SELECT has windows of two kinds")
        call.replace(exp.column(_WINDOW))
    for table, view in places.values():
        table.replace(exp.alias_(exp.to_table(view.name), table.alias_or_name, table=True))
    return tuple(view for _, view in places.values())


def _table_of(call: exp.Expr, tables: Collection[str]) -> exp.Table:
    """Return the table that a SELECT with a window reads, which has to be one source."""
    select = call.find_ancestor(exp.Select)
    source = select.args.get("from_") or select.args.get("from") if select else None
    table = source.this if source is not None else None
    if select is None or select.args.get("joins") or not isinstance(table, exp.Table):
        _refuse("only windows over one source, without a join, can be computed anew")
    if table.name not in tables or table.db:
        _refuse("only windows over a source itself can be computed anew")
    return table


def _view(call: exp.Anonymous, table: str, name: str) -> WindowView:
    time, *spans = call.expressions
    if not isinstance(time, exp.Column) or not 1 <= len(spans) <= 3:  # noqa: PLR2004 - Spark's
        _refuse("only windows over a column, with their length as text, can be computed anew")
    length, *more = map(_micros, spans)
    slide, start = (more[0] if more else length), (more[1] if len(more) > 1 else 0)
    view = WindowView(name, table, time.name, length, slide, start)
    if not 0 < view.slide <= view.length <= _MOST_WINDOWS * view.slide:
        _refuse("an event is in too many windows, or in none")
    return view


def _micros(span: exp.Expr) -> int:
    """Return a length of time in microseconds."""
    text = span.name.strip() if isinstance(span, exp.Literal) else ""
    text = re.sub(r"^interval\s+", "", text, flags=re.IGNORECASE)
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text):
        _refuse(f"the length {span.sql('spark')} of a window is not of whole units")
    return sum(int(count) * _MICROS[unit.lower()] for count, unit in parts)


def quoted(name: str) -> str:
    """Return a name as DuckDB's SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _refuse(why: str, cause: Exception | None = None) -> NoReturn:
    raise InvalidQuery(
        f"the query cannot be computed by DuckDB: {why}",
        field=FIELD,
        remedy="docs/streamquery.md says which queries can be verified.",
    ) from cause
