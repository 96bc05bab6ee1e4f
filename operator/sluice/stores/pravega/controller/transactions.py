"""The controller's transactions, as typed, asynchronous calls.

A transaction belongs to the epoch in which it was opened. If the stream was scaled since, a commit
adds two epochs. The first has a duplicate of each segment of the transaction's epoch, with the
transaction's data. The second has duplicates of the segments that take events. A duplicate keeps
the number and the keys of its segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.core.values.model import TransactionState
from sluice.stores.pravega.controller.calls import Calls, info, no_stream, segments, settle
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.transactions import Transaction

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName

_STATES: Final = {
    pb.TxnState.OPEN: TransactionState.OPEN,
    pb.TxnState.COMMITTING: TransactionState.COMMITTING,
    pb.TxnState.COMMITTED: TransactionState.COMMITTED,
    pb.TxnState.ABORTING: TransactionState.ABORTING,
    pb.TxnState.ABORTED: TransactionState.ABORTED,
}
_HALF: Final = 1 << 64


class TransactionCalls(Calls):
    """Calls about transactions."""

    async def open_transaction(self, name: StreamName, lease: float) -> Transaction:
        """Open a transaction in the stream's present epoch. StreamNotFound.

        Args:
            name: the stream.
            lease: seconds after which the store aborts it, unless its lease is renewed.
        """
        doing = f"open a transaction on {name}"
        request = pb.CreateTxnRequest(streamInfo=info(name), lease=_milliseconds(lease))
        reply = await self.call("createTransaction", request, doing, missing=no_stream(name))
        return Transaction(_key(reply.txnId), segments(reply.activeSegments))

    async def keep_transaction(self, name: StreamName, key: str, lease: float) -> bool:
        """Renew a transaction's lease; False if it is not open any more."""
        doing = f"keep transaction {key} of {name}"
        request = pb.PingTxnRequest(
            streamInfo=info(name), txnId=_id(key), lease=_milliseconds(lease)
        )
        reply = await self.call("pingTransaction", request, doing, missing=no_stream(name))
        return bool(reply.status == pb.PingTxnStatus.OK)

    async def commit_transaction(self, name: StreamName, key: str) -> bool:
        """Begin to commit; False if the transaction is aborted, or the store does not know it."""
        doing = f"commit transaction {key} of {name}"
        return await self._end("commitTransaction", name, key, doing)

    async def abort_transaction(self, name: StreamName, key: str) -> bool:
        """Begin to abort; False if the transaction is committed, or the store does not know it."""
        doing = f"abort transaction {key} of {name}"
        return await self._end("abortTransaction", name, key, doing)

    async def transaction(self, name: StreamName, key: str) -> TransactionState:
        """Return the state of a transaction; UNKNOWN if the store does not know it."""
        doing = f"look for transaction {key} of {name}"
        request = pb.TxnRequest(streamInfo=info(name), txnId=_id(key))
        reply = await self.call("checkTransactionState", request, doing, missing=no_stream(name))
        return _STATES.get(reply.state, TransactionState.UNKNOWN)

    async def _end(self, method: str, name: StreamName, key: str, doing: str) -> bool:
        request = pb.TxnRequest(streamInfo=info(name), txnId=_id(key))
        reply = await self.call(method, request, doing, missing=no_stream(name))
        return settle(
            reply,
            doing,
            FAILURE=False,
            TRANSACTION_NOT_FOUND=False,
            STREAM_NOT_FOUND=no_stream(name),
        )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _key(number: pb.TxnId) -> str:
    """Return a transaction's id as it stands in the names of its segments."""
    return f"{number.highBits % _HALF:016x}{number.lowBits % _HALF:016x}"


def _id(key: str) -> pb.TxnId:
    high, low = (int(half, 16) for half in (key[:16], key[16:]))
    return pb.TxnId(highBits=_signed(high), lowBits=_signed(low))


def _signed(half: int) -> int:
    return half - _HALF if half >= _HALF // 2 else half
