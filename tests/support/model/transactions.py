"""Transactions of a stream store in memory.

The world makes decided commits: see `World.commit`. In this model it does so right after a client
has asked for the state. So a client sees each decision once before its effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values.model import StreamName, TransactionState
from sluice.errors import StoreRejected, StreamNotFound
from sluice.stores.transactions import Transaction
from support.model.catalog import ModelCatalog

if TYPE_CHECKING:
    from support.model.world import ModelStream


class ModelTransactions(ModelCatalog):
    """`sluice.stores.transactions.Transactions` over a World."""

    def _stream(self, name: StreamName) -> ModelStream:
        if name not in self._world.streams:
            raise StreamNotFound(str(name))
        return self._world.streams[name]

    def open_transaction(self, name: StreamName, *, lease: float) -> Transaction:
        """See Transactions."""
        assert lease > 0

        def act() -> Transaction:
            if self._stream(name).sealed:
                raise StoreRejected(f"{name} is sealed")
            opened = self._world.open(name)
            return Transaction(opened.key, opened.segments)

        return self._call(f"open_transaction {name}", act)

    def keep_transaction(self, name: StreamName, key: str, *, lease: float) -> bool:
        """See Transactions."""
        assert lease > 0

        def act() -> bool:
            there = self._stream(name).transactions.get(key)
            return there is not None and there.state is TransactionState.OPEN

        return self._call(f"keep_transaction {name} {key}", act)

    def commit_transaction(self, name: StreamName, key: str) -> bool:
        """See Transactions."""

        def act() -> bool:
            stream = self._stream(name)
            there = stream.transactions.get(key)
            if there is None or there.state is TransactionState.ABORTED:
                return False
            if there.state is TransactionState.OPEN:
                there.state = TransactionState.COMMITTING
                stream.committing.append(there)
            return True

        return self._call(f"commit_transaction {name} {key}", act)

    def abort_transaction(self, name: StreamName, key: str) -> bool:
        """See Transactions."""

        def act() -> bool:
            there = self._stream(name).transactions.get(key)
            if there is not None and there.state is TransactionState.OPEN:
                self._world.drop(name, there)
            return there is not None and there.state is TransactionState.ABORTED

        return self._call(f"abort_transaction {name} {key}", act)

    def transaction(self, name: StreamName, key: str) -> TransactionState:
        """See Transactions."""

        def act() -> TransactionState:
            there = self._stream(name).transactions.get(key)
            state = TransactionState.UNKNOWN if there is None else there.state
            self._world.commit(name)
            return state

        return self._call(f"transaction {name} {key}", act)

    def settled(self, name: StreamName, key: str) -> TransactionState:
        """See Transactions."""

        def act() -> TransactionState:
            self._world.commit(name)
            there = self._stream(name).transactions.get(key)
            return TransactionState.UNKNOWN if there is None else there.state

        return self._call(f"settled {name} {key}", act)
