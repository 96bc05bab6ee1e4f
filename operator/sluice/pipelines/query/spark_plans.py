"""Read plans of Spark as trees of plain values.

Spark's own JSON of a plan leaves out what it cannot write. So a tree is read from the objects: all
relations, expressions and subqueries that Spark itself would rewrite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.checks import UNKNOWN
from sluice.core.query.tree import Node, TextPlace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PLAN: Final = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_REPLACED: Final = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
_SUBQUERY: Final = "org.apache.spark.sql.catalyst.expressions.PlanExpression"

_ACCIDENTS: Final = re.compile(r"@[0-9a-f]{5,16}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""Addresses of objects and ids that Spark draws: another process has others."""

_DRAWN: Final = re.compile(r"^[ :+~|-]*(EventTimeWatermark|StreamingRelationV2)\b")
"""The lines of a plan that have such ids. They have no constants of the query."""

_AGGREGATE: Final = "AggregateExpression"

_IDS: Final = re.compile(r"#\d+L?\b")
"""The ids of columns, which Spark draws."""

_TIMES: Final = ("date", "timestamp")


class Reader:
    """Reads plans of one JVM as trees.

    Args:
        gateway: the connection to the JVM.
        resolved: whether names of the plans are resolved. Only then does Spark say what is
            deterministic, and before that it says where a node stands in the text.
    """

    def __init__(self, gateway: Any, *, resolved: bool) -> None:
        self._gateway = gateway
        self._resolved = resolved

    def relation(self, plan: Any) -> Node:
        """Return the tree of a logical plan."""
        below = [
            *map(self.relation, each(plan.children())),
            *map(self._inner, each(plan.innerChildren())),
            *map(self._expression, each(plan.expressions())),
        ]
        return self._node(plan, below, relation=True)

    def _inner(self, node: Any) -> Node:
        return self.relation(node) if self._is(node, _PLAN) else self._expression(node)

    def _expression(self, node: Any) -> Node:
        below = [self._expression(one) for one in each(node.children())]
        if self._is(node, _SUBQUERY):
            below.append(self.relation(node.plan()))
        if self._resolved and self._is(node, _REPLACED):
            below.append(self._expression(node.replacement()))
        return self._node(node, below, relation=False)

    def _node(self, node: Any, below: Sequence[Node], *, relation: bool) -> Node:
        name = str(node.getClass().getSimpleName())
        asks = self._resolved and not relation
        return Node(
            name,
            relation,
            _names(name, node),
            self._text(name, node),
            deterministic=bool(node.deterministic()) if asks else True,
            place=None if self._resolved else _place(node),
            children=tuple(below),
        )

    def _text(self, name: str, node: Any) -> str:
        """Return what a node says of a constant or an aggregate: see `Node`."""
        if name == _AGGREGATE and self._resolved:
            return _IDS.sub("", str(node.toString())).lower()
        if name == "Literal":
            return str(node.sql()) if self._resolved else f"{_kind(node)} {_written(node)}"
        if name == "Cast" and self._resolved and _kind(node).startswith(_TIMES):
            child = node.child()
            # Spark calls only some of these foldable before it replaces functions.
            if _kind(child) == "string" and child.references().isEmpty():
                return _constant(child)
        return ""

    def _is(self, node: Any, kind: str) -> bool:
        from py4j.java_gateway import is_instance_of  # noqa: PLC0415 - comes with Spark

        return bool(is_instance_of(self._gateway, node, kind))


def _kind(expression: Any) -> str:
    return str(expression.dataType().typeName())


def _written(node: Any) -> str:
    """Return the part of the text that a node was parsed from; an empty one if Spark tells none."""
    origin = node.origin()
    parts = (origin.sqlText(), origin.startIndex(), origin.stopIndex())
    if any(part.isEmpty() for part in parts):
        return ""
    text, start, stop = (part.get() for part in parts)
    return str(text)[start : stop + 1]


def _constant(expression: Any) -> str:
    """Return the value of a constant expression; UNKNOWN if Spark cannot tell it yet."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with Spark

    try:
        value = expression.eval(None)
    except Py4JJavaError:
        return UNKNOWN
    return "" if value is None else str(value.toString())


def _names(name: str, node: Any) -> tuple[str, ...]:
    """Return the names of tables and functions that a node has in the text."""
    match name:
        case "UnresolvedRelation":
            return tuple(each(node.multipartIdentifier()))
        case "UnresolvedFunction":
            return tuple(each(node.nameParts()))
        case "UnresolvedGenerator":
            whole: str = node.name().unquotedString()
            return tuple(whole.split("."))
        case "SubqueryAlias":
            return (node.alias(),)
    return ()


def fingerprint(plan: Any, tree: Node) -> str:
    """Return the text of a resolved plan in Spark's canonical form, and all its constants.

    Plans that Spark takes for equal have equal texts, in each process of one version of Spark.
    Constants stand beside the text, as SQL writes them: in the text, two may look like one. So do
    aggregates, in their order: the canonical form has `max(n) + count(*)` and `count(*) + max(n)`
    in one order, and windows in a checkpoint have them as the text has. In aggregates, names of
    columns of subqueries count.

    Args:
        plan: the plan.
        tree: the same, as read by `Reader`.
    """
    lines = str(plan.canonicalized().toString()).splitlines()
    kept = [_ACCIDENTS.sub("", line) if _DRAWN.match(line) else line for line in lines]
    beside = (node.text for node in tree.walk() if node.name in {"Literal", _AGGREGATE})
    return "\n".join([*kept, *beside])


def _place(node: Any) -> TextPlace | None:
    origin = node.origin()
    line, column = origin.line(), origin.startPosition()
    if line.isEmpty() or column.isEmpty():
        return None
    return TextPlace(int(line.get()), int(column.get()) + 1)


def each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Seq of Scala."""
    for at in range(sequence.size()):
        yield sequence.apply(at)
