"""What a query knows of the batch that it reads, and when its state is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from sluice.core.query.rows import ResultRow

_MOST_ROWS: Final = 200_000
"""Rows of a query without windows with which a batch ends. Each takes a kilobyte until then."""

_OFTEN: Final = 1.0
"""Seconds from one state that is written to the next one, at least."""

_SHARE: Final = 10
"""The state is written once that takes less than this part of the time since it was last."""

_MOST_PLANS: Final = 1000
"""Batches that are read again at most."""


@dataclass
class OpenBatch:
    """The batch that is read.

    Attributes:
        number: its number.
        began: when it began, in seconds of the clock.
        bytes: how many it has read.
        rows: its rows, of a query without windows.
        late: its events behind the watermark.
        oldest: the time of the oldest of these, in milliseconds since 1970.
        malformed: its events that were left out.
        busy: the seconds that the last events took so far.
        follows: whether there is most likely more to read at once.
    """

    number: int
    began: float
    bytes: int = 0
    rows: list[ResultRow] = field(default_factory=list)
    late: int = 0
    oldest: int = 0
    malformed: int = 0
    busy: float = 0.0
    follows: bool = False

    def is_full(self, most_bytes: int) -> bool:
        """Tell whether the batch takes no more events.

        Args:
            most_bytes: the most bytes that it reads.
        """
        return self.bytes >= most_bytes or len(self.rows) >= _MOST_ROWS

    def count_late(self, micros: pa.Array, watermark: int) -> None:
        """Count the events that are behind the watermark.

        Args:
            micros: the times of events, in microseconds since 1970.
            watermark: that of the batch, in milliseconds since 1970.
        """
        late = micros.filter(pc.less(micros, watermark * 1000))
        if len(late):
            oldest = pc.min(late).as_py() // 1000
            self.oldest = min(self.oldest, oldest) if self.late else oldest
            self.late += len(late)


class SnapshotPace:
    """Decides when a state is written down: often, but for a small part of the time.

    Args:
        clock: gives seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept = self._asked = clock()
        self._batch = -1
        self._cost = 0.0

    def is_due(self, batch: int, *, at_end: bool) -> bool:
        """Tell whether the state behind a batch is written down now.

        Args:
            batch: the last batch that has ended.
            at_end: whether no other batch may follow for long.
        """
        self._asked = self._clock()
        often = self._asked - self._kept < max(_OFTEN, _SHARE * self._cost)
        return batch > self._batch and (at_end or not often or batch - self._batch >= _MOST_PLANS)

    def kept(self, batch: int) -> None:
        """Note that the state behind a batch is written down, and what it took."""
        self._kept, self._batch = self._clock(), batch
        self._cost = self._kept - self._asked
