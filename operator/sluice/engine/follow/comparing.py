"""Compare what a session has appended a little at a time, so that nothing waits for long meanwhile.

Ten seconds' bytes at once would hold up the bytes that come by a tenth of a second. A little is
compared by another thread if there is one: a comparison waits for both stores, one after the other.
"""

from __future__ import annotations

from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Final

from sluice.core.follow.rows import proved
from sluice.engine.follow.perform import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from concurrent.futures import Executor, Future

    from sluice.core.copy.journal import Journal
    from sluice.engine.follow.line import Line
    from sluice.engine.follow.proving import Prover
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.work import Clock

COMPARE_SECONDS: Final = 10.0
"""Seconds after which all appended bytes are read back and compared."""

COMPARE_BYTES: Final = 32 << 20
"""Appended bytes after which they are compared at once: meanwhile nothing is appended."""

LITTLE_SECONDS: Final = 0.05
"""Seconds between comparisons of one segment."""

LITTLE_BYTES: Final = 48 << 10
"""Appended bytes of a segment from which on they are compared before all others are."""

LATE_SECONDS: Final = 2.0
"""Seconds without a confirmation after which a segment is not read back for now."""


class Comparing:
    """The comparisons of one session.

    Args:
        journal: the journal, as the session's step was decided from it.
        log: the copy's journal.
        prover: compares, and knows up to where it has.
        clock: time.
        every: seconds after which all is compared, and recorded where it is time to.
        long: bytes of a journal from which on its records are replaced by one.
        beside: returns what compares a little in another thread, one comparison at a time; None for
            the calling thread.
    """

    def __init__(
        self,
        journal: Journal,
        log: CopyJournal,
        prover: Prover,
        *,
        clock: Clock,
        every: float,
        long: int,
        beside: Callable[[], Executor | None],
    ) -> None:
        self._journal = journal
        self._log = log
        self._prover = prover
        self._clock = clock
        self._every = every
        self._long = long
        self._beside = beside
        self._running: Future[object] | None = None
        self._began = self._all = self._last = clock.monotonic()

    def some(self, lines: Collection[Line]) -> None:
        """Compare all that is confirmed, or only one segment, or nothing: as it is time to.

        Raises:
            DigestMismatch, SourceTruncated: as `Prover.prove` does.
            BackendError: a store refused a call or did not answer it.
        """
        if self._running is not None and self._running.done():
            self.finish()
        now = self._clock.monotonic()
        behind = [line.confirmed - line.compared for line in lines]
        if now - self._all >= self._every or sum(behind) >= COMPARE_BYTES:
            self.all(lines)
        elif self._running is not None:
            return
        elif now - self._last >= LITTLE_SECONDS and max(behind, default=0) >= LITTLE_BYTES:
            self._last = now
            most = max(lines, key=lambda line: line.confirmed - line.compared)
            if (beside := self._beside()) is None:
                self._compare(most, now)
            elif self._is_due(most, now):
                to = self._bounded(most)
                prove = partial(self._prover.prove, at_once=True)
                self._running = beside.submit(prove, self._journal, most.row, to)

    def all(self, lines: Collection[Line]) -> None:
        """Compare what is confirmed, and record it where a chunk is whole, or now and then.

        Raises:
            DigestMismatch, SourceTruncated: as `Prover.prove` does.
            BackendError: a store refused a call or did not answer it.
        """
        self.finish()
        now = self._all = self._last = self._clock.monotonic()
        records = []
        for line in lines:
            self._compare(line, now)
            index = line.row.index
            link = self._prover.link(self._journal, index)
            known = proved(self._log.loaded or self._journal, index)
            if link.offset <= known.offset:
                continue  # else it is to be told also if nothing comes any more
            late = self._prover.is_late(index, now, self._began)
            if line.ended or late or link.chain != known.chain:
                records.append(self._prover.record(index, link))
                self._prover.recorded[index] = now
        if records:
            self._log.write(records)
            shorten(self._log, self._long)

    def finish(self) -> None:
        """Wait for the comparison in another thread. Raises as `all` does."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def close(self) -> None:
        """Let no comparison outlive the session. Its failure would show again."""
        if self._running is not None:
            wait([self._running])

    def _compare(self, line: Line, now: float) -> None:
        """Compare what is confirmed of a segment, up to a bound."""
        if self._is_due(line, now):
            self._prover.prove(self._journal, line.row, self._bounded(line))

    def _is_due(self, line: Line, now: float) -> bool:
        """Tell whether something of a segment is to be compared, and note that it is."""
        line.compared = line.confirmed
        if line.sent > line.confirmed and now - line.since >= LATE_SECONDS:
            return False  # it stands still, and a comparison would as well
        return self._prover.link(self._journal, line.row.index).offset < line.confirmed

    def _bounded(self, line: Line) -> int:
        """Return up to where a segment is compared now."""
        link = self._prover.link(self._journal, line.row.index)
        line.compared = min(line.confirmed, link.offset + COMPARE_BYTES)
        return line.compared
