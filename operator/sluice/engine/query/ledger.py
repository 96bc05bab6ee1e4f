"""Keep the ledger of a query in a segment beside its first sink."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sluice.core.query.ledger import AttemptRecord, LedgerState, record_json, states
from sluice.core.values import identity
from sluice.engine.journal.record_log import Log
from sluice.errors import NoSuchSegment, QuerySuperseded, StoreBusy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sluice.core.query.ledger import BatchRecord, Record, VersionRecord
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store

COMPACT_AT: Final = 1 << 20
"""Bytes from which on a ledger gets a summary."""

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

    def __init__(self, store: Store, query_id: str, sink: StreamName) -> None:
        super().__init__(store, sink, partial(identity.ledger_key, query_id))
        self._query = query_id
        self._sink = sink
        self.state = LedgerState()

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
            if self._append([record_json(AttemptRecord(number=self.state.attempt + 1))]):
                self._drop_rivals()
                return
        raise StoreBusy(f"attempts of the query into {self._sink} begin again and again")

    def add(self, record: VersionRecord | BatchRecord) -> None:
        """Write a record.

        Raises:
            QuerySuperseded: another attempt has begun, or the ledger was deleted.
        """
        self._written([record_json(record)])
        summary = self.state.summary
        if self.size > COMPACT_AT and summary is not None and not self._compacted(summary):
            raise self._superseded()

    def check(self) -> None:
        """Check that no other attempt has begun.

        Raises:
            QuerySuperseded: one has, or the ledger was deleted.
        """
        (info,) = self._store.infos([self.name])
        if info is None or info.length != self.end:
            raise self._superseded()

    def _written(self, records: list[dict[str, Any]]) -> None:
        try:
            written = self._append(records)
        except NoSuchSegment:
            written = False
        if not written:
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

    def _forget(self) -> None:
        self.state = LedgerState()
