"""What Sluice needs of a store's transactions, besides what `stores.base` has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from sluice.core.values.model import Segment, StreamName, TransactionState


class Transaction(NamedTuple):
    """A transaction of a stream.

    Attributes:
        key: 32 hexadecimal digits. Under this key its segments lie beside those of the stream: see
            `Store.staging_name`.
        segments: of the stream, those that took events when it was opened, in key order.
    """

    key: str
    segments: tuple[Segment, ...]


class Transactions(Protocol):
    """What is written to a stream under a transaction is there all at once, or never.

    A transaction has a segment of its own beside each segment that takes events when it is opened,
    and keeps them however the stream is scaled afterwards. A commit then puts their bytes at the
    end of the stream's segments or, where these have been replaced, into new segments with the same
    numbers and keys, which follow on what is there and are followed by what takes events.
    """

    def open_transaction(self, name: StreamName, *, lease: float) -> Transaction:
        """Open a transaction. It is aborted once nobody has kept it for `lease` seconds.

        Raises:
            StreamNotFound: there is no such stream.
            StoreRejected: the stream is sealed, or the lease is too long or too short.
        """
        ...

    def keep_transaction(self, name: StreamName, key: str, *, lease: float) -> bool:
        """Let its lease begin anew; False when it is not open, or has been for too long."""
        ...

    def commit_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that the transaction is committed, which the store does soon; it may be repeated.

        Those of a stream are committed in the order of these decisions, if they were opened in the
        order of the stream's scale events.

        Returns:
            False when it is aborted, or the store does not know it.
        """
        ...

    def abort_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that it is aborted; False when it is committed, or the store does not know it."""
        ...

    def transaction(self, name: StreamName, key: str) -> TransactionState:
        """What becomes of a transaction."""
        ...

    def settled(self, name: StreamName, key: str) -> TransactionState:
        """As `transaction`, once what was decided is done. StoreTimeout if that takes long."""
        ...
