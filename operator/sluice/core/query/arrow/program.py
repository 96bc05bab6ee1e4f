"""Make a program for Arrow from a plan that Spark has resolved, or say what Arrow cannot compute.

A program has steps over events, perhaps the windows into which they are folded, and steps over the
rows of closed windows. Each part of a plan is known here by name: everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sluice.core.query.arrow.aggregates import Aggregate, aggregate
from sluice.core.query.arrow.constants import folded
from sluice.core.query.arrow.expressions import EDGE, Expression, Value, expression, may_fail
from sluice.core.query.arrow.kinds import FLOATS, arrow_type, known
from sluice.core.query.arrow.pruning import pruned
from sluice.core.query.arrow.terms import Term, refuse
from sluice.core.query.arrow.tumbling import tumbling
from sluice.core.query.arrow.windows import WINDOW, WindowFolding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.core.query.arrow.terms import ResolvedPlan, Step
    from sluice.core.query.arrow.tumbling import Tumbling


class StepRows(NamedTuple):
    """Rows between two steps.

    Attributes:
        columns: the columns, by the ids that Spark gave them.
        size: the number of rows.
    """

    columns: Mapping[int, Value]
    size: int


Work = Callable[[StepRows], StepRows]
"""Makes rows of others."""


class ProgramColumn(NamedTuple):
    """A column of the result.

    Attributes:
        number: its id.
        name: its name.
        kind: its type, as Spark writes it; of a window, that of its edges.
        length: of a window, in microseconds; else None.
    """

    number: int
    name: str
    kind: str
    length: int | None = None


@dataclass(frozen=True)
class Program:
    """A query for Arrow.

    Attributes:
        names: the columns that it reads, by the ids that Spark gave them.
        before: what is done with events.
        folding: how they are folded into windows; None without windows.
        closed: makes rows of the state of closed windows.
        after: what is done with these.
        result: the columns of the result.
    """

    names: Mapping[int, str]
    before: tuple[Work, ...]
    folding: WindowFolding | None
    closed: Callable[[pa.Table], StepRows]
    after: tuple[Work, ...]
    result: tuple[ProgramColumn, ...]

    def events(self, batch: pa.RecordBatch) -> StepRows:
        """Return the rows that events become, before they are folded.

        Raises:
            pyarrow.ArrowInvalid: a computation failed.
        """
        columns = {number: batch.column(name) for number, name in self.names.items()}
        return _done(self.before, StepRows(columns, len(batch)))

    def results(self, state: pa.Table) -> StepRows:
        """Return the rows of the result that closed windows become. Errors as `events`."""
        return _done(self.after, self.closed(state))


def _done(steps: Sequence[Work], rows: StepRows) -> StepRows:
    for step in steps:
        rows = step(rows)
    return rows


def program(plan: ResolvedPlan, time: str | None, keys: Sequence[str]) -> Program:
    """Return the program for a plan.

    Args:
        plan: the plan.
        time: the column of the table that says when an event happened; None without one.
        keys: the columns that tell rows of the result apart.

    Raises:
        InvalidQuery: Arrow cannot compute it.
    """
    maker = _Maker(plan, time)
    for step in pruned(plan.steps):
        maker.take(step)
    return maker.made(keys)


_KEYS: Final = ("string", "tinyint", "smallint", "int", "bigint", "boolean", "date", "timestamp")
"""The types of keys of the result."""

_FIRST: Final = -2
"""The id of the first column that has none of Spark's. Others follow below it."""


class _WindowColumn(NamedTuple):
    """A column that is a window: it has the beginnings, in microseconds.

    Attributes:
        length: in microseconds.
        kind: the type of its edges.
    """

    length: int
    kind: str


