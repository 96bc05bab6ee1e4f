"""A slice: bounded work for a task, as a value that travels to a task and back in its result.

It carries no credentials and no state: where to go on is asked of the store, so a task is safe to
run twice, or twice at once, and a slice that another task overtook simply ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.engine.rounds.throttle import Task
from sluice.errors import InvalidEventNumber, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.core.values.model import ArchivedRun
    from sluice.engine.access.source_runs import Place
    from sluice.engine.rounds.throttle import RateLimiter
    from sluice.stores.base import Source

    Ends = tuple[Source, Place]
    """What a slice reads from, and writes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice(ABC):
    """Work on some bytes of a segment. Offsets are the source's.

    Attributes:
        stream: the stream's place in the plan.
        segment: the segment's place in its stream's plan.
        store: the place of the store to read from.
        archive: the run to read, where that is a place for archives.
        rate: most bytes per second; None for no limit.
        seconds: of its task, after which it ends where its kind can.
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
        """Bytes to move, for sharing out."""

    @abstractmethod
    def run(self, source: Source, target: Place, task: Task) -> SliceResult:
        """Do the work.

        Args:
            source: the store to read from.
            target: the store to write to.
            task: the pace to keep to, and the time that is left.

        Returns:
            What came of it; errors of the tree are in there, others propagate.
        """


@dataclass(slots=True, kw_only=True)
class SliceResult:
    """What came of a slice.

    Attributes:
        slice: the slice.
        moved: bytes that were moved or compared.
        digests: SHA-256 of source chunks that became known.
        error: why the slice ended early.
    """

    slice: Slice
    moved: int = 0
    digests: dict[int, bytes] = field(default_factory=dict)
    error: SluiceError | None = None

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep an error of the block. The result keeps the work before it, too."""
        try:
            yield
        except InvalidEventNumber:
            pass  # another driver is at this part: the next look asks the store where to go on
        except SluiceError as error:
            self.error = error


def run_slice(work: Slice, source: Source, target: Place, task: Task | None = None) -> SliceResult:
    """Do a slice, in a task of its own where none is given."""
    return work.run(source, target, task or Task(work.rate, work.seconds))


def run_share(
    share: Sequence[Slice], stores: Callable[[Slice], Ends], pace: RateLimiter | None = None
) -> Iterator[SliceResult]:
    """Do the slices of a task, one after the other, for as long as its time lasts.

    The first one is begun in any case. Slices that are not begun are left to the next round.

    Args:
        share: the slices.
        stores: gives the stores that a slice reads from and writes to.
        pace: shared with other work that is to keep to it as well; None for a pace of their own.
    """
    task = None
    for work in share:
        if task is not None and task.over:
            return
        task = task or Task(work.rate, work.seconds, pace)
        yield work.run(*stores(work), task)
