"""A log that keeps its records unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice.engine.journal.record_log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store


class Notes(Log):
    """A log of numbers.

    Attributes:
        numbers: those that were read or written.
        read: how many records were taken in, in all.
    """

    def __init__(self, store: Store, beside: StreamName) -> None:
        super().__init__(store, beside, lambda generation: f"{generation:032x}")
        self.numbers: list[int] = []
        self.read = 0

    def begin(self) -> None:
        """Make the log if there is none."""
        self._make()
        self.load()

    def load(self) -> list[int]:
        """Read on, and return all numbers."""
        self._read_on()
        return self.numbers

    def write(self, *numbers: int) -> None:
        """Write numbers, behind those that another driver writes at the same time."""
        while not self._append([{"record": "note", "number": number} for number in numbers]):
            self._follow()

    def sum_up(self) -> bool:
        """Replace all numbers by their sum; False if another driver was faster."""
        return self.compact({"record": "note", "number": sum(self.numbers)})

    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            self.numbers.append(record["number"])
            self.read += 1

    def _forget(self) -> None:
        self.numbers = []
