"""Check what a query consists of, before Spark resolves a name and after it has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sluice.core.query.allowed import (
    EXPRESSIONS,
    FUNCTIONS,
    OF_THE_MOMENT,
    PARSED_PLANS,
    RESOLVED_PLANS,
    WORDS,
)
from sluice.core.values.text import nearest
from sluice.errors import InvalidQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sluice.core.query.tree import Node

FIELD: Final = "spec.query.sql"

_RELATION: Final = "UnresolvedRelation"
_FUNCTIONS: Final = frozenset({"UnresolvedFunction", "UnresolvedGenerator"})
_WITH: Final = "UnresolvedWith"
_CAST: Final = "Cast"
_TIMES: Final = ("date", "timestamp")

_NO_WORD_OF_TIME: Final = re.compile(r"\w+\s*'\s*[+-]?[0-9][^'\\]*'", re.DOTALL)
"""The form of a time in a text. Spark takes words such as `now` for times, too."""

_WORD_OF_TIME: Final = re.compile(r"\s*(epoch|now|today|tomorrow|yesterday)\b", re.IGNORECASE)

UNKNOWN: Final = "?"
"""The text of a constant that cannot be told before the query runs."""

_MOST: Final = 5
"""Refusals that a message tells."""

_ONE_WAY: Final = "Write one SELECT over the names of spec.sources."


class _Refused(Exception):
    """A node that a query may not have. `remedy` says what to write."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def check_parsed(tree: Node, tables: Collection[str]) -> None:
    """Check a text as it was parsed. Spark has resolved nothing of it.

    Args:
        tree: the parsed plan. The names of its common table expressions count as tables.
        tables: the names of the sources.

    Raises:
        InvalidQuery: the text names another table or function, or is no SELECT.
    """
    known = {name.lower() for name in tables}
    # Behind the query itself, WITH has its common tables as children.
    common = (one for node in tree.walk() if node.name == _WITH for one in node.children[1:])
    known |= {name.lower() for table in common for name in table.names}
    _check(tree, lambda node: _refuse_parsed(node, known, tables))
    if not any(node.name == _RELATION for node in tree.walk()):
        raise InvalidQuery("the query reads no source", field=FIELD, remedy=_ONE_WAY)


def check_resolved(tree: Node) -> None:
    """Check a plan whose names are resolved.

    Raises:
        InvalidQuery: a node may give other results for the same events, or is not known.
    """
    _check(tree, _refuse_resolved)


def _check(tree: Node, refuse: Callable[[Node], None]) -> None:
    """Raise one error for all nodes that are refused. What is below such a node is passed over."""
    found: dict[str, str] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        try:
            refuse(node)
        except _Refused as refused:
            where = f" ({node.place})" if node.place else ""
            found[f"{refused}{where}"] = refused.remedy
        else:
            waiting.extend(reversed(node.children))
    if found:
        said = list(found)
        more = f"; and {len(said) - _MOST} more" if len(said) > _MOST else ""
        remedy = next(filter(None, found.values()), _ONE_WAY)
        raise InvalidQuery("; ".join(said[:_MOST]) + more, field=FIELD, remedy=remedy)


def _refuse_parsed(node: Node, known: Collection[str], tables: Iterable[str]) -> None:
    if node.name not in (PARSED_PLANS if node.relation else EXPRESSIONS):
        raise _Refused(f"a query may not have {_words(node.name)}")
    if node.name == _RELATION:
        _refuse_table(node.names, known, sorted(tables))
    elif node.name in _FUNCTIONS:
        _refuse_function(node.names)
    elif node.name == "Literal":
        _refuse_time(node.text)


def _refuse_time(text: str) -> None:
    """Refuse a literal such as `TIMESTAMP 'now'`, given as its type and its text."""
    kind, _, literal = text.partition(" ")
    if kind.startswith(_TIMES) and not _NO_WORD_OF_TIME.fullmatch(literal):
        raise _Refused(
            f"{literal} is no time that stays",
            "Write a time as TIMESTAMP '2026-05-04 12:00:00Z', without a word or an escape.",
        )


def _refuse_table(names: tuple[str, ...], known: Collection[str], tables: list[str]) -> None:
    if len(names) == 1 and names[0].lower() in known:
        return
    raise _Refused(
        f"there is no source {'.'.join(names)!r}",
        f"The sources of the query are {', '.join(tables)}.",
    )


def _refuse_function(names: tuple[str, ...]) -> None:
    name = names[-1].lower() if names else ""
    if len(names) == 1 and name in FUNCTIONS:
        return
    near = nearest(name, FUNCTIONS)
    raise _Refused(
        f"a query may not call {'.'.join(names)}",
        (f"Did you mean {near}? " if near else "")
        + "docs/streamquery.md lists the functions. Others depend on time, chance, the order of "
        "the events or the machine.",
    )


def _refuse_resolved(node: Node) -> None:
    if node.relation and node.name not in RESOLVED_PLANS:
        raise _Refused(f"a query may not have {_words(node.name)}")
    if node.name in OF_THE_MOMENT:
        raise _Refused(
            f"a query may not have {_words(node.name)}, which its events do not tell",
            "Take the time of the events, by the column of eventTime.",
        )
    if node.name == _CAST and (node.text == UNKNOWN or _WORD_OF_TIME.match(node.text)):
        raise _Refused(
            f"{node.text!r} as a time changes with the clock, or may",
            "Write a time as TIMESTAMP '2026-05-04 12:00:00Z'.",
        )
    if not node.deterministic and not any(not one.deterministic for one in node.children):
        raise _Refused(f"{_words(node.name)} may give other results for the same events")


def _words(name: str) -> str:
    """Return words for a class of Spark: `ORDER BY`, `a create view command`."""
    if name in WORDS:
        return WORDS[name]
    split = "".join(f" {c.lower()}" if c.isupper() else c for c in name.rstrip("$")).strip()
    return f"an {split}" if split[:1] in "aeiou" else f"a {split}"