class _Maker:
    """Takes the steps of a plan, one after the other."""

    def __init__(self, plan: ResolvedPlan, time: str | None) -> None:
        self._table = plan.columns
        self._time = next((one.number for one in plan.columns if one.text == time), None)
        # A column of another type is refused where it is used.
        self._kinds = {one.number: one.kind for one in plan.columns if known(one.kind)}
        self._windows: dict[int, _WindowColumn] = {}
        self._steps: list[Work] = []
        self._before: tuple[Work, ...] = ()
        self._folding: WindowFolding | None = None
        self._closed: Callable[[pa.Table], StepRows] | None = None
        self._output = plan.columns
        self._fails = False

    def take(self, step: Step) -> None:
        """Take a step."""
        match step.name:
            case "Filter":
                self._filter(step.terms[0])
            case "Project":
                self._project(step.terms)
            case _:
                self._aggregate(step)

    def made(self, keys: Sequence[str]) -> Program:
        """Return the program, once all steps are taken."""
        result = tuple(map(self._column, self._output))
        kinds = {one.name: "a window" if one.length else one.kind for one in result}
        for key in keys:
            if kinds[key] not in _KEYS:
                refuse(f"keys of the result such as {key}, of the type {kinds[key].upper()}")
        steps = tuple(self._steps)
        return Program(
            names={one.number: str(one.text) for one in self._table if known(one.kind)},
            before=steps if self._folding is None else self._before,
            folding=self._folding,
            closed=self._closed or _nothing,
            after=() if self._folding is None else steps,
            result=result,
        )

    def _filter(self, term: Term) -> None:
        if self._fails:  # Spark moves conditions below computations
            refuse("a condition over a computation that may fail")
        condition = expression(self._known(term), self._kinds)
        self._fails = may_fail(term)
        self._steps.append(lambda rows: _filtered(rows, condition(rows.columns)))

    def _project(self, terms: Sequence[Term]) -> None:
        made: dict[int, Expression] = {}
        kinds: dict[int, str] = {}
        windows: dict[int, _WindowColumn] = {}
        for term in terms:
            inner = term.parts[0] if term.name == "Alias" else term
            found = tumbling(inner)
            if found is not None and found.time == self._time and found.time in self._kinds:
                windows[term.number] = _WindowColumn(found.length, self._kinds[found.time])
                made[term.number] = _begins(found)
            elif inner.name == "AttributeReference" and inner.number in self._windows:
                windows[term.number] = self._windows[inner.number]
                made[term.number] = _column_of(inner.number)
            elif inner.name == "AttributeReference" and inner.number not in self._kinds:
                continue  # of a type that Arrow's engine lacks; refused where it is used
            else:
                made[term.number] = expression(self._known(term), self._kinds)
                kinds[term.number] = term.kind
                self._fails = self._fails or may_fail(term)
        self._kinds, self._windows, self._output = kinds, windows, tuple(terms)
        self._steps.append(lambda rows: _projected(rows, made))

    def _aggregate(self, step: Step) -> None:
        if self._folding is not None:
            refuse("aggregates of aggregates")
        begins = [
            key.number
            for key in step.keys
            if key.name == "AttributeReference" and key.number in self._windows
        ]
        if len(begins) != 1:
            refuse(
                "groups without a window of the source's event time that begins where the last "
                "one ends"
            )
        window = self._windows[begins[0]]
        others = [key for key in step.keys if key.number != begins[0]]
        for key in others:
            if key.kind in FLOATS:
                refuse(f"groups by {key.kind.upper()}")
        groups = _Groups(step, begins[0], others)
        aggregates = [aggregate(self._known(one), self._kinds) for one in groups.aggregates]
        self._folding = WindowFolding(
            begins=_column_of(begins[0]),
            length=window.length,
            keys=tuple(
                (expression(self._known(key), self._kinds), arrow_type(key.kind)) for key in others
            ),
            parts=tuple(part for one in aggregates for part in one.parts),
        )
        self._before, self._steps = tuple(self._steps), []
        self._fails = self._fails or any(may_fail(term) for term in (*step.terms, *step.keys))
        self._closed = _closing(groups, aggregates)
        self._kinds = groups.kinds
        self._windows = {groups.window: window}
        # What an aggregate gives is a column like others: the rest is a projection.
        self._project(groups.result)

    def _known(self, term: Term) -> Term:
        """Return a term in which fields of windows are plain ones, and casts of constants done."""
        return folded(self._plain(term))

    def _plain(self, term: Term) -> Term:
        if term.name == "GetStructField":
            (child,) = term.parts
            window = self._windows.get(child.number) if child.name == "AttributeReference" else None
            if window is None:
                refuse("fields of structures that are no windows")
            later = term.number * window.length
            return Term(EDGE, window.kind, child.number, str(later))
        return term._replace(parts=tuple(map(self._plain, term.parts)))

    def _column(self, term: Term) -> ProgramColumn:
        name = str(term.text)
        window = self._windows.get(term.number)
        if window is not None:
            return ProgramColumn(term.number, name, window.kind, window.length)
        if term.number not in self._kinds or term.kind == "float":
            refuse(f"the column {name}, of the type {term.kind.upper()}")
        return ProgramColumn(term.number, name, term.kind)


