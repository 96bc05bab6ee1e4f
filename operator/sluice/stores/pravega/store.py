"""A Pravega cluster as a store: its catalog over gRPC, its segments over the wire protocol."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sluice.core.values.identity import TAG_MANAGED, same_maker
from sluice.core.values.model import StoreHealth, StreamName
from sluice.errors import (
    ProtocolError,
    ReaderGroupExists,
    ReaderGroupNotFound,
    StoreBusy,
    StoreTimeout,
    StoreUnavailable,
    StreamNotFound,
)
from sluice.stores.pravega import names, routing
from sluice.stores.pravega.bounds import MOST_STATE
from sluice.stores.pravega.controller import epochs
from sluice.stores.pravega.controller.directory import Directory
from sluice.stores.pravega.groups import cuts, group_state, groups
from sluice.stores.pravega.segments.segments import PravegaSegments
from sluice.stores.pravega.segments.transport import Transport
from sluice.stores.pravega.sockets.tls import TLS
from sluice.stores.pravega.wire.pool import ConnectionPool
from sluice.stores.reading import joined
from sluice.stores.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from uuid import UUID

    from sluice.config import StoreTimeouts
    from sluice.core.values.groups import GroupConfig, GroupName, GroupSettings, GroupState
    from sluice.core.values.model import KeyRange, Segment, StreamConfig, TransactionState
    from sluice.stores.base import Told
    from sluice.stores.credentials import Credentials
    from sluice.stores.pravega.controller.controller import ControllerClient
    from sluice.stores.reading import Stream
    from sluice.stores.transactions import Transaction

_T = TypeVar("_T")

_MOST_SETUPS: Final = 10_000
"""Requests after which a connection for SetupAppend is replaced: the store remembers something of
each such request until the connection ends."""

_SYSTEM: Final = StreamName(scope="_system", stream="_requeststream")
"""An internal stream of the controller, which every cluster has."""

_POLL: Final = 0.02
"""Seconds between two checks whether the store has made a stream (which takes 0.1 s), scaled one
(0.02 to 0.3 s), or ended a transaction."""


class PravegaStore(PravegaSegments):
    """`sluice.stores.base.Store` for Pravega; safe to use from several threads.

    Args:
        uri: the controller, `tcp://host:port`; with `tls://` all servers are spoken to by TLS.
        credentials: user and password; None for a cluster without authentication.
        timeouts: deadlines of every call.
        trust: by which certificates the servers are trusted; None for the system's.
        told: callback `(method, seconds)`, called on the gRPC thread after each call to the
            controller.

    Raises:
        InvalidSpec: the URI is not of that form, or there are no certificates.
    """

    def __init__(
        self,
        uri: str,
        *,
        credentials: Credentials | None,
        timeouts: StoreTimeouts,
        trust: Trust | None = None,
        told: Told | None = None,
    ) -> None:
        self._uri = uri
        self._timeouts = timeouts
        endpoint = names.Endpoint.parse(uri)
        tls = TLS(trust or Trust()) if names.has_tls(uri) else None
        self._pool = ConnectionPool(timeouts.connect, tls=tls)
        self._setups = ConnectionPool(timeouts.connect, tls=tls, most_requests=_MOST_SETUPS)
        self._directory = Directory(
            endpoint, credentials=credentials, timeouts=timeouts, tls=tls, told=told
        )
        super().__init__(
            Transport(self._directory, self._pool, timeouts),
            Transport(self._directory, self._setups, timeouts),
        )

    def __repr__(self) -> str:
        """Return the class and the address; never a credential."""
        return f"{type(self).__name__}({self._uri!r})"

    @property
    def event_count(self) -> UUID:
        """The attribute in which the store counts a segment's events."""
        return names.EVENT_COUNT

    @property
    def creation_time(self) -> UUID:
        """The attribute that holds a segment's creation time, in milliseconds since 1970."""
        return names.CREATION_TIME

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """Return the full name of a stream's segment."""
        return names.segment_name(stream, segment)

    def staging_name(self, stream: StreamName, segment: int, key: str) -> str:
        """Return the name of a staging segment that can be merged into a stream's segment."""
        return names.staging_name(stream, segment, key)

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """Return the stream and the offsets by segment id of a StreamCut's text. InvalidSpec."""
        return cuts.read(text)

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """Return a StreamCut as text that clients can read."""
        return cuts.write(stream, cut)

    def following(
        self, segments: Sequence[int], made: Sequence[Sequence[KeyRange]]
    ) -> list[tuple[int, ...]]:
        """Return the ids that scale events will give to the segments that they make."""
        return epochs.following(segments, made)

    def is_original(self, segment: int) -> bool:
        """Tell whether the stream was made with this segment, and not scaled to it later."""
        return names.epoch_of(segment) == 0

    def place_of(self, key: str) -> float:
        """Return the place of a routing key in [0, 1)."""
        return routing.place_of(key)

    def is_beside(self, one: int, other: int) -> bool:
        """Tell whether two segments have one number: it alone decides their container."""
        return names.number_of(one) == names.number_of(other)

    def probe(self) -> StoreHealth:
        """Check that the controller answers, and that a segment store shakes hands.

        Raises:
            AuthenticationFailed: the cluster does not know the user.
            StoreUnavailable: one of them does not answer.
            ProtocolError: the segment store speaks no protocol that Sluice speaks.
        """
        begun = time.monotonic()
        doing = "see whether the store answers"
        self._directory.run(lambda controller: controller.scope_exists(_SYSTEM.scope, doing=doing))
        latency = time.monotonic() - begun
        # Each segment name has an owner, whether the segment exists or not.
        segment = names.segment_name(_SYSTEM, 0)
        (endpoint,) = self._directory.owners([segment])
        try:
            with self._pool.lease(endpoint) as connection:
                return StoreHealth(latency=latency, protocol=connection.version)
        except StoreUnavailable:
            self._directory.forget_server(segment)
            raise

    def close(self) -> None:
        """Close all idle connections, and that to the controller. The store may be used again."""
        self._pool.close()
        self._setups.close()
        self._directory.close()

    def describe(self, name: StreamName) -> Stream | None:
        """Return the stream as it is now; None if it or its scope does not exist."""
        return self._of_made(name, lambda controller: epochs.describe(controller, name))

    def configuration(self, name: StreamName) -> StreamConfig | None:
        """Return a stream's configuration; None if there is no such stream."""
        return self._of_made(name, lambda controller: epochs.configuration(controller, name))

    def _of_made(
        self, name: StreamName, call: Callable[[ControllerClient], Coroutine[Any, Any, _T]]
    ) -> _T:
        """Ask about a stream that another client may be creating; finish Sluice's own creations.

        The controller answers that a stream is busy while it is being created. A controller that
        could not reach the segment store stops halfway, and goes on only when it is asked to create
        the stream again. Until then it answers every question about the stream with busy. So a
        stream with Sluice's tag is created again here, with the configuration that the controller
        already has. This decides nothing new.
        """
        try:
            return self._patiently(call)
        except StoreBusy:
            # The controller tells the configuration of a stream whose segments are not made yet.
            config = self._directory.run(lambda controller: controller.configuration(name))
            if TAG_MANAGED not in config.tags:
                raise
        self.create_stream(name, config)
        return self._patiently(call)

    def _patiently(self, call: Callable[[ControllerClient], Coroutine[Any, Any, _T]]) -> _T:
        """Repeat a call while the store is busy, for as long as one call may take."""
        deadline = time.monotonic() + self._timeouts.call
        while True:
            try:
                return self._directory.run(call)
            except StoreBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL)

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """Return the segments from head to tail, by scale events. StreamNotFound."""
        return self._directory.run(lambda controller: epochs.generations(controller, name, since))

    def had(self, name: StreamName, segment: int) -> bool:
        """Tell whether a stream has or had a segment of this id, which may be truncated away."""
        return self._directory.run(lambda controller: epochs.had(controller, name, segment))

    def scope_exists(self, scope: str) -> bool:
        """Tell whether there is such a scope."""
        return self._directory.run(lambda controller: controller.scope_exists(scope))

    def create_scope(self, scope: str) -> bool:
        """Make a scope; False when it exists. InvalidSpec for a name that is not allowed."""
        return self._directory.run(lambda controller: controller.create_scope(scope))

    def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope; False when there is none. ScopeNotEmpty."""
        return self._directory.run(lambda controller: controller.delete_scope(scope))

    def list_scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, without internal ones."""
        return self._directory.run(lambda controller: controller.list_scopes())

    def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """Return the names of a scope's streams, sorted; see `Topology`. ScopeNotFound."""
        return self._directory.run(
            lambda controller: controller.list_streams(scope, tag, internal=internal, most=most)
        )

    def list_key_value_tables(self, scope: str) -> list[str]:
        """Return the names of a scope's key-value tables, sorted. ScopeNotFound."""
        return self._directory.run(lambda controller: controller.list_key_value_tables(scope))

    def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """Make a stream with uniform key ranges; False when it exists. ScopeNotFound."""
        return self._directory.run(lambda controller: controller.create_stream(name, config))

    def update_stream(
        self, name: StreamName, config: StreamConfig, *, until_listed: str | None = None
    ) -> None:
        """Replace the whole configuration, tags included; see `Admin`. StreamNotFound."""
        self._directory.run(
            lambda controller: controller.update_stream(name, config, until_listed=until_listed)
        )

    def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """Drop all bytes before `cut`: offsets in bytes by segment id. StreamNotFound."""
        self._directory.run(lambda controller: controller.truncate_stream(name, cut))

    def seal_stream(self, name: StreamName) -> None:
        """Seal a stream; sealing twice is fine. StreamNotFound."""
        self._directory.run(lambda controller: controller.seal_stream(name))

    def delete_stream(self, name: StreamName) -> bool:
        """Delete a sealed stream; False when there is none. StreamNotSealed."""
        return self._directory.run(lambda controller: controller.delete_stream(name))

    def scale(self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]) -> None:
        """Replace segments by new ones with the given key ranges, and wait until that is done.

        Raises:
            StoreRejected: the ranges are not those of the sealed segments, the policy wants more
                segments, or the stream is sealed or missing.
            StoreTimeout: the store has not scaled the stream within the timeout of a call.
        """

        async def scale(controller: ControllerClient) -> None:
            deadline = time.monotonic() + self._timeouts.call
            epoch = await controller.scale(name, sealed, ranges)
            while not await controller.scaled(name, epoch):
                if time.monotonic() > deadline:
                    raise StoreTimeout(f"{name} was not scaled in {self._timeouts.call:g} s")
                await asyncio.sleep(_POLL)

        self._directory.run(scale)

    def open_transaction(self, name: StreamName, *, lease: float) -> Transaction:
        """Open a transaction in the stream's present epoch. StreamNotFound, StoreRejected."""
        return self._directory.run(lambda controller: controller.open_transaction(name, lease))

    def keep_transaction(self, name: StreamName, key: str, *, lease: float) -> bool:
        """Renew a transaction's lease; False if it is not open, or has been open for too long."""
        return self._directory.run(lambda controller: controller.keep_transaction(name, key, lease))

    def commit_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that a transaction is committed; False if it is aborted or not known."""
        return self._directory.run(lambda controller: controller.commit_transaction(name, key))

    def abort_transaction(self, name: StreamName, key: str) -> bool:
        """Decide that a transaction is aborted; False if it is committed or not known."""
        return self._directory.run(lambda controller: controller.abort_transaction(name, key))

    def transaction(self, name: StreamName, key: str) -> TransactionState:
        """Return the state of a transaction."""
        return self._directory.run(lambda controller: controller.transaction(name, key))

    def settled(self, name: StreamName, key: str) -> TransactionState:
        """Wait for a decided commit or abort, then return the state. StoreTimeout."""

        async def settled(controller: ControllerClient) -> TransactionState:
            deadline = time.monotonic() + self._timeouts.call
            while (state := await controller.transaction(name, key)).is_passing:
                if time.monotonic() > deadline:
                    raise StoreTimeout(
                        f"transaction {key} of {name} was {state} for {self._timeouts.call:g} s"
                    )
                await asyncio.sleep(_POLL)
            return state

        return self._directory.run(settled)

    def reader_group(self, group: GroupName) -> GroupConfig | None:
        """Return the configuration of a reader group; None if there is no such group."""
        return self._directory.run(lambda controller: groups.config(controller, group))

    def group_state(self, group: GroupName) -> GroupState:
        """Return the positions up to which a reader group has read.

        Raises:
            ReaderGroupNotFound: there is no such group, or it is still being made.
            ProtocolError: the state is larger than `MOST_STATE`, or was written by a client of a
                version that Sluice does not know.
        """
        name = self._state_of(group)
        (info,) = self.infos([name])
        if info is not None:
            size = info.length - info.start
            if size > MOST_STATE:
                raise ProtocolError(f"the state of the reader group {group} is of {size} bytes")
            state = group_state.read(joined(self.read(name, info.start, info.length)))
            if state is not None:
                return state
        raise ReaderGroupNotFound(f"the reader group {group} is being made, or has gone")

    def create_reader_group(
        self,
        group: GroupName,
        start: Mapping[StreamName, Mapping[int, int]],
        *,
        settings: GroupSettings,
        identity: UUID,
    ) -> bool:
        """Make a reader group that begins at a cut of each stream; see `ReaderGroups`."""
        made = self._directory.run(
            lambda controller: groups.make(
                controller, group, start, settings=settings, identity=identity
            )
        )
        same = made.start == start and made.endless
        begun = False
        # A group without a first record cannot even be deleted by clients. So write it also for a
        # group of this copy that begins elsewhere. A group that was configured anew (its generation
        # is not 0) had its first record then.
        if (same or same_maker(made.identity, identity)) and not made.generation:
            record = group_state.first_record(
                made.start, settings=made.settings, identity=made.identity
            )
            begun = self.append_at(self._state_of(group), 0, record)
        if not same:
            raise ReaderGroupExists(f"there is a reader group {group}, which began somewhere else")
        return begun

    def _state_of(self, group: GroupName) -> str:
        """Return the name of the segment that holds a group's state. ReaderGroupNotFound."""
        stream = group_state.stream_of(group)
        try:
            found = self._directory.run(lambda controller: controller.current_segments(stream))
        except StreamNotFound:
            found = ()
        if len(found) != 1:
            raise ReaderGroupNotFound(f"there is no reader group {group}, or it is being deleted")
        return names.segment_name(stream, found[0].id)
