"""Read a plan that Spark has resolved from its objects, for Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.arrow.terms import ResolvedPlan, Step, Term, refuse
from sluice.pipelines.query.spark_plans import each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALIASES: Final = "SubqueryAlias"
_TABLE: Final = "View"
_NAMED: Final = frozenset({"AttributeReference", "Alias"})

_JUDGED: Final = frozenset(
    {"Add", "Subtract", "Multiply", "Divide", "Remainder", "Cast", "Average"}
)
"""What has a mode of its own for failures."""


def resolved_plan(frame: DataFrame) -> ResolvedPlan:
    """Return the plan of a query over one table.

    Raises:
        InvalidQuery: it has other relations.
    """
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way
    steps: list[Step] = []
    while True:
        name = str(plan.getClass().getSimpleName())
        if name == _TABLE:
            columns = tuple(_term(one) for one in each(plan.output()))
            return ResolvedPlan(str(plan.desc().identifier().table()), columns, tuple(steps[::-1]))
        if name != _ALIASES:
            steps.append(_step(name, plan))
        plan = plan.child()


def _step(name: str, plan: Any) -> Step:
    match name:
        case "Filter":
            return Step(name, (_term(plan.condition()),))
        case "Project":
            return Step(name, tuple(map(_term, each(plan.projectList()))))
        case "Aggregate":
            return Step(
                name,
                tuple(map(_term, each(plan.aggregateExpressions()))),
                tuple(map(_term, each(plan.groupingExpressions()))),
            )
    return refuse(f"the relation {name}")


def _term(node: Any) -> Term:
    name = str(node.getClass().getSimpleName())
    if _is_replaced(node):
        return _term(node.replacement())
    return Term(
        name,
        str(node.dataType().catalogString()),
        _number(name, node),
        _text(name, node),
        tuple(map(_term, each(node.children()))),
    )


def _is_replaced(node: Any) -> bool:
    """Tell whether Spark itself puts another expression into the place of one."""
    return any(
        one.getSimpleName() == "RuntimeReplaceable" for one in node.getClass().getInterfaces()
    )


def _number(name: str, node: Any) -> int:
    if name in _NAMED:
        return int(node.exprId().id())
    if name == "GetStructField":
        return int(node.ordinal())
    if name in {"CommonExpressionDef", "CommonExpressionRef"}:
        return int(node.id().id())
    return -1


def _text(name: str, node: Any) -> str | None:
    if name in _NAMED:
        return str(node.name())
    if name in _JUDGED:
        return str(node.evalMode().toString())
    if name == "Sum":
        return str(node.evalContext().evalMode().toString())
    if name == "Literal":
        value = node.value()
        return None if value is None else _written(value)
    if name == "AggregateExpression":
        return _extras(node)
    return ""


def _written(value: Any) -> str:
    """Return a value that Py4J has made one of Python's, or has left as an object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.toString()) if hasattr(value, "toString") else str(value)


def _extras(node: Any) -> str:
    """Return what an aggregate has beside its function; an empty text for nothing."""
    if node.isDistinct():
        return "DISTINCT"
    return "FILTER" if node.filter().isDefined() else ""
