"""Leave out of a plan what its result does not use, as Spark does before it computes anything.

Without that, a computation that nobody asks for could fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.core.query.arrow.terms import Step, Term


def pruned(steps: Sequence[Step]) -> list[Step]:
    """Return the steps without the columns that no later one uses. The last one keeps all.

    Args:
        steps: from the table to the result.
    """
    used: set[int] | None = None  # all columns, until a step says which
    found: list[Step] = []
    for step in reversed(steps):
        if step.name == "Filter":
            if used is not None:
                used |= _columns(step.terms)
            found.append(step)
            continue
        kept = step.terms if used is None else _kept(step.terms, used)
        used = _columns((*kept, *step.keys))
        found.append(step._replace(terms=kept))
    return found[::-1]


def _kept(terms: Iterable[Term], used: set[int]) -> tuple[Term, ...]:
    return tuple(term for term in terms if term.number in used)


def _columns(terms: Iterable[Term]) -> set[int]:
    """Return the ids of the columns that expressions name."""
    return {one.number for term in terms for one in term.walk() if one.name == "AttributeReference"}
