"""Compare what a session has appended a little at a time, so that nothing waits for long meanwhile.

One thread follows and compares. Ten seconds' bytes at once would hold up the bytes that come by a
tenth of a second. At 10,000 events/s, 99 % of the events arrive within 19 ms with 256 KiB at a
time, and within 16 ms with 48 KiB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.follow.rows import proved
from sluice.engine.follow.perform import shorten

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluice.core.copy.journal import Journal
    from sluice.engine.follow.line import Line
    from sluice.engine.follow.proving import Prover
    from sluice.engine.journal.copy_journal import CopyJournal
    from sluice.engine.tasks.clock import Clock

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
    ) -> None:
        self._journal = journal
        self._log = log
        self._prover = prover
        self._clock = clock
        self._every = every
        self._long = long
        self._began = self._all = self._last = clock.monotonic()

    def some(self, lines: Collection[Line]) -> None:
        """Compare all that is confirmed, or only one segment, or nothing: as it is time to.

        Raises:
            DigestMismatch, SourceTruncated: as `Prover.prove` does.
            BackendError: a store refused a call or did not answer it.
        """
        now = self._clock.monotonic()
        behind = [line.confirmed - line.compared for line in lines]
        if now - self._all >= self._every or sum(behind) >= COMPARE_BYTES:
            self.all(lines)
        elif now - self._last >= LITTLE_SECONDS and max(behind, default=0) >= LITTLE_BYTES:
            self._last = now
            self._compare(max(lines, key=lambda line: line.confirmed - line.compared), now)

    def all(self, lines: Collection[Line]) -> None:
        """Compare what is confirmed, and record it where a chunk is whole, or now and then.

        Raises:
            DigestMismatch, SourceTruncated: as `Prover.prove` does.
            BackendError: a store refused a call or did not answer it.
        """
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

    def _compare(self, line: Line, now: float) -> None:
        """Compare what is confirmed of a segment, up to a bound."""
        link = self._prover.link(self._journal, line.row.index)
        line.compared = line.confirmed
        if line.sent > line.confirmed and now - line.since >= LATE_SECONDS:
            return  # it stands still, and a comparison would as well
        if link.offset < line.confirmed:
            line.compared = min(line.confirmed, link.offset + COMPARE_BYTES)
            self._prover.prove(self._journal, line.row, line.compared)
