"""Heads: the lists of an archive's runs. Each change is a new head, made under the next number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from sluice.core.archive.documents import Document
from sluice.core.archive.manifest import Count, Sha256, WorkId
from sluice.core.archive.names import RunName, read_run
from sluice.core.values.model import Frozen

if TYPE_CHECKING:
    from collections.abc import Container


class RunEntry(Frozen):
    """A run that can be restored, as a head lists it.

    Attributes:
        run: its number.
        name: the name of its manifest's object.
        size: the size of that object in bytes.
        sha256: the SHA-256 of that object's bytes.
        time: the time up to which it holds the stream, in ms.
        bytes: number of the source's bytes that it holds.
        events: number of events that it holds; None if some bytes are not events.
        verified: whether all that the run added was read back before it was recorded.
        work: the identity of the work that recorded it.
        maker: the identity of the resource that the run was made for.
    """

    run: Annotated[int, Field(ge=1)]
    name: str
    size: Count
    sha256: Sha256
    time: Count
    bytes: Count
    events: Count | None = None
    verified: bool = False
    work: WorkId | None = None
    maker: WorkId | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if read_run(self.name) != RunName(self.run, self.sha256):
            raise ValueError(f"{self.name} is not the name of run {self.run}")
        return self


class Head(Document):
    """The list of an archive's runs. The head with the highest number counts.

    Attributes:
        number: the head's number, one higher with every change.
        runs: the runs, by number; never empty, since the last run is always kept.
    """

    kind: Literal["sluice.dev/archive-head"] = "sluice.dev/archive-head"
    number: Annotated[int, Field(ge=1, lt=1 << 63)]
    runs: tuple[RunEntry, ...] = Field(min_length=1)

    def without(self, runs: Container[int]) -> Head:
        """Return the next head, from which the runs with these numbers are dropped."""
        kept = tuple(one for one in self.runs if one.run not in runs)
        return Head(number=self.number + 1, runs=kept)

    def added(self, first: int, last: RunEntry) -> tuple[int, int | None]:
        """Return how many bytes and events some runs have added to the runs before.

        Args:
            first: the number of the first of these runs.
            last: the entry of the last of these runs.

        Returns:
            The bytes, and the events; None if some bytes are not events.
        """
        before = next((one for one in reversed(self.runs) if one.run < first), None)
        if before is None:
            return last.bytes, last.events
        known = last.events is not None and before.events is not None
        events = max((last.events or 0) - (before.events or 0), 0)
        return max(last.bytes - before.bytes, 0), events if known else None

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        numbers = [one.run for one in self.runs]
        if numbers != sorted(set(numbers)) or numbers[-1] > self.number:
            raise ValueError("the runs are not in order, each once, none later than the head")
        return self
