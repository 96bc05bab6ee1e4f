"""Slices: bounded pieces of work, as values that are sent to tasks and come back in results.

A slice holds no credentials and no state. Each time it runs, it asks the store where to go on. So
it is safe to run a slice twice, or twice at once. A slice that another task has overtaken just
ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.engine.tasks.throttle import Task
from sluice.errors import InvalidEventNumber, SluiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.core.values.model import ArchivedRun
    from sluice.engine.access.source_runs import Place
    from sluice.stores.base import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(ABC):
    """Work on some bytes of a segment. Offsets are the source's.

    Attributes:
        stream: the stream's place in the plan.
        segment: the segment's place in its stream's plan.
        store: the number of the store to read from.
        archive: the run to read, if that is a store of archives.
        rate: most bytes per second; None for no limit.
        seconds: time of its task, after which the slice ends if its kind can end early.
    """

    stream: int = 0
    segment: int
    store: int = 0
    archive: ArchivedRun | None = None
    rate: float | None = None
    seconds: float = 20.0

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes to move, by which slices are shared out among tasks."""

    def rest(self, most: int) -> Slice | None:  # noqa: ARG002 - most kinds have none
        """Return the slice of at most `most` bytes that follows this one at once; None for none.

        It needs no look at the stores in between. It moves what this one has left, too.
        """
        return None

    @abstractmethod
    def run(self, source: Source, target: Place, task: Task) -> SliceResult:
        """Do the work.

        Args:
            source: the store to read from.
            target: the store to write to.
            task: the pace to keep to, and the time that is left.

        Returns:
            The result. A SluiceError is kept in it; other errors propagate.
        """


@dataclass(slots=True, kw_only=True)
class SliceResult:
    """The result of a slice.

    Attributes:
        slice: the slice.
        moved: bytes that were moved or compared.
        digests: SHA-256 of source chunks, by chunk number, that the slice has read whole.
        error: the error that ended the slice early.
    """

    slice: Slice
    moved: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)
    error: SluiceError | None = None

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep an error of the block in the result, beside the work done before it."""
        try:
            yield
        except InvalidEventNumber:
            pass  # another driver writes this part: the next look asks the store where to go on
        except SluiceError as error:
            self.error = error


def run_slice(work: Slice, source: Source, target: Place, task: Task | None = None) -> SliceResult:
    """Run a slice, in its own task if none is given."""
    return work.run(source, target, task or Task(work.rate, work.seconds))
