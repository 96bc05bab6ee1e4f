"""Parse events that are records of CSV (RFC 4180), each by itself."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


class CsvParser:
    """Parses events into the values of columns, by the columns' order.

    An empty value is None, and an empty text in a column of texts.

    Args:
        fields: the columns.
        delimiter: the character between values.
    """

    def __init__(self, fields: Sequence[pa.Field], delimiter: str = ",") -> None:
        self._texts = [pa.types.is_string(one.type) for one in fields]
        self._delimiter = delimiter

    def parse(self, events: Sequence[bytes]) -> tuple[list[list[Any]], set[int]]:
        """Return the values of each column, and the numbers of the events that do not fit."""
        bad: set[int] = set()
        rows = [self._one(event, number, bad) for number, event in enumerate(events)]
        return [
            [row[i] if is_text else row[i] or None for row in rows]
            for i, is_text in enumerate(self._texts)
        ], bad

    def _one(self, event: bytes, number: int, bad: set[int]) -> Sequence[str | None]:
        try:
            (row,) = csv.reader([event.decode()], delimiter=self._delimiter, strict=True)
        except (ValueError, csv.Error):
            row = []
        if len(row) == len(self._texts):
            return row
        bad.add(number)
        return [None] * len(self._texts)
