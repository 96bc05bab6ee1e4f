"""Keep the ledger of a query in a segment beside its first sink."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.ledger import AttemptRecord, LedgerState, record_json, states
from sluice.core.values import identity
from sluice.engine.journal.record_log import Log
from sluice.engine.streams.writing import patiently
from sluice.errors import JournalDamaged, NoSuchSegment, QuerySuperseded, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.query.ledger import BatchRecord, BegunRecord, Record, VersionRecord
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Segments

COMPACT_AT: Final = 1 << 20
"""Bytes from which on a ledger gets a summary."""

MOST_LEDGER: Final = 16 << 20
"""Bytes of the longest ledger. The operator reads those of all queries."""

_TRIES: Final = 16
"""Attempts that may begin at once."""


class QueryLedger(Log):
    """The ledger of a query, for reading and writing.

    An attempt owns the ledger from `begin` on: each record follows by compare-and-set those that it
    knows. So it finds out by its next record that another attempt has begun.

    Args:
        store: the store of the query's first sink.
        query_id: the query's identity.
        sink: the first sink.
    """

    most = MOST_LEDGER

    def __init__(self, store: Segments, query_id: str, sink: StreamName) -> None:
        super().__init__(store, sink, partial(identity.ledger_key, query_id))
        self._query = query_id
        self._sink = sink
        self._attempt = 0
        self.state = LedgerState()

    @property
    def attempt(self) -> int:
        """The number of this attempt; 0 before `begin`."""
        return self._attempt

    def load(self) -> LedgerState:
        """Return the state as the store holds it now; an empty one if there is no ledger.

        Raises:
            JournalDamaged: a record cannot be read, or is that of another query.
        """
        self._read_on()
        return self.state

    def begin(self) -> None:
        """Begin an attempt, in the place of any other.

        Raises:
            StoreBusy: other attempts begin all the time.
        """
        self._make()
        for _ in range(_TRIES):
            self._read_on()
            number = self.state.attempt + 1
            if self._append([record_json(AttemptRecord(number=number))]):
                self._drop_rivals()
                self._attempt = number
                return
        raise StoreBusy(f"attempts of the query into {self._sink} begin again and again")

    def add(self, record: VersionRecord | BegunRecord | BatchRecord) -> None:
        """Write a record. A store that is away for up to a minute is waited for.

        Raises:
            QuerySuperseded: another attempt has begun, or the ledger was deleted.
        """
        self.check()
        wanted = record_json(record)
        patiently(partial(self._write, wanted, self.state.after(wanted)))
        summary = self.state.summary
        if self.size > COMPACT_AT and summary is not None and not self._compacted(summary):
            raise self._superseded()

    def check(self) -> None:
        """Check that no other attempt has begun, as far as this one has read.

        Raises:
            QuerySuperseded: one has.
        """
        if self.state.attempt != self._attempt:
            raise self._superseded()

    def check_now(self) -> None:
        """Check that no other attempt has begun, by a look at the store.

        Raises:
            QuerySuperseded: one has, or the ledger was deleted.
        """
        self._read_on()
        self.check()

    def _write(self, record: Mapping[str, Any], after: LedgerState) -> None:
        """Write a record, unless an earlier try has written it and lost the answer."""
        try:
            if self._append([record]):
                return
        except NoSuchSegment:
            raise self._superseded() from None
        self._read_on()
        if self.state != after:
            raise self._superseded()

    def _compacted(self, summary: Record) -> bool:
        try:
            return self.compact(record_json(summary))
        except NoSuchSegment:
            return False

    def _superseded(self) -> QuerySuperseded:
        return QuerySuperseded(f"another attempt of the query into {self._sink} has begun")

    def _take(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.state = states(records, self.state)
        version = self.state.version
        if version is not None and version.plan.query_id != self._query:
            raise JournalDamaged(f"the ledger beside {self._sink} is that of another query")

    def _forget(self) -> None:
        self.state = LedgerState()
