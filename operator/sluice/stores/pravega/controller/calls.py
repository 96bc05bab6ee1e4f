"""One call to the controller's gRPC service: deadline, credentials, and what a refusal means.

A status that the caller can act on is an answer or an error of its own; every other one is
StoreRejected. Messages name what was asked, and never a credential.
"""

from __future__ import annotations

import asyncio
import base64
import time
from typing import TYPE_CHECKING, Any, Final

import grpc

from sluice.core.values.model import KeyRange, Segment
from sluice.errors import (
    AuthenticationFailed,
    BackendError,
    PermissionDenied,
    ProtocolError,
    ScopeNotFound,
    SluiceError,
    StoreBusy,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    StreamNotFound,
)
from sluice.stores import allowance
from sluice.stores.credentials import Grace
from sluice.stores.pravega.bounds import MOST_SEGMENTS
from sluice.stores.pravega.controller.channel import Channel
from sluice.stores.pravega.proto import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.names import Endpoint
    from sluice.stores.pravega.sockets.tls import TLS

_WEIGHT: Final = 8
"""Bytes of memory for each of a message, at most: a segment has 30 there, and 240 here."""

_BEING_MADE: Final = "State: CREATING"
"""What the controller says of a stream that another client is making at this moment."""

_FAILED: Final = "Internal exception occurred"
"""What it says of whatever went wrong in itself, as while the segment store is away, which holds
what it knows of streams."""

_TOO_LONG: Final = "Received message larger than max"
"""What the library says, and no controller, of an answer longer than we take in."""

_FAILURES: Final[Mapping[grpc.StatusCode, type[BackendError]]] = {
    grpc.StatusCode.UNAVAILABLE: StoreUnavailable,
    # By the server, as by a controller without a segment store that drops what it waits for.
    grpc.StatusCode.CANCELLED: StoreUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: StoreTimeout,
    grpc.StatusCode.UNAUTHENTICATED: AuthenticationFailed,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: StoreBusy,
}
"""What a failed call means; any other code is StoreRejected."""


class Calls:
    """What all calls to one controller share. Made, used and closed in one event loop.

    Args:
        endpoint: where the controller listens.
        credentials: sent with each call, when there are any.
        timeout: seconds that one call may take.
        tls: the TLS to the controller; None for none.
        told: of each call.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        credentials: Credentials | None,
        timeout: float,
        tls: TLS | None = None,
        told: Told | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._credentials = credentials
        self._metadata = _basic(credentials) if credentials else ()
        self._channel = Channel(endpoint, timeout=timeout, tls=tls)
        self._told = told
        self._grace = Grace()
        self._begun: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Close the channel; calls under way are cancelled."""
        await self._channel.close()

    async def call(
        self, name: str, request: Any, doing: str, *, missing: SluiceError | None = None
    ) -> Any:
        """Call a method of the service, by its name in the `.proto`.

        Args:
            name: the method.
            request: its message.
            doing: for messages: "cannot {doing}".
            missing: raised for the code NOT_FOUND, where that has a meaning.

        Returns:
            The reply, a message.

        Raises:
            BackendError: as `_FAILURES` has it for the status; or why TLS failed.
        """
        method = self._channel.method(name)
        number, begun = self._channel.number, time.monotonic()
        try:
            used = self._metadata
            try:
                reply = await method(request, timeout=self._timeout, metadata=used)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAUTHENTICATED or not self._others(used):
                    raise
                reply = await method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                self._channel.silent(number)
            if missing is not None and error.code() is grpc.StatusCode.NOT_FOUND:
                raise missing from None
            raise await self._failure(error, doing) from None
        finally:
            if self._told is not None:
                self._told(name, time.monotonic() - begun)
        self._channel.answered()
        self._grace.accepted()
        weight = _WEIGHT * reply.ByteSize()
        if not allowance.take(weight, wait=False):
            await asyncio.to_thread(allowance.take, weight)  # others use this loop
        return reply

    async def _failure(self, error: grpc.aio.AioRpcError, doing: str) -> BackendError:
        """Return what a failed call means."""
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.UNAVAILABLE:
            finding = await self._channel.finding()
            if finding is not None:
                return finding
        failure = _FAILURES.get(code, StoreRejected)
        if failure is AuthenticationFailed and self._may_be_changing():
            failure = StoreUnavailable
        if _TOO_LONG in details:
            failure = ProtocolError
        if code is grpc.StatusCode.INTERNAL:
            passing = StoreUnavailable if details == _FAILED else StoreRejected
            failure = StoreBusy if _BEING_MADE in details else passing
        return failure(
            f"cannot {doing}: the controller at {self._endpoint} said {code.name}"
            f" ({details or 'without a reason'})"
        )

    def begin(self, name: str, request: Any, doing: str) -> asyncio.Task[Any]:
        """Begin a call whose answer the caller may leave alone; see `call`."""
        task = asyncio.create_task(self.call(name, request, doing))
        self._begun.add(task)  # the event loop itself keeps no task alive
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        if not task.cancelled():
            task.exception()  # an error that is never asked for would be logged

    def _may_be_changing(self) -> bool:
        """Tell whether the password was accepted before, and its file may hold another one soon."""
        credentials = self._credentials
        return credentials is not None and credentials.source is not None and self._grace.may_pass()

    def _others(self, used: tuple[tuple[str, str], ...]) -> bool:
        """Tell whether there are other credentials by now: a password may be changed meanwhile."""
        if self._metadata == used and self._credentials is not None:
            self._credentials = self._credentials.again()
            self._metadata = _basic(self._credentials)
        return self._metadata != used


