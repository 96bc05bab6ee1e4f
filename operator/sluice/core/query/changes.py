"""Compare two plans of a query, to tell whether one can go on with the state of the other.

Spark compares only the layout of its state. Over the same checkpoint it accepts another filter,
another length of windows and another lateness in silence, and goes on with mixed state. So Sluice
compares the plans, and lets Spark have a checkpoint only if they are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sluice.core.query.plan import PlannedSource, QueryPlan


class Change(NamedTuple):
    """A difference between two plans.

    Attributes:
        field: the field of the spec.
        before: its former value, as JSON; None if there was none.
        after: its present value.
    """

    field: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """Return the difference, for people."""
        if self.before is None or self.after is None:
            return f"{self.field} was {'added' if self.before is None else 'removed'}"
        if max(len(self.before), len(self.after)) > _LONGEST:
            return f"{self.field} was changed"
        return f"{self.field} was {self.before}, and is {self.after}"


_LONGEST: Final = 60


def changes(before: QueryPlan, after: QueryPlan) -> list[Change]:
    """Return all differences that decide about results, in the order of the spec.

    Where a query begins decides only about its first version, and addresses of stores say how
    bytes are reached, not what they are. So neither counts.
    """
    found: list[Change] = []
    old = {one.name: one for one in before.sources}
    new = {one.name: one for one in after.sources}
    for name in dict.fromkeys([*old, *new]):
        field = f"spec.sources[{name}]"
        if name not in old or name not in new:
            found.append(Change(field, *(name if name in one else None for one in (old, new))))
            continue
        found += _different(field, _of(old[name]), _of(new[name]))
    if not _same_text(before, after):
        found.append(Change("spec.query.sql", before.sql, after.sql))
    found += _different(
        "spec.query.parameters",
        {one.name: f"{one.type} {one.value}" for one in before.parameters},
        {one.name: f"{one.type} {one.value}" for one in after.parameters},
    )
    found += _different(
        "spec.result",
        {"keys": list(before.keys), "emit": before.emit},
        {"keys": list(after.keys), "emit": after.emit},
    )
    sinks = [[f"{one.stream} ({one.segments})" for one in plan.sinks] for plan in (before, after)]
    found += _different("spec", {"sinks": sinks[0]}, {"sinks": sinks[1]})
    return found + list(_different("spec", {"engine": before.engine}, {"engine": after.engine}))


def _of(source: PlannedSource) -> dict[str, Any]:
    """Return what decides about a table's rows, by the fields of the spec."""
    time = source.event_time
    return {
        "stream": str(source.stream),
        "format": source.format,
        "schema": source.columns,
        "delimiter": source.delimiter,
        "malformed": source.malformed,
        "eventTime.column": None if time is None else time.column,
        "eventTime.latenessSeconds": None if time is None else time.lateness_ms / 1000,
        "eventTime.idleAfterSeconds": _seconds(None if time is None else time.idle_after_ms),
    }


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000


def _same_text(before: QueryPlan, after: QueryPlan) -> bool:
    """Tell whether two texts ask the same.

    Values of parameters are part of the resolved plan, so plans with other values are not compared.
    """
    if before.sql == after.sql:
        return True
    one, other = before.compiled, after.compiled
    # Spark's text of a list of values has only the names of its columns.
    told = "LocalRelation" not in one.tree
    return told and before.parameters == after.parameters and one == other


def _different(field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the fields that have other values."""
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if one != other:
            yield Change(f"{field}.{name}", _said(one), _said(other))


def _said(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
