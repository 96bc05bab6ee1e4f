"""Write the batches of a query: each one's rows go to all sinks and into the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sluice.core.query.ledger import BatchRecord, BegunRecord, check_repeated
from sluice.core.query.rows import ResultRow, digest, in_order, keys_digest
from sluice.core.values.text import size
from sluice.engine.streams.writing import patiently
from sluice.errors import StateTooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.core.query.ledger import LedgerState, Positions
    from sluice.engine.query.ledger import QueryLedger
    from sluice.engine.query.results import ResultAppender

Listener = Callable[[BatchRecord, Sequence[ResultRow]], None]
"""Is told of each batch once it is whole, with its rows."""


class BatchAppender:
    """Writes batches, whichever engine computes them.

    Args:
        ledger: the ledger, which this attempt owns.
        sinks: the sinks.
        listener: see `Listener`.

    Attributes:
        rows: the rows of the batches so far.
    """

    def __init__(
        self, ledger: QueryLedger, sinks: Sequence[ResultAppender], listener: Listener
    ) -> None:
        self._ledger = ledger
        self._sinks = sinks
        self._listener = listener
        self.rows = 0

    @property
    def attempt(self) -> int:
        """The number of the attempt that owns the ledger."""
        return self._ledger.attempt

    @property
    def state(self) -> LedgerState:
        """The content of the ledger."""
        return self._ledger.state

    def check_now(self) -> None:
        """Check that no other attempt has begun, by a look at the store.

        Raises:
            QuerySuperseded: one has, or the ledger was deleted.
        """
        patiently(self._ledger.check_now)

    def write(self, batch: int, ends: Positions, found: Iterable[ResultRow], **told: Any) -> None:
        """Write a batch, unless it is whole. It may be the repetition of one that was cut off.

        Args:
            batch: its number.
            ends: the position of each source up to which it reads.
            found: its rows.
            told: further attributes of its record.

        Raises:
            CheckpointDiverged: it reads or gives something else than before.
            QuerySuperseded: another attempt has begun.
            ResultTooLarge: a row is larger than a store takes at once.
        """
        rows = in_order(found)
        begun = BegunRecord(batch=batch, ends=ends, keys=keys_digest(rows), part=1)
        check_repeated(self.state, begun)
        if self.state.whole >= batch:
            return
        self._append(begun, rows)
        record = BatchRecord(
            batch=batch,
            ends=ends,
            rows=len(rows),
            sha256=digest(rows),
            attempt=self._ledger.attempt,
            **told,
        )
        self._ledger.add(record)
        self.rows += len(rows)
        self._listener(record, rows)

    def _append(self, begun: BegunRecord, rows: Sequence[ResultRow]) -> None:
        """Append the rows of a batch to all sinks, once the ledger says that it was begun."""
        if not rows:
            return
        known = self.state.begun
        if known is None:
            most = min(sink.part_rows(rows) for sink in self._sinks)
            known = begun.model_copy(update={"part": most})
            self._ledger.add(known)
        else:
            patiently(self._ledger.check_now)
        for sink in self._sinks:
            patiently(partial(sink.append, begun.batch, rows, known.part))


def check_state(rows: int, bytes_: int, most: int) -> None:
    """Check that windows have room, before a process ends for want of memory, without a word.

    Args:
        rows: the rows of windows that are open.
        bytes_: the memory that they take.
        most: the most that they may take.

    Raises:
        StateTooLarge: they take too much.
    """
    if bytes_ > most:
        raise StateTooLarge(
            f"{rows:,} rows of open windows take {size(bytes_)} of {size(2 * most)} of memory"
        )
