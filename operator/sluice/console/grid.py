"""Tables that fit into a narrow page without a broken word or number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from sluice.console.page import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_FRAME: Final = 3
"""Characters that each column takes for its frame; the whole table takes one more."""

_LEAST: Final = 16
"""Characters of a name that stay in a line on the narrowest page."""

_ENDS: Final = 6
"""Characters of a digest that are shown from each of its ends."""

_BREAKS: Final = "/-._ "
"""Characters behind which a long name goes on in the next line."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        heading: the heading.
        right: whether it has numbers, which stand at its right.
        name: whether it has names. They are never cut: a long one goes on in the next line.
        digest: whether it has digests, of which a narrow page shows both ends.
        rank: 0 for a column that is always shown. Of the others, the one with the highest rank is
            left out first.
    """

    heading: str
    right: bool = False
    name: bool = False
    digest: bool = False
    rank: int = 0


class Grid:
    """A table that fits into the page that it is printed on.

    Args:
        columns: the columns.
    """

    def __init__(self, *columns: Column) -> None:
        self._columns = columns
        self._rows: list[list[Text]] = []

    def add(self, *cells: str | Text) -> None:
        """Add a row. Texts are shown as they are, without markup and control characters."""
        self._rows.append([one if isinstance(one, Text) else Text(printable(one)) for one in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table for a page of this width."""
        rows, shown = self._fitted(options.max_width)
        table = Table()
        for at in shown:
            column = self._columns[at]
            table.add_column(column.heading, justify="right" if column.right else "left")
        for row in rows:
            table.add_row(*(row[at] for at in shown))
        # rich would break the words of a table that is too wide all the same.
        width = max(options.max_width, self._width(rows, shown))
        yield from console.render(table, options.update_width(width))

    def _fitted(self, page: int) -> tuple[list[list[Text]], list[int]]:
        """Return the rows as the page shows them, and the columns that it shows.

        Digests are shortened first. Then columns are left out. Then names go on in the next line.
        """
        rows, shown = self._rows, [*range(len(self._columns))]
        if self._width(rows, shown) > page:
            rows = [
                [
                    _shortened(cell) if column.digest else cell
                    for cell, column in zip(row, self._columns, strict=True)
                ]
                for row in rows
            ]
        while self._width(rows, shown) > page:
            last = max(shown, key=lambda at: self._columns[at].rank)
            if not self._columns[last].rank:
                break
            shown.remove(last)
        return self._folded(rows, shown, self._width(rows, shown) - page), shown

    def _folded(self, rows: list[list[Text]], shown: list[int], excess: int) -> list[list[Text]]:
        """Return the rows with so many characters less in their names' columns together."""
        widths = {at: self._natural(rows, at) for at in shown if self._columns[at].name}
        for _ in range(excess):
            widest = max(widths, key=widths.__getitem__, default=None)
            if widest is None or widths[widest] <= _LEAST:
                break
            widths[widest] -= 1
        if excess <= 0:
            return rows
        return [
            [
                Text(_lines(cell.plain, widths[at]), cell.style) if at in widths else cell
                for at, cell in enumerate(row)
            ]
            for row in rows
        ]

    def _width(self, rows: list[list[Text]], shown: list[int]) -> int:
        return 1 + sum(_FRAME + self._natural(rows, at) for at in shown)

    def _natural(self, rows: list[list[Text]], at: int) -> int:
        """Return the characters that a column takes without its frame."""
        texts = max((row[at].cell_len for row in rows), default=0)
        return max(texts, len(self._columns[at].heading))


def _shortened(digest: Text) -> Text:
    """Return both ends of a digest, with dots between them."""
    text = digest.plain
    if len(text) <= 2 * _ENDS:
        return digest
    return Text(f"{text[:_ENDS]}..{text[-_ENDS:]}", digest.style)


def _lines(name: str, width: int) -> str:
    """Return a name in lines of this width, each ending behind a separator if there is one."""
    lines = []
    while len(name) > width:
        at = max(name.rfind(mark, 0, width) for mark in _BREAKS) + 1 or width
        lines.append(name[:at].rstrip())
        name = name[at:]
    return "\n".join([*lines, name])
