"""The controller's gRPC service as typed, asynchronous calls.

Each call has a deadline. A status that the caller can act on is an answer or an error of its own;
every other one is StoreRejected. Messages name what was asked, and never a credential.
"""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final

import grpc

from sluice.core.model import KeyRange, Segment
from sluice.errors import (
    AuthenticationFailed,
    BackendError,
    InvalidSpec,
    PermissionDenied,
    ScopeNotEmpty,
    ScopeNotFound,
    SluiceError,
    StoreBusy,
    StoreRejected,
    StoreTimeout,
    StoreUnavailable,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.pravega import policies
from sluice.stores.pravega.names import INTERNAL, Endpoint, visible
from sluice.stores.pravega.proto import controller_pb2 as pb
from sluice.stores.pravega.proto.controller_pb2_grpc import ControllerServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.core.model import StreamConfig, StreamName
    from sluice.stores.base import Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.names import Access

_OPTIONS: Final = (
    # The segment stores are reached directly, so the controller is too, whatever the environment.
    ("grpc.enable_http_proxy", 0),
    # A controller that comes back is found within seconds and not within two minutes.
    ("grpc.max_reconnect_backoff_ms", 2000),
)

_BEING_MADE: Final = "State: CREATING"
"""What the controller says of a stream that somebody is making at this moment."""

_FAILURES: Final[Mapping[grpc.StatusCode, type[BackendError]]] = {
    grpc.StatusCode.UNAVAILABLE: StoreUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: StoreTimeout,
    grpc.StatusCode.UNAUTHENTICATED: AuthenticationFailed,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: StoreBusy,
}
"""What a failed call means; any other code is StoreRejected."""


class Controller:
    """A client of one controller. Made, used and closed in one event loop.

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
        self._metadata = _basic(credentials) if credentials else ()
        self._channel = grpc.aio.insecure_channel(str(endpoint), options=_OPTIONS)
        self._stub = ControllerServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._names = {method: name for name, method in vars(self._stub).items()}
        self._told = told

    async def close(self) -> None:
        """Close the channel; calls under way are cancelled."""
        await self._channel.close()

    # Scopes

    async def create_scope(self, scope: str) -> bool:
        """Make a scope; False when it exists. InvalidSpec for a name that the store refuses."""
        doing = f"create the scope {scope}"
        reply = await self._call(self._stub.createScope, pb.ScopeInfo(scope=scope), doing)
        return _settle(
            reply,
            doing,
            SCOPE_EXISTS=False,
            INVALID_SCOPE_NAME=InvalidSpec(f"the store does not allow the scope name {scope!r}"),
        )

    async def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope; False when there is none. ScopeNotEmpty."""
        # The store (0.13.0) refuses to delete a scope with streams, and yet drops its index of
        # tags: no tagged stream can then be made or updated there. So it is not even asked.
        doing = f"delete the scope {scope}"
        not_empty = ScopeNotEmpty(f"the scope {scope} has streams")
        request = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope=scope))
        page = await self._call(self._stub.listStreamsInScope, request, doing)
        if page.streams:
            raise not_empty
        reply = await self._call(self._stub.deleteScope, pb.ScopeInfo(scope=scope), doing)
        return _settle(
            reply,
            doing,
            SCOPE_NOT_FOUND=False,
            SCOPE_NOT_EMPTY=not_empty,
        )

    async def scope_exists(self, scope: str) -> bool:
        """Whether there is such a scope."""
        doing = f"look for the scope {scope}"
        reply = await self._call(self._stub.checkScopeExists, pb.ScopeInfo(scope=scope), doing)
        return bool(reply.exists)

    async def list_scopes(self) -> list[str]:
        """Names of all scopes, sorted, without internal ones."""
        names, token = set[str](), ""
        while True:
            request = pb.ScopesRequest(continuationToken=pb.ContinuationToken(token=token))
            reply = await self._call(self._stub.listScopes, request, "list the scopes")
            if not reply.scopes:
                return sorted(name for name in names if not name.startswith(INTERNAL))
            names.update(reply.scopes)
            token = reply.continuationToken.token

    async def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Names of a scope's streams, sorted; with `tag` if given, which internal ones never are.

        Args:
            scope: the scope.
            tag: what the streams have; None for all.
            internal: whether internal streams count too. Those are left out still in which the
                store keeps the marks of another stream that is there, and which go with it.
            most: no page is asked for once there are so many.

        Raises:
            ScopeNotFound: there is no such scope.
        """
        doing = f"list the streams of {scope}"
        info, names, token = pb.ScopeInfo(scope=scope), set[str](), ""
        while True:
            at = pb.ContinuationToken(token=token)
            if tag is None:
                request = pb.StreamsInScopeRequest(scope=info, continuationToken=at)
                reply = await self._call(self._stub.listStreamsInScope, request, doing)
            else:
                tagged = pb.StreamsInScopeWithTagRequest(scope=info, tag=tag, continuationToken=at)
                reply = await self._call(self._stub.listStreamsInScopeForTag, tagged, doing)
            _settle(reply, doing, SCOPE_NOT_FOUND=_no_scope(scope))
            names.update(stream.stream for stream in reply.streams)
            found = visible(names, internal=internal)
            if not reply.streams or (most is not None and len(found) >= most):
                return sorted(found)
            token = reply.continuationToken.token

    # Streams

    async def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """Make a stream with uniform key ranges; False when it exists, however configured.

        Raises:
            ScopeNotFound: there is no such scope.
            InvalidSpec: the store does not allow the name or cannot hold the policy.
        """
        doing = f"create the stream {name}"
        request = policies.to_message(name, config)
        return _settle(
            await self._call(self._stub.createStream, request, doing),
            doing,
            STREAM_EXISTS=False,
            SCOPE_NOT_FOUND=_no_scope(name.scope),
            INVALID_STREAM_NAME=InvalidSpec(f"the store does not allow the stream name {name}"),
        )

    async def update_stream(self, name: StreamName, config: StreamConfig) -> None:
        """Replace a stream's configuration.

        StreamNotFound; StoreRejected when it is sealed; StoreBusy when somebody else changes it.

        The store replaces the whole of it, so what our model has no place for is carried over.
        """
        old = await self._configuration(name)
        doing = f"update the stream {name}"
        request = policies.to_message(name, config)
        request.timestampAggregationTimeout = old.timestampAggregationTimeout
        request.rolloverSizeBytes = old.rolloverSizeBytes
        _settle(
            await self._call(self._stub.updateStream, request, doing),
            doing,
            STREAM_NOT_FOUND=_no_stream(name),
            SCOPE_NOT_FOUND=_no_scope(name.scope),
            # Of two who change a stream at once, the controller refuses one without a reason.
            FAILURE=StoreBusy(f"cannot {doing}: the controller answered FAILURE"),
        )

    async def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """Drop what lies before `cut`, offsets by segment id. StreamNotFound."""
        doing = f"truncate the stream {name}"
        request = pb.StreamCut(streamInfo=_info(name), cut=cut)
        _settle_update(await self._call(self._stub.truncateStream, request, doing), doing, name)

    async def seal_stream(self, name: StreamName) -> None:
        """Seal a stream; sealing twice is fine. StreamNotFound."""
        doing = f"seal the stream {name}"
        reply = await self._call(self._stub.sealStream, _info(name), doing)
        _settle_update(reply, doing, name)

    async def delete_stream(self, name: StreamName) -> bool:
        """Delete a sealed stream; False when there is none. StreamNotSealed."""
        doing = f"delete the stream {name}"
        return _settle(
            await self._call(self._stub.deleteStream, _info(name), doing),
            doing,
            STREAM_NOT_FOUND=False,
            STREAM_NOT_SEALED=StreamNotSealed(f"the stream {name} is not sealed"),
        )

    async def configuration(self, name: StreamName) -> StreamConfig:
        """What a stream is configured with. StreamNotFound, for a missing scope too."""
        return policies.from_message(await self._configuration(name))

    async def _configuration(self, name: StreamName) -> pb.StreamConfig:
        doing = f"read the configuration of {name}"
        method = self._stub.getStreamConfiguration
        message: pb.StreamConfig = await self._call(
            method, _info(name), doing, missing=_no_stream(name)
        )
        return message

    # Segments of a stream

    async def current_segments(self, name: StreamName) -> tuple[Segment, ...]:
        """The segments that take events, by key range; none if sealed. StreamNotFound."""
        doing = f"list the segments of {name}"
        method = self._stub.getCurrentSegments
        reply = await self._call(method, _info(name), doing, missing=_no_stream(name))
        return _segments(reply.segmentRanges)

    async def epoch_segments(self, name: StreamName, epoch: int) -> tuple[Segment, ...]:
        """The segments of an epoch, by key range. StreamNotFound if the epoch never was, too."""
        doing = f"list the segments of epoch {epoch} of {name}"
        missing = StreamNotFound(f"there is no stream {name}, or it has no epoch {epoch}")
        request = pb.GetEpochSegmentsRequest(streamInfo=_info(name), epoch=epoch)
        reply = await self._call(self._stub.getEpochSegments, request, doing, missing=missing)
        return _segments(reply.segmentRanges)

    async def head_segments(self, name: StreamName) -> frozenset[int]:
        """Ids of the segments with the oldest readable bytes. StreamNotFound."""
        doing = f"look for the head of {name}"
        request = pb.GetSegmentsRequest(streamInfo=_info(name), timestamp=0)
        method = self._stub.getSegments
        reply = await self._call(method, request, doing, missing=_no_stream(name))
        return frozenset(location.segmentId.segmentId for location in reply.segments)

    async def scale(
        self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]
    ) -> int:
        """Begin to replace segments by new ones with the given key ranges, which cover the same.

        Returns:
            The epoch that ends, for `scaled`.

        Raises:
            StoreRejected: the store refuses, as for a policy with more segments, or a sealed
                stream.
        """
        doing = f"scale the stream {name}"
        entries = [pb.ScaleRequest.KeyRangeEntry(start=r.low, end=r.high) for r in ranges]
        request = pb.ScaleRequest(
            streamInfo=_info(name),
            sealedSegments=sealed,
            newKeyRanges=entries,
            scaleTimestamp=time.time_ns() // 1_000_000,
        )
        reply = await self._call(self._stub.scale, request, doing)
        if reply.status != pb.ScaleResponse.STARTED:
            raise _unexpected(pb.ScaleResponse.ScaleStreamStatus.Name(reply.status), doing)
        return int(reply.epoch)

    async def scaled(self, name: StreamName, epoch: int) -> bool:
        """Whether the scale that ends `epoch` is complete."""
        doing = f"wait for the scale of {name}"
        request = pb.ScaleStatusRequest(streamInfo=_info(name), epoch=epoch)
        reply = await self._call(self._stub.checkScale, request, doing)
        if reply.status == pb.ScaleStatusResponse.IN_PROGRESS:
            return False
        if reply.status != pb.ScaleStatusResponse.SUCCESS:
            raise _unexpected(pb.ScaleStatusResponse.ScaleStatus.Name(reply.status), doing)
        return True

    # Access to segments

    async def owner(self, name: StreamName, segment: int) -> Endpoint:
        """The segment store that has a segment, or would have it: it need not exist."""
        doing = f"look for the server of segment {segment} of {name}"
        request = pb.SegmentId(streamInfo=_info(name), segmentId=segment)
        reply = await self._call(self._stub.getURI, request, doing)
        return Endpoint(reply.endpoint, reply.port)

    async def token(self, name: StreamName, access: Access) -> str:
        """A delegation token for a stream's segments. PermissionDenied."""
        doing = f"get a {access.name} token for {name}"
        info = pb.StreamInfo(
            scope=name.scope,
            stream=name.stream,
            accessOperation=access.value,
        )
        reply = await self._call(self._stub.getDelegationToken, info, doing)
        return str(reply.delegationToken)

    async def ask(self, method: str, request: Any, doing: str) -> Any:
        """Any other call, by its name; its statuses are the caller's."""
        return await self._call(getattr(self._stub, method), request, doing)

    async def _call(
        self, method: Any, request: Any, doing: str, *, missing: SluiceError | None = None
    ) -> Any:
        """One call; `missing` is what the code NOT_FOUND means, where it means something."""
        begun = time.monotonic()
        try:
            return await method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            if missing is not None and code is grpc.StatusCode.NOT_FOUND:
                raise missing from None
            failure = _FAILURES.get(code, StoreRejected)
            if code is grpc.StatusCode.INTERNAL and _BEING_MADE in (error.details() or ""):
                failure = StoreBusy
            raise failure(
                f"cannot {doing}: the controller at {self._endpoint} said {code.name}"
                f" ({error.details() or 'without a reason'})"
            ) from None
        finally:
            if self._told is not None:
                self._told(self._names[method], time.monotonic() - begun)


