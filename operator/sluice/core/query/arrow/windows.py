"""The windows of a query that are open: the state of its aggregates, by window and key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.query.arrow.expressions import Expression, Value

WINDOW: Final = "window"
"""The column of a window's beginning, in microseconds since 1970."""

_ROOM: Final = 4096
"""Rows of partial results that are added before they are merged with the others."""

_COPIES: Final = 3
_ROW_BYTES: Final = 400
"""Measured: to merge windows takes seven times their bytes, and to write one 900 bytes."""


class StatePart(NamedTuple):
    """A column of the state of an aggregate.

    Attributes:
        value: what is aggregated.
        fold: Arrow's aggregate of events, and of such columns: `sum`, `min` or `max`.
        kind: the type of the column.
    """

    value: Expression
    fold: str
    kind: pa.DataType


class WindowFolding(NamedTuple):
    """How events become rows of windows.

    Attributes:
        begins: the beginnings of the windows in which events are, in microseconds since 1970.
        length: of each window, in microseconds. It begins where the last one ends.
        keys: what rows are grouped by beside them, with their types.
        parts: the columns of the state.
    """

    begins: Expression
    length: int
    keys: tuple[tuple[Expression, pa.DataType], ...]
    parts: tuple[StatePart, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the state."""
        keys = [(f"k{at}", kind) for at, (_, kind) in enumerate(self.keys)]
        parts = [(f"p{at}_{one.fold}", one.kind) for at, one in enumerate(self.parts)]
        return pa.schema([(WINDOW, pa.int64()), *keys, *parts])


class OpenWindows:
    """The open windows of a query.

    Args:
        folding: how events become rows.
        table: the state at the beginning; None for no windows.
    """

    def __init__(self, folding: WindowFolding, table: pa.Table | None = None) -> None:
        self._folding = folding
        self._merged = folding.schema.empty_table()
        self._added: list[pa.Table] = []
        self._earliest: int | None = None
        if table is not None:
            self._take(table)

    @property
    def rows(self) -> int:
        """The number of windows and keys; more, if there are many and some were added again."""
        if sum(map(len, self._added)) + len(self._merged) <= _ROOM:
            self._merge()
        return len(self._merged) + sum(map(len, self._added))

    @property
    def bytes(self) -> int:
        """The memory that they take. It is an estimate of the half of what it takes to close them.

        Windows are merged with others, and their rows become texts, perhaps all at once.
        """
        size: int = self._merged.nbytes + sum(one.nbytes for one in self._added)
        return _COPIES * size + _ROW_BYTES * self.rows

    def add(self, columns: Mapping[int, Value], count: int, watermark: int) -> None:
        """Take events in. Those of windows that are closed are left out.

        Args:
            columns: the columns of the events.
            count: their number.
            watermark: windows that end up to it are closed, in milliseconds since 1970.

        Raises:
            pyarrow.ArrowInvalid: a computation failed.
        """
        begins = self._folding.begins(columns)
        keys = [_filled(one(columns), count, kind) for one, kind in self._folding.keys]
        parts = [_filled(one.value(columns), count, one.kind) for one in self._folding.parts]
        whole = pa.table([begins, *keys, *parts], names=self._folding.schema.names)
        open_ = pc.greater(pc.add(begins, self._folding.length), watermark * 1000)
        rows = whole.filter(open_)  # a null is no window
        if len(rows):
            self._added.append(self._grouped(rows))
            first = pc.min(self._added[-1][WINDOW]).as_py()
            self._earliest = first if self._earliest is None else min(first, self._earliest)
            if sum(map(len, self._added)) > max(_ROOM, len(self._merged)):
                self._merge()

    def is_due(self, watermark: int) -> bool:
        """Tell whether a watermark closes a window, in milliseconds since 1970."""
        length = self._folding.length
        return self._earliest is not None and self._earliest + length <= watermark * 1000

    def close(self, watermark: int) -> pa.Table:
        """Take out the windows that a watermark closes, in milliseconds since 1970.

        Returns:
            The columns of the state.
        """
        if not self.is_due(watermark):
            return self._folding.schema.empty_table()
        self._merge()
        ends = pc.add(self._merged[WINDOW], self._folding.length)
        closed = pc.less_equal(ends, watermark * 1000)
        found, kept = self._merged.filter(closed), self._merged.filter(pc.invert(closed))
        self._take(kept)
        return found

    def table(self) -> pa.Table:
        """Return the state."""
        self._merge()
        return self._merged

    def _take(self, table: pa.Table) -> None:
        self._merged = table
        self._earliest = pc.min(table[WINDOW]).as_py()

    def _merge(self) -> None:
        if self._added:
            whole = pa.concat_tables([self._merged, *self._added])
            self._merged = self._grouped(whole)
            self._added = []

    def _grouped(self, rows: pa.Table) -> pa.Table:
        """Return a row for each window and key. Rows are taken in their order."""
        schema = self._folding.schema
        by = schema.names[: 1 + len(self._folding.keys)]
        columns = schema.names[len(by) :]
        folds = [(name, part.fold) for name, part in zip(columns, self._folding.parts, strict=True)]
        grouped = _checked(rows, folds).group_by(by, use_threads=False).aggregate(folds)
        named = [f"{name}_{fold}" for name, fold in folds]
        return grouped.select([*by, *named]).rename_columns(schema.names).cast(schema)


def _filled(value: Value, count: int, kind: pa.DataType) -> Value:
    """Return a value for each row."""
    return pa.repeat(value.cast(kind), count) if isinstance(value, pa.Scalar) else value


def _checked(rows: pa.Table, folds: Sequence[tuple[str, str]]) -> pa.Table:
    """Return rows whose sums tell when they are too large: Arrow's own sums begin anew."""
    for name, fold in folds:
        column = rows[name]
        if fold == "sum" and pa.types.is_integer(column.type):
            ends = pc.min_max(column)
            most = max(abs(ends["min"].as_py() or 0), abs(ends["max"].as_py() or 0))
            if most * len(rows) >= 1 << 63:
                wide = column.cast(pa.decimal128(38, 0))
                rows = rows.set_column(rows.schema.get_field_index(name), name, wide)
    return rows
