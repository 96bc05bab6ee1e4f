"""The controller's gRPC service as typed, asynchronous calls."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from sluice.errors import (
    InvalidSpec,
    ProtocolError,
    ScopeNotEmpty,
    SluiceError,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.pravega.bounds import MOST_HOST, MOST_TOKEN, Listing
from sluice.stores.pravega.controller import policies
from sluice.stores.pravega.controller.calls import (
    busy,
    info,
    no_scope,
    no_stream,
    segments,
    settle,
    settle_update,
    unexpected,
)
from sluice.stores.pravega.controller.transactions import TransactionCalls
from sluice.stores.pravega.names import INTERNAL, Endpoint, visible
from sluice.stores.pravega.proto import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sluice.core.values.model import KeyRange, Segment, StreamConfig, StreamName
    from sluice.stores.pravega.names import TokenAccess


_GLANCE: Final = 0.02
"""Seconds before the first look whether an update of a stream is done; twice as many before each
next one."""

_FEW: Final = 16
"""Streams with a tag, at most, for which they are listed again and again."""


class ControllerClient(TransactionCalls):
    """A client of one controller. It must be made, used and closed in one event loop."""

    # Scopes

    async def create_scope(self, scope: str) -> bool:
        """Make a scope; False if it exists. InvalidSpec if the store does not allow the name."""
        doing = f"create the scope {scope}"
        reply = await self.call("createScope", pb.ScopeInfo(scope=scope), doing)
        return settle(
            reply,
            doing,
            SCOPE_EXISTS=False,
            INVALID_SCOPE_NAME=_wrong_name("scope", scope),
            FAILURE=busy(doing),
        )

    async def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope; False when there is none. ScopeNotEmpty."""
        # The store (0.13.0) refuses to delete a scope with streams or key-value tables, but drops
        # its index of tags all the same. Then no tagged stream can be made or updated there. So
        # look first, and do not even ask for such a scope's deletion.
        doing = f"delete the scope {scope}"
        inside = pb.ScopeInfo(scope=scope)
        streams = pb.StreamsInScopeRequest(scope=inside)
        if (await self.call("listStreamsInScope", streams, doing)).streams:
            raise ScopeNotEmpty(f"the scope {scope} has streams")
        tables = pb.KVTablesInScopeRequest(scope=inside)
        if (await self.call("listKeyValueTablesInScope", tables, doing)).kvtables:
            raise ScopeNotEmpty(f"the scope {scope} has key-value tables")
        reply = await self.call("deleteScope", inside, doing)
        return settle(
            reply,
            doing,
            SCOPE_NOT_FOUND=False,
            SCOPE_NOT_EMPTY=ScopeNotEmpty(
                f"the scope {scope} has content that came this moment, or that no client can list,"
                " such as a reader group without its stream"
            ),
        )

    async def scope_exists(self, scope: str, *, doing: str = "") -> bool:
        """Tell whether there is such a scope; errors name `doing` as the purpose."""
        doing = doing or f"look for the scope {scope}"
        reply = await self.call("checkScopeExists", pb.ScopeInfo(scope=scope), doing)
        return bool(reply.exists)

    async def list_scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, without internal ones."""
        found = Listing("list the scopes")
        while True:
            request = pb.ScopesRequest(continuationToken=pb.ContinuationToken(token=found.token))
            reply = await self.call("listScopes", request, "list the scopes")
            if not found.add(reply.scopes, reply.continuationToken.token):
                return sorted(name for name in found.names if not name.startswith(INTERNAL))

    async def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Return the names of a scope's streams, sorted.

        Args:
            scope: the scope.
            tag: list only streams with this tag, which internal streams never are; None for all.
            internal: whether internal streams count too. A stream with the watermarks of another
                stream in the scope never counts: the store deletes it with that stream.
            most: stop asking for pages once there are so many names.

        Raises:
            ScopeNotFound: there is no such scope.
        """
        doing = f"list the streams of {scope}"
        inside, listing = pb.ScopeInfo(scope=scope), Listing(doing)
        while True:
            at = pb.ContinuationToken(token=listing.token)
            if tag is None:
                request = pb.StreamsInScopeRequest(scope=inside, continuationToken=at)
                reply = await self.call("listStreamsInScope", request, doing)
            else:
                tagged = pb.StreamsInScopeWithTagRequest(
                    scope=inside, tag=tag, continuationToken=at
                )
                reply = await self.call("listStreamsInScopeForTag", tagged, doing)
            settle(reply, doing, SCOPE_NOT_FOUND=no_scope(scope))
            streams = (stream.stream for stream in reply.streams)
            more = listing.add(streams, reply.continuationToken.token)
            if more and most is None:
                continue
            found = visible(listing.names, internal=internal)
            if not more or (most is not None and len(found) >= most):
                return sorted(found)

    async def list_key_value_tables(self, scope: str) -> list[str]:
        """Return the names of a scope's key-value tables, sorted. ScopeNotFound."""
        doing = f"list the key-value tables of {scope}"
        inside, listing = pb.ScopeInfo(scope=scope), Listing(doing)
        while True:
            at = pb.ContinuationToken(token=listing.token)
            request = pb.KVTablesInScopeRequest(scope=inside, continuationToken=at)
            reply = await self.call("listKeyValueTablesInScope", request, doing)
            settle(reply, doing, SCOPE_NOT_FOUND=no_scope(scope))
            tables = (table.kvtName for table in reply.kvtables)
            if not listing.add(tables, reply.continuationToken.token):
                return sorted(listing.names)

    # Streams

    async def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """Make a stream with uniform key ranges; False if it exists, whatever its configuration.

        Raises:
            ScopeNotFound: there is no such scope.
            InvalidSpec: the store does not allow the name or cannot hold the policy.
            StoreBusy: the store cannot make the stream's segments now.
        """
        if config.scaling.min_segments < 1:  # the controller would refuse it without a reason
            raise InvalidSpec(f"the policy of {name} wants {config.scaling.min_segments} segments")
        doing = f"create the stream {name}"
        request = policies.to_message(name, config)
        return settle(
            await self.call("createStream", request, doing),
            doing,
            STREAM_EXISTS=False,
            SCOPE_NOT_FOUND=no_scope(name.scope),
            INVALID_STREAM_NAME=_wrong_name("stream", str(name)),
            FAILURE=busy(doing),
        )

    async def update_stream(
        self, name: StreamName, config: StreamConfig, *, until_listed: str | None = None
    ) -> None:
        """Replace a stream's configuration; see `Admin.update_stream`.

        StreamNotFound; StoreRejected if it is sealed; StoreBusy if another client changes it.
        """
        # The store replaces the whole configuration. So carry over the fields that StreamConfig
        # does not have.
        old = await self._configuration(name)
        doing = f"update the stream {name}"
        request = policies.to_message(name, config)
        request.timestampAggregationTimeout = old.timestampAggregationTimeout
        request.rolloverSizeBytes = old.rolloverSizeBytes
        update = self.begin("updateStream", request, doing)
        if until_listed is None or not await self._is_listed(name, until_listed, update):
            settle_update(await update, doing, name)

    async def _is_listed(self, name: StreamName, tag: str, update: asyncio.Task[Any]) -> bool:
        """Wait until a stream is listed by a tag, or its update is answered.

        The controller (0.13.0) looks whether an update is done at once, and then every 100 ms
        (`EventHelper.checkDone`). It carries the update out in 20 to 40 ms, and the index of tags
        comes last (`UpdateStreamTask.processUpdate`). Many streams may have the tag, as all empty
        copies have one digest: then wait for the answer. A configuration that shows is certain:
        the controller notes the event that carries it out before (`addIndexAndSubmitTask`).
        """
        pause = _GLANCE
        while not (await asyncio.wait([update], timeout=pause))[0]:
            try:
                found = await self.list_streams(name.scope, tag, most=_FEW)
                if name.stream in found:  # perhaps by what the index still has of an older stream
                    return tag in (await self._configuration(name)).tags.tag
            except SluiceError:
                return False  # the answer to the update counts, and not that to a look
            if len(found) >= _FEW:
                return False
            pause *= 2
        return False

    async def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """Drop all bytes before `cut`: offsets in bytes by segment id.

        StreamNotFound; StoreBusy if another client changes the stream, or has scaled it since.
        """
        doing = f"truncate the stream {name}"
        request = pb.StreamCut(streamInfo=info(name), cut=cut)
        settle_update(await self.call("truncateStream", request, doing), doing, name)

    async def seal_stream(self, name: StreamName) -> None:
        """Seal a stream; sealing twice is fine. StreamNotFound; StoreBusy as above."""
        doing = f"seal the stream {name}"
        reply = await self.call("sealStream", info(name), doing)
        settle_update(reply, doing, name)

    async def delete_stream(self, name: StreamName) -> bool:
        """Delete a sealed stream; False when there is none. StreamNotSealed; StoreBusy as above."""
        doing = f"delete the stream {name}"
        return settle(
            await self.call("deleteStream", info(name), doing),
            doing,
            STREAM_NOT_FOUND=False,
            STREAM_NOT_SEALED=StreamNotSealed(f"the stream {name} is not sealed"),
            FAILURE=busy(doing),
        )

    async def configuration(self, name: StreamName) -> StreamConfig:
        """Return a stream's configuration. StreamNotFound, for a missing scope too."""
        return policies.from_message(await self._configuration(name))

    async def _configuration(self, name: StreamName) -> pb.StreamConfig:
        doing = f"read the configuration of {name}"
        method = "getStreamConfiguration"
        message: pb.StreamConfig = await self.call(
            method, info(name), doing, missing=no_stream(name)
        )
        return message

    # Segments of a stream

    async def current_segments(self, name: StreamName) -> tuple[Segment, ...]:
        """Return the segments that take events, by key range; none if sealed. StreamNotFound."""
        doing = f"list the segments of {name}"
        method = "getCurrentSegments"
        reply = await self.call(method, info(name), doing, missing=no_stream(name))
        return segments(reply.segmentRanges)

    async def epoch_segments(self, name: StreamName, epoch: int) -> tuple[Segment, ...]:
        """Return the segments of an epoch, by key range.

        Raises:
            StreamNotFound: there is no such stream, or it has no such epoch.
        """
        doing = f"list the segments of epoch {epoch} of {name}"
        missing = StreamNotFound(f"there is no stream {name}, or it has no epoch {epoch}")
        request = pb.GetEpochSegmentsRequest(streamInfo=info(name), epoch=epoch)
        reply = await self.call("getEpochSegments", request, doing, missing=missing)
        return segments(reply.segmentRanges)

    async def head_segments(self, name: StreamName) -> frozenset[int]:
        """Return the ids of the segments with the oldest readable bytes. StreamNotFound."""
        doing = f"look for the head of {name}"
        request = pb.GetSegmentsRequest(streamInfo=info(name), timestamp=0)
        method = "getSegments"
        reply = await self.call(method, request, doing, missing=no_stream(name))
        return frozenset(location.segmentId.segmentId for location in reply.segments)

    async def scale(
        self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]
    ) -> int:
        """Begin to replace segments by new ones with the given key ranges, which cover the same.

        Returns:
            The epoch that ends, for `scaled`.

        Raises:
            StoreRejected: the store refuses, for example as the policy wants more segments, or
                the stream is sealed.
        """
        doing = f"scale the stream {name}"
        entries = [pb.ScaleRequest.KeyRangeEntry(start=r.low, end=r.high) for r in ranges]
        request = pb.ScaleRequest(
            streamInfo=info(name),
            sealedSegments=sealed,
            newKeyRanges=entries,
            scaleTimestamp=time.time_ns() // 1_000_000,
        )
        reply = await self.call("scale", request, doing)
        if reply.status != pb.ScaleResponse.STARTED:
            raise unexpected(pb.ScaleResponse.ScaleStreamStatus.Name(reply.status), doing)
        return int(reply.epoch)

    async def scaled(self, name: StreamName, epoch: int) -> bool:
        """Tell whether the scale that ends `epoch` is complete."""
        doing = f"wait for the scale of {name}"
        request = pb.ScaleStatusRequest(streamInfo=info(name), epoch=epoch)
        reply = await self.call("checkScale", request, doing)
        if reply.status == pb.ScaleStatusResponse.IN_PROGRESS:
            return False
        if reply.status != pb.ScaleStatusResponse.SUCCESS:
            raise unexpected(pb.ScaleStatusResponse.ScaleStatus.Name(reply.status), doing)
        return True

    # Access to segments

    async def owner(self, name: StreamName, segment: int) -> Endpoint:
        """Return the segment store that owns a segment. The segment need not exist."""
        doing = f"look for the server of segment {segment} of {name}"
        request = pb.SegmentId(streamInfo=info(name), segmentId=segment)
        reply = await self.call("getURI", request, doing)
        if len(reply.endpoint) > MOST_HOST:
            raise ProtocolError(
                f"cannot {doing}: the controller named a host of {len(reply.endpoint)} characters"
            )
        return Endpoint(reply.endpoint, reply.port)

    async def token(self, name: StreamName, access: TokenAccess) -> str:
        """Return a delegation token for a stream's segments. PermissionDenied."""
        doing = f"get a {access.name} token for {name}"
        request = pb.StreamInfo(
            scope=name.scope,
            stream=name.stream,
            accessOperation=access.value,
        )
        reply = await self.call("getDelegationToken", request, doing)
        token = str(reply.delegationToken)
        if len(token) > MOST_TOKEN:
            raise ProtocolError(
                f"cannot {doing}: the controller gave one of {len(token)} characters"
            )
        return token


def _wrong_name(what: str, name: str) -> InvalidSpec:
    """Return the error for a name that the store refuses. It says which names are allowed."""
    return InvalidSpec(
        f"the store does not allow the {what} name {name}",
        remedy="Take letters, digits, . and - only, at most 255 of them.",
    )