def _basic(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    pair = f"{credentials.username}:{credentials.password}".encode()
    return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def info(name: StreamName) -> pb.StreamInfo:
    """Return a stream in the words of the protocol."""
    return pb.StreamInfo(scope=name.scope, stream=name.stream)


def segments(ranges: Sequence[pb.SegmentRange]) -> tuple[Segment, ...]:
    """Return segments by key range, given as the controller names them.

    Raises:
        ProtocolError: there are too many.
    """
    if len(ranges) > MOST_SEGMENTS:
        raise ProtocolError(f"the controller told {len(ranges)} segments of one epoch")
    found = (
        Segment(id=r.segmentId.segmentId, keys=KeyRange(low=r.minKey, high=r.maxKey))
        for r in ranges
    )
    return tuple(sorted(found, key=lambda segment: segment.keys.low))


def settle(reply: Any, doing: str, **known: bool | SluiceError) -> bool:
    """Return True for SUCCESS, and the value in `known` for a status that is there.

    Raises:
        SluiceError: that value is one.
        StoreRejected: the status is another one.
    """
    status = type(reply).Status.Name(reply.status)
    outcome = known.get(status, True if status == "SUCCESS" else unexpected(status, doing))
    if isinstance(outcome, SluiceError):
        raise outcome
    return outcome


def settle_update(reply: Any, doing: str, name: StreamName) -> None:
    """Check that a change of a stream was accepted.

    Raises:
        StreamNotFound, ScopeNotFound: there is no such stream or scope.
        StoreBusy: the controller gives no reason.
        StoreRejected: the status is another one.
    """
    settle(
        reply,
        doing,
        STREAM_NOT_FOUND=no_stream(name),
        SCOPE_NOT_FOUND=no_scope(name.scope),
        FAILURE=busy(doing),
    )


def busy(doing: str) -> StoreBusy:
    """Return the error for FAILURE, for which the controller gives no reason: it passes.

    One of two clients that change a stream at once gets it. Each client does while no segment store
    serves.
    """
    return StoreBusy(f"cannot {doing}: the controller answered FAILURE")


def unexpected(status: str, doing: str) -> StoreRejected:
    """Return the error of a status that has no meaning for the caller."""
    return StoreRejected(f"cannot {doing}: the controller answered {status}")


def no_scope(scope: str) -> ScopeNotFound:
    """Return the error for a missing scope."""
    return ScopeNotFound(f"there is no scope {scope}")


def no_stream(name: StreamName) -> StreamNotFound:
    """Return the error for a missing stream."""
    return StreamNotFound(f"there is no stream {name}")
