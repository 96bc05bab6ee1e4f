"""Scopes and streams of a stream store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sluice.core.values.model import (
    KeyRange,
    ScaleType,
    Segment,
    StreamConfig,
    StreamName,
    TransactionState,
)
from sluice.errors import (
    ScopeNotEmpty,
    ScopeNotFound,
    StoreRejected,
    StoreUnavailable,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.reading import Stream
from support.model.world import Fate, ModelStream, World, segment_name, uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")


class ModelCatalog:
    """A `sluice.stores.base.Catalog` over a World.

    Args:
        world: the world that the catalog shows.
        gate: callback before each call; it returns the call's fate.
    """

    def __init__(self, world: World, gate: Callable[[str], Fate] = lambda _: Fate.DONE) -> None:
        self._world = world
        self._gate = gate

    def _call(self, what: str, action: Callable[[], T]) -> T:
        fate = self._gate(what)
        if fate is Fate.REQUEST_LOST:
            raise StoreUnavailable(what)
        value = action()
        if fate is Fate.REPLY_LOST:
            raise StoreUnavailable(what)
        return value

    def describe(self, name: StreamName) -> Stream | None:
        """See Catalog."""

        def act() -> Stream | None:
            there = self._world.streams.get(name)
            if there is None:
                return None
            return Stream(there.config, there.made[0], there.segments, there.sealed)

        return self._call(f"describe {name}", act)

    def generations(
        self, name: StreamName, since: Sequence[Segment] = ()
    ) -> tuple[tuple[Segment, ...], ...]:
        """See Catalog."""

        def act() -> tuple[tuple[Segment, ...], ...]:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            stream = self._world.streams[name]
            return stream.since(since) if since else tuple(stream.made)

        return self._call(f"generations {name}", act)

    def had(self, name: StreamName, segment: int) -> bool:
        """See Catalog."""

        def act() -> bool:
            stream = self._world.streams.get(name)
            return stream is not None and segment in stream.past

        return self._call(f"had {name} {segment}", act)

    def configuration(self, name: StreamName) -> StreamConfig | None:
        """See Catalog."""
        there = self._world.streams.get
        return self._call(
            f"configuration {name}", lambda: found.config if (found := there(name)) else None
        )

    def scope_exists(self, scope: str) -> bool:
        """See Catalog."""
        return self._call(f"scope_exists {scope}", lambda: scope in self._world.scopes)

    def create_scope(self, scope: str) -> bool:
        """See Catalog."""

        def act() -> bool:
            new = scope not in self._world.scopes
            self._world.scopes.add(scope)
            return new

        return self._call(f"create_scope {scope}", act)

    def delete_scope(self, scope: str) -> bool:
        """See Catalog."""

        def act() -> bool:
            if any(name.scope == scope for name in (*self._world.streams, *self._world.tables)):
                self._world.refusals += 1
                raise ScopeNotEmpty(scope)
            there = scope in self._world.scopes
            self._world.scopes.discard(scope)
            return there

        return self._call(f"delete_scope {scope}", act)

    def list_scopes(self) -> list[str]:
        """See Catalog."""
        return self._call("list_scopes", lambda: sorted(self._world.scopes))

    def list_streams(
        self,
        scope: str,
        tag: str | None = None,
        *,
        internal: bool = False,
        most: int | None = None,
    ) -> list[str]:
        """See Catalog."""

        def act() -> list[str]:
            if scope not in self._world.scopes:
                raise ScopeNotFound(scope)
            return sorted(
                name.stream
                for name, stream in self._world.streams.items()
                if name.scope == scope
                and (tag is None or tag in stream.config.tags)
                and ((internal and tag is None) or not name.stream.startswith("_"))
            )[:most]

        return self._call(f"list_streams {scope} {tag}", act)

    def list_key_value_tables(self, scope: str) -> list[str]:
        """See Catalog."""

        def act() -> list[str]:
            if scope not in self._world.scopes:
                raise ScopeNotFound(scope)
            return sorted(table.stream for table in self._world.tables if table.scope == scope)

        return self._call(f"list_key_value_tables {scope}", act)

    def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """See Catalog."""

        def act() -> bool:
            if name.scope not in self._world.scopes:
                raise ScopeNotFound(name.scope)
            if name in self._world.streams:
                return False
            ranges = uniform(config.scaling.min_segments)
            segments = self._world.new_segments(name, ranges, epoch=0)
            self._world.streams[name] = ModelStream(config, segments)
            return True

        return self._call(f"create_stream {name}", act)

    def update_stream(
        self,
        name: StreamName,
        config: StreamConfig,
        *,
        until_listed: str | None = None,  # noqa: ARG002 - an update ends at once here
    ) -> None:
        """See Catalog."""

        def act() -> None:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            stream = self._world.streams[name]
            if stream.sealed:
                raise StoreRejected(f"{name}: STREAM_SEALED")
            stream.config = config
            count, least = len(stream.segments), config.scaling.min_segments
            fixed = config.scaling.type is ScaleType.FIXED
            if count < least or (fixed and count != least):
                self._world.scale(name, least)

        self._call(f"update_stream {name}", act)

    def scale(self, name: StreamName, sealed: Iterable[int], ranges: Sequence[KeyRange]) -> None:
        """See Catalog."""
        ended = set(sealed)

        def act() -> None:
            stream = self._world.streams.get(name)
            active = {} if stream is None else {s.id: s.keys for s in stream.segments}
            if stream is None or stream.sealed or not ended <= set(active):
                raise StoreRejected(f"{name}: PRECONDITION_FAILED")
            if len(active) - len(ended) + len(ranges) < stream.config.scaling.min_segments:
                raise StoreRejected(f"{name}: PRECONDITION_FAILED, the policy wants more segments")
            assert _edges(active[one] for one in ended) == _edges(ranges), "other keys"
            self._world.replace(name, ended, ranges)

        self._call(f"scale {name}", act)

    def truncate_stream(self, name: StreamName, cut: Mapping[int, int]) -> None:
        """See Catalog. Only a cut at the segments that take events is accepted."""

        def act() -> None:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            assert cut == {segment.id: 0 for segment in self._world.streams[name].segments}
            self._world.truncate(name)

        self._call(f"truncate_stream {name}", act)

    def seal_stream(self, name: StreamName) -> None:
        """See Catalog."""

        def act() -> None:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            stream = self._world.streams[name]
            stream.sealed = True
            for transaction in stream.transactions.values():
                if transaction.state is TransactionState.OPEN:
                    self._world.drop(name, transaction)
            for segment in stream.readable:
                self._world.segments[segment_name(name, segment.id)].sealed = True

        self._call(f"seal_stream {name}", act)

    def delete_stream(self, name: StreamName) -> bool:
        """See Catalog."""

        def act() -> bool:
            stream = self._world.streams.get(name)
            if stream is None:
                return False
            if not stream.sealed:
                raise StreamNotSealed(str(name))
            for segment in stream.readable:
                del self._world.segments[segment_name(name, segment.id)]
            del self._world.streams[name]
            return True

        return self._call(f"delete_stream {name}", act)


def _edges(ranges: Iterable[KeyRange]) -> list[tuple[float, float]]:
    """Return the keys that ranges take together, as the ends of each stretch without gaps."""
    found: list[tuple[float, float]] = []
    for keys in sorted(ranges, key=lambda keys: keys.low):
        if found and found[-1][1] == keys.low:
            found[-1] = (found[-1][0], keys.high)
        else:
            found.append((keys.low, keys.high))
    return found
