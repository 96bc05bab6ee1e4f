"""A plan that Spark has resolved, as far as Arrow can compute it: one table, and steps over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from sluice.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Iterator


class Term(NamedTuple):
    """An expression.

    Attributes:
        name: the simple name of Spark's class.
        kind: the type of its values, as Spark writes it.
        number: of a column or an alias, the id that Spark gave it; of a field of a structure, its
            place. Else -1.
        text: of a constant, its value; of a column or an alias, its name; of a computation, what
            Spark does if it fails. None for a constant that is null.
        parts: the expressions below.
    """

    name: str
    kind: str
    number: int = -1
    text: str | None = ""
    parts: tuple[Term, ...] = ()

    @property
    def depth(self) -> int:
        """The number of its levels."""
        return 1 + max((part.depth for part in self.parts), default=0)

    def walk(self) -> Iterator[Term]:
        """Yield this expression and all below."""
        yield self
        for part in self.parts:
            yield from part.walk()


class Step(NamedTuple):
    """A relation over the one below.

    Attributes:
        name: the simple name of Spark's class: `Project`, `Filter` or `Aggregate`.
        terms: the columns that it makes, or its condition.
        keys: what rows are grouped by.
    """

    name: str
    terms: tuple[Term, ...]
    keys: tuple[Term, ...] = ()


class ResolvedPlan(NamedTuple):
    """A resolved plan.

    Attributes:
        table: the name of the table.
        columns: the table's columns.
        steps: from the table to the result.
    """

    table: str
    columns: tuple[Term, ...]
    steps: tuple[Step, ...]


ENGINE_FIELD: Final = "spec.engine"


def refuse(part: str) -> NoReturn:
    """Refuse a part of a query.

    Raises:
        InvalidQuery: it is refused.
    """
    raise InvalidQuery(
        f"the engine Arrow cannot compute {part}",
        field=ENGINE_FIELD,
        remedy="Leave spec.engine out: Spark can. docs/streamquery.md lists the parts of queries "
        "that Arrow computes.",
    )
