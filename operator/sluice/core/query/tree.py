"""A plan of Spark as a tree of plain values: that of a text, or that with all names resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class TextPlace(NamedTuple):
    """A place in the text of a query: line and column, from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        """Return the place, for people."""
        return f"line {self.line}, column {self.column}"


class Node(NamedTuple):
    """A node of a plan.

    Attributes:
        name: the simple name of Spark's class.
        relation: whether it is a relation, and no expression.
        names: the names that the node has in the text: of a table, of a function.
        text: of a literal, what stands in the text or how SQL writes its value; of a cast of a
            constant to a time, the constant; of a resolved aggregate, what it is. Else empty.
        deterministic: whether the node always gives the same for the same rows.
        place: where it stands in the text; None if Spark does not tell.
        children: the nodes below: inputs, expressions, subqueries.
    """

    name: str
    relation: bool = False
    names: tuple[str, ...] = ()
    text: str = ""
    deterministic: bool = True
    place: TextPlace | None = None
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below, each before its children."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))
