"""Print tables as kubectl does: plain columns, neither folded nor cut, so that users can search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from sluice.console.page import out, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.administration.tables import Table

_GAP: Final = "   "


def columns(rows: Sequence[Sequence[str]], *, indent: str = "") -> list[str]:
    """Return lines with the cells of rows, in columns as wide as their longest text.

    Args:
        rows: the rows, all of one length.
        indent: the beginning of each line.
    """
    texts = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [
        indent
        + _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    ]


def show_tables(tables: Sequence[Table], *, wide: bool, namespaces: bool, kinds: bool) -> None:
    """Print the resources of some kinds.

    Args:
        tables: a table for each kind. Empty ones are left out.
        wide: whether columns of wide tables are shown.
        namespaces: whether resources have their namespace before the name.
        kinds: whether resources have their kind before the name.
    """
    for number, table in enumerate([one for one in tables if one.rows]):
        if number:
            out.print()
        shown = [at for at, one in enumerate(table.headings) if wide or not one.wide]
        first = ["NAMESPACE"] * namespaces
        rows = [[*first, *(table.headings[at].name.upper() for at in shown)]]
        for row in table.rows:
            place = [row.resource.namespace] * namespaces
            cells = [row.cells[at] for at in shown]
            if kinds:
                cells[0] = row.resource.full
            rows.append([*place, *cells])
        for line in columns(rows):
            out.print(Text(line))