def _basic(credentials: Credentials) -> tuple[tuple[str, str], ...]:
    pair = f"{credentials.username}:{credentials.password}".encode()
    return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def _info(name: StreamName) -> pb.StreamInfo:
    return pb.StreamInfo(scope=name.scope, stream=name.stream)


def _segments(ranges: Iterable[pb.SegmentRange]) -> tuple[Segment, ...]:
    segments = (
        Segment(id=r.segmentId.segmentId, keys=KeyRange(low=r.minKey, high=r.maxKey))
        for r in ranges
    )
    return tuple(sorted(segments, key=lambda segment: segment.keys.low))


def _settle(reply: Any, doing: str, **known: bool | SluiceError) -> bool:
    """True for SUCCESS; for a status in `known` what stands there; else StoreRejected."""
    status = type(reply).Status.Name(reply.status)
    outcome = known.get(status, True if status == "SUCCESS" else _unexpected(status, doing))
    if isinstance(outcome, SluiceError):
        raise outcome
    return outcome


def _settle_update(reply: Any, doing: str, name: StreamName) -> None:
    _settle(reply, doing, STREAM_NOT_FOUND=_no_stream(name), SCOPE_NOT_FOUND=_no_scope(name.scope))


def _unexpected(status: str, doing: str) -> StoreRejected:
    return StoreRejected(f"cannot {doing}: the controller answered {status}")


def _no_scope(scope: str) -> ScopeNotFound:
    return ScopeNotFound(f"there is no scope {scope}")


def _no_stream(name: StreamName) -> StreamNotFound:
    return StreamNotFound(f"there is no stream {name}")
