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
from google.protobuf.message_factory import GetMessageClass

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
from sluice.stores.pravega.bounds import MOST_MESSAGE, MOST_SEGMENTS
from sluice.stores.pravega.proto import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice.core.values.model import StreamName
    from sluice.stores.base import Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.names import Endpoint

_OPTIONS: Final = (
    # The segment stores are reached directly, so the controller is too, whatever the environment.
    ("grpc.enable_http_proxy", 0),
    # A controller that comes back is found within seconds and not within two minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A connection whose host is gone without a word is broken by the kernel after the second of
    # these: gRPC hands it on to it only together with the first. That is longer than any call may
    # take, so no ping is sent: a controller ends connections with more of them.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 8_000),
    ("grpc.max_receive_message_length", MOST_MESSAGE),
)

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
        told: of each call.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        credentials: Credentials | None,
        timeout: float,
        told: Told | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._credentials = credentials
        self._metadata = _basic(credentials) if credentials else ()
        self._channel = grpc.aio.insecure_channel(str(endpoint), options=_OPTIONS)
        self._methods = _methods(self._channel)
        self._told = told
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
            BackendError: as `_FAILURES` has it for the status.
        """
        method = self._methods[name]
        begun = time.monotonic()
        try:
            used = self._metadata
            try:
                reply = await method(request, timeout=self._timeout, metadata=used)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAUTHENTICATED or not self._others(used):
                    raise
                reply = await method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if missing is not None and code is grpc.StatusCode.NOT_FOUND:
                raise missing from None
            failure = _FAILURES.get(code, StoreRejected)
            if _TOO_LONG in (error.details() or ""):
                failure = ProtocolError
            if code is grpc.StatusCode.INTERNAL:
                said = error.details() or ""
                passing = StoreUnavailable if said == _FAILED else StoreRejected
                failure = StoreBusy if _BEING_MADE in said else passing
            raise failure(
                f"cannot {doing}: the controller at {self._endpoint} said {code.name}"
                f" ({error.details() or 'without a reason'})"
            ) from None
        finally:
            if self._told is not None:
                self._told(name, time.monotonic() - begun)
        weight = _WEIGHT * reply.ByteSize()
        if not allowance.take(weight, wait=False):
            await asyncio.to_thread(allowance.take, weight)  # others use this loop
        return reply

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

    def _others(self, used: tuple[tuple[str, str], ...]) -> bool:
        """Whether there are other credentials by now: a password may be changed while we run."""
        if self._metadata == used and self._credentials is not None:
            self._credentials = self._credentials.again()
            self._metadata = _basic(self._credentials)
        return self._metadata != used


def _methods(channel: grpc.aio.Channel) -> dict[str, Any]:
    """Return the callable for each method of the service, as the descriptor has them."""
    service = pb.DESCRIPTOR.services_by_name["ControllerService"]
    return {
        method.name: channel.unary_unary(
            f"/{service.full_name}/{method.name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        for method in service.methods
    }


def _basic(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    pair = f"{credentials.username}:{credentials.password}".encode()
    return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def info(name: StreamName) -> pb.StreamInfo:
    """A stream in the words of the protocol."""
    return pb.StreamInfo(scope=name.scope, stream=name.stream)


def segments(ranges: Sequence[pb.SegmentRange]) -> tuple[Segment, ...]:
    """Segments as the controller names them, by key range. ProtocolError for too many."""
    if len(ranges) > MOST_SEGMENTS:
        raise ProtocolError(f"the controller told {len(ranges)} segments of one epoch")
    found = (
        Segment(id=r.segmentId.segmentId, keys=KeyRange(low=r.minKey, high=r.maxKey))
        for r in ranges
    )
    return tuple(sorted(found, key=lambda segment: segment.keys.low))


def settle(reply: Any, doing: str, **known: bool | SluiceError) -> bool:
    """True for SUCCESS; for a status in `known` what stands there; else StoreRejected."""
    status = type(reply).Status.Name(reply.status)
    outcome = known.get(status, True if status == "SUCCESS" else unexpected(status, doing))
    if isinstance(outcome, SluiceError):
        raise outcome
    return outcome


def settle_update(reply: Any, doing: str, name: StreamName) -> None:
    """Raise unless a change of a stream was accepted. StreamNotFound, ScopeNotFound, StoreBusy."""
    settle(
        reply,
        doing,
        STREAM_NOT_FOUND=no_stream(name),
        SCOPE_NOT_FOUND=no_scope(name.scope),
        FAILURE=busy(doing),
    )


def busy(doing: str) -> StoreBusy:
    """What FAILURE means, for which the controller gives no reason: it passes.

    Of two who change a stream at once one gets it, and so does everybody while no segment store
    serves.
    """
    return StoreBusy(f"cannot {doing}: the controller answered FAILURE")


def unexpected(status: str, doing: str) -> StoreRejected:
    """Return the error of a status that has no meaning for the caller."""
    return StoreRejected(f"cannot {doing}: the controller answered {status}")


def no_scope(scope: str) -> ScopeNotFound:
    """There is no such scope."""
    return ScopeNotFound(f"there is no scope {scope}")


def no_stream(name: StreamName) -> StreamNotFound:
    """There is no such stream."""
    return StreamNotFound(f"there is no stream {name}")
