"""Read plans of Spark as trees of plain values.

Spark's own JSON of a plan leaves out what it cannot write. So a tree is read from the objects: all
relations, expressions and subqueries that Spark itself would rewrite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.tree import Node, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PLAN: Final = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_SUBQUERY: Final = "org.apache.spark.sql.catalyst.expressions.PlanExpression"

_ACCIDENTS: Final = (
    (re.compile(r"@[0-9a-f]{5,16}\b"), ""),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), ""),
)
"""Addresses of objects and ids that Spark draws: another process has others."""


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
            *map(self.relation, _each(plan.children())),
            *map(self._inner, _each(plan.innerChildren())),
            *map(self._expression, _each(plan.expressions())),
        ]
        return self._node(plan, below, relation=True)

    def _inner(self, node: Any) -> Node:
        return self.relation(node) if self._is(node, _PLAN) else self._expression(node)

    def _expression(self, node: Any) -> Node:
        below = [self._expression(one) for one in _each(node.children())]
        if self._is(node, _SUBQUERY):
            below.append(self.relation(node.plan()))
        return self._node(node, below, relation=False)

    def _node(self, node: Any, below: Sequence[Node], *, relation: bool) -> Node:
        name = str(node.getClass().getSimpleName())
        asks = self._resolved and not relation
        return Node(
            name,
            relation,
            _names(name, node),
            deterministic=bool(node.deterministic()) if asks else True,
            place=None if self._resolved else _place(node),
            children=tuple(below),
        )

    def _is(self, node: Any, kind: str) -> bool:
        from py4j.java_gateway import is_instance_of  # noqa: PLC0415 - comes with Spark

        return bool(is_instance_of(self._gateway, node, kind))


def _names(name: str, node: Any) -> tuple[str, ...]:
    """Return the names of tables and functions that a node has in the text."""
    match name:
        case "UnresolvedRelation":
            return tuple(_each(node.multipartIdentifier()))
        case "UnresolvedFunction":
            return tuple(_each(node.nameParts()))
        case "UnresolvedGenerator":
            whole: str = node.name().unquotedString()
            return tuple(whole.split("."))
        case "SubqueryAlias":
            return (node.alias(),)
    return ()


def fingerprint(plan: Any) -> str:
    """Return the text of a resolved plan in Spark's canonical form.

    Plans that Spark takes for equal have equal texts, in each process of one version of Spark.
    """
    text = str(plan.canonicalized().toString())
    for pattern, by in _ACCIDENTS:
        text = pattern.sub(by, text)
    return text


def _place(node: Any) -> Place | None:
    origin = node.origin()
    line, column = origin.line(), origin.startPosition()
    if line.isEmpty() or column.isEmpty():
        return None
    return Place(int(line.get()), int(column.get()) + 1)


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Seq of Scala."""
    for at in range(sequence.size()):
        yield sequence.apply(at)