class _Groups:
    """The columns that groups have: the window, the other keys, the aggregates, by ids of ours.

    Attributes:
        window: the id of the window.
        keys, kinds: the ids of the other keys; the types of all columns but the window.
        aggregates: the aggregates, each once.
        numbers: their ids.
        result: the terms of the result over these columns.
    """

    def __init__(self, step: Step, window: int, others: Sequence[Term]) -> None:
        self.window = _FIRST
        self.kinds: dict[int, str] = {}
        self.keys = [self._add(key) for key in others]
        self._places: dict[Term, int] = dict(zip(others, self.keys, strict=True))
        self._begins = window
        self.aggregates: list[Term] = []
        self.numbers: list[int] = []
        self.result = tuple(self._named(term) for term in step.terms)

    def _add(self, term: Term) -> int:
        number = self.window - 1 - len(self.kinds)
        self.kinds[number] = term.kind
        return number

    def _named(self, term: Term) -> Term:
        """Return a column of the result with its own id."""
        inner = term.parts[0] if term.name == "Alias" else term
        return Term("Alias", term.kind, term.number, term.text, (self._over(inner),))

    def _over(self, term: Term) -> Term:
        if term.name == "AttributeReference" and term.number == self._begins:
            return term._replace(number=self.window)
        if term.name == "AggregateExpression" and term not in self._places:
            self.aggregates.append(term)
            self.numbers.append(self._add(term))
            self._places[term] = self.numbers[-1]
        number = self._places.get(term)
        if number is not None:
            return Term("AttributeReference", term.kind, number, term.text or "")
        return term._replace(parts=tuple(map(self._over, term.parts)))


def _column_of(number: int) -> Expression:
    return lambda columns: columns[number]


def _begins(windows: Tumbling) -> Expression:
    return lambda columns: windows.begins(columns[windows.time])


def _filtered(rows: StepRows, mask: Value) -> StepRows:
    """Return the rows for which a condition is true, and not null."""
    if isinstance(mask, pa.Scalar):
        mask = pa.repeat(pa.scalar(mask.as_py() is True), rows.size)
    columns = {
        number: one if isinstance(one, pa.Scalar) else one.filter(mask)
        for number, one in rows.columns.items()
    }
    return StepRows(columns, pc.sum(mask).as_py() or 0)


def _projected(rows: StepRows, made: Mapping[int, Expression]) -> StepRows:
    return StepRows({number: one(rows.columns) for number, one in made.items()}, rows.size)


def _closing(groups: _Groups, aggregates: Sequence[Aggregate]) -> Callable[[pa.Table], StepRows]:
    """Return what makes rows of the state of windows."""

    def closed(state: pa.Table) -> StepRows:
        columns: dict[int, Value] = {groups.window: state[WINDOW]}
        columns |= {number: state[f"k{at}"] for at, number in enumerate(groups.keys)}
        parts = _parts(state, len(groups.keys))
        for number, one in zip(groups.numbers, aggregates, strict=True):
            columns[number] = one.result([next(parts) for _ in one.parts])
        return StepRows(columns, len(state))

    return closed


def _parts(state: pa.Table, keys: int) -> Iterator[Value]:
    return iter(state.columns[1 + keys :])


def _nothing(_: pa.Table) -> StepRows:
    return StepRows({}, 0)
