"""The part of a store that has transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sluice.core.values.model import Segment, StreamName, TransactionState


class Transaction(NamedTuple):
    """A transaction of a stream.

    Attributes:
        key: 32 hexadecimal digits. `Store.staging_name` makes the names of its segments from it.
        segments: the stream's segments that took events when it was opened, in key order.
    """

    key: str
    segments: tuple[Segment, ...]


class Transactions(Protocol):
    """The transactions of a store. Their bytes reach a stream all at once, or never.

    A transaction has a segment of its own beside each segment that takes events when it is opened.
    It keeps these segments however the stream is scaled afterwards. A commit puts their bytes at
    the end of the stream's segments. Where these have been replaced, the bytes go into new segments
    with the same numbers and keys. The new segments follow the segments that took events so far.
    Duplicates of the latter follow the new segments.
    """

    def open_transaction(self, name: StreamName, *, lease: float) -> Transaction:
        """Open a transaction. The store aborts it if it is not kept for `lease` seconds.

        Raises:
            StreamNotFound: there is no such stream.
            StoreRejected: the stream is sealed, or the lease is too long or too short.
        """
        ...

    def keep_transaction(self, name: StreamName, key: str, *, lease: float) -> bool:
        """Renew a transaction's lease; False if it is not open, or has been open for too long."""
        ...

    def commit_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that the transaction is committed. The store commits it soon after.

        The call may be repeated. A stream's transactions are committed in the order of these
        decisions, if they were opened in the order of the stream's scale events.

        Returns:
            False if the transaction is aborted, or the store does not know it.
        """
        ...

    def abort_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that a transaction is aborted; False if it is committed, or is not known."""
        ...

    def transaction(self, name: StreamName, key: str) -> TransactionState:
        """Return the state of a transaction."""
        ...

    def settled(self, name: StreamName, key: str) -> TransactionState:
        """Wait for a decided commit or abort, then return the state.

        Raises:
            StoreTimeout: the store took too long to carry out the decision.
        """
        ...
