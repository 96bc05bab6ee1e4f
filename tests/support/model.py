"""A stream store in memory.

Every call first asks a gate what becomes of it, so that a test can lose requests and replies, and
can let others act in between. What the model does is what the contract tests show of the real
store.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from sluice.core.model import (
    Health,
    KeyRange,
    ScaleType,
    Segment,
    SegmentInfo,
    StreamConfig,
    StreamName,
)
from sluice.errors import (
    ConditionFailed,
    InvalidEventNumber,
    NoSuchSegment,
    ScopeNotEmpty,
    ScopeNotFound,
    SegmentSealed,
    SegmentTruncated,
    StoreRejected,
    StoreUnavailable,
    StreamNotFound,
    StreamNotSealed,
)
from sluice.stores.base import Block, Condition, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluice.stores.base import Buffer

EVENT_COUNT = UUID(int=1)
CREATION_TIME = UUID(int=2)
_EPOCH = 1 << 32

T = TypeVar("T")


class Fate(Enum):
    """What becomes of a call."""

    DONE = "done"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"


@dataclass
class ModelSegment:
    """A segment's bytes, attributes and writers."""

    data: bytearray = field(default_factory=bytearray)
    start: int = 0
    sealed: bool = False
    attributes: dict[UUID, int] = field(default_factory=dict)
    writers: dict[UUID, int] = field(default_factory=dict)


@dataclass
class ModelStream:
    """A stream's configuration and segments; `before` are older ones that are readable still."""

    config: StreamConfig
    segments: tuple[Segment, ...]
    sealed: bool = False
    epoch: int = 0
    before: tuple[Segment, ...] = ()


class World:
    """What all actors see: scopes, streams, segments, and the history of calls."""

    def __init__(self) -> None:
        self.scopes: set[str] = {"in", "out"}
        self.streams: dict[StreamName, ModelStream] = {}
        self.segments: dict[str, ModelSegment] = {}
        self.numbers: defaultdict[StreamName, int] = defaultdict(int)
        self.time = 1_000
        self.history: list[str] = []
        self.merged: set[str] = set()
        self.rescales = False  # whether an update brings a fixed number of segments about
        self.refusals = 0  # to delete a scope, which damage the real store
        self.kept: set[str] = set()  # deleted names, which the store gives back only much later

    def bytes_of(self, name: StreamName) -> list[bytes]:
        """The readable bytes of each segment of a stream, in key order."""
        stream = self.streams[name]
        return [
            bytes(self.segments[segment_name(name, segment.id)].data) for segment in stream.segments
        ]

    def scale(self, name: StreamName, count: int, *, truncate: bool = False) -> None:
        """Give a stream so many new segments, and drop the old ones if it is truncated as well."""
        stream = self.streams[name]
        stream.epoch += 1
        old = stream.segments
        stream.segments = self.new_segments(name, count, epoch=stream.epoch)
        if truncate:
            for segment in (*stream.before, *old):
                self.segments.pop(segment_name(name, segment.id), None)
            stream.before = ()
        else:
            stream.before = stream.before or old

    def new_segments(self, name: StreamName, count: int, *, epoch: int) -> tuple[Segment, ...]:
        """Segments with uniform key ranges."""
        first = epoch * _EPOCH + self.numbers[name]
        self.numbers[name] += count
        segments = tuple(
            Segment(id=first + i, keys=KeyRange(low=i / count, high=(i + 1) / count))
            for i in range(count)
        )
        for segment in segments:
            self.time += 1
            self.segments[segment_name(name, segment.id)] = ModelSegment(
                attributes={CREATION_TIME: self.time, EVENT_COUNT: 0}
            )
        return segments

    def staging(self) -> list[str]:
        """Names of all segments that belong to no stream."""
        owned = {
            segment_name(name, segment.id)
            for name, stream in self.streams.items()
            for segment in (*stream.before, *stream.segments)
        }
        return sorted(set(self.segments) - owned)


def segment_name(stream: StreamName, segment: int) -> str:
    """The name of a stream's segment."""
    return f"{stream}/{segment}"


class ModelStore:
    """A `sluice.stores.base.Store` over a World.

    Args:
        world: what it shows.
        gate: asked before each call what becomes of it.
        block: most bytes in a block that is read.
    """

    event_count = EVENT_COUNT
    creation_time = CREATION_TIME

    def __init__(
        self, world: World, gate: Callable[[str], Fate] = lambda _: Fate.DONE, *, block: int = 32
    ) -> None:
        self._world = world
        self._gate = gate
        self._block = block

    def _call(self, what: str, action: Callable[[], T]) -> T:
        fate = self._gate(what)
        if fate is Fate.REQUEST_LOST:
            raise StoreUnavailable(what)
        value = action()
        if fate is Fate.REPLY_LOST:
            raise StoreUnavailable(what)
        return value

    def _segment(self, name: str) -> ModelSegment:
        if name not in self._world.segments:
            raise NoSuchSegment(f"no segment {name}", segment=name)
        return self._world.segments[name]

    # -- names

    def segment_name(self, stream: StreamName, segment: int) -> str:
        """See Store."""
        return segment_name(stream, segment)

    def staging_name(self, stream: StreamName, segment: int, key: str) -> str:
        """See Store."""
        return f"{segment_name(stream, segment)}#{key}"

    def is_original(self, segment: int) -> bool:
        """See Store."""
        return segment < _EPOCH

    def probe(self) -> Health:
        """See Store."""
        return Health(latency=0.0, protocol=1)

    def close(self) -> None:
        """See Store."""

    # -- segments

    def infos(self, names: Sequence[str]) -> list[SegmentInfo | None]:
        """See Segments."""

        def one(name: str) -> SegmentInfo | None:
            there = self._world.segments.get(name)
            if there is None:
                return None
            return SegmentInfo(start=there.start, length=len(there.data), sealed=there.sealed)

        return self._call(f"infos {len(names)}", lambda: [one(name) for name in names])

    def attributes(self, asked: Sequence[tuple[str, UUID]]) -> list[int | None]:
        """See Segments."""

        def one(name: str, attribute: UUID) -> int | None:
            there = self._world.segments.get(name)
            return None if there is None else there.attributes.get(attribute)

        return self._call(f"attributes {len(asked)}", lambda: [one(*ask) for ask in asked])

    def set_attribute(self, name: str, condition: Condition) -> bool:
        """See Segments."""

        def act() -> bool:
            if self._segment(name).sealed:
                raise SegmentSealed(f"{name} is sealed", segment=name)
            attributes = self._segment(name).attributes
            if attributes.get(condition.attribute) != condition.expected:
                return False
            attributes[condition.attribute] = condition.new
            return True

        return self._call(f"set_attribute {name} {condition.new}", act)

    def create(self, name: str) -> bool:
        """See Segments."""

        def act() -> bool:
            if name in self._world.segments or name in self._world.kept:
                return False
            self._world.time += 1
            self._world.segments[name] = ModelSegment(
                attributes={CREATION_TIME: self._world.time, EVENT_COUNT: 0}
            )
            return True

        return self._call(f"create {name}", act)

    def seal(self, name: str) -> None:
        """See Segments."""

        def act() -> None:
            self._segment(name).sealed = True

        self._call(f"seal {name}", act)

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """See Segments. The real store breaks when it is told to delete what was merged.

        A look and a deletion with a call between them; with a length, the gap is left out, which
        docs/protocol.md lists under what is not guaranteed.
        """
        if length is None and self.infos([name]) == [None]:
            return False

        def act() -> bool:
            there = self._world.segments.get(name)
            if length is not None and (there is None or len(there.data) != length):
                return False
            assert there is not None or name not in self._world.merged, f"{name} was merged"
            if there is not None and there.data:
                self._world.kept.add(name)
            return self._world.segments.pop(name, None) is not None

        return self._call(f"delete {name}", act)

    def merge(self, target: str, source: str, condition: Condition, *, events: int = 0) -> None:
        """See Segments."""

        def act() -> None:
            into, there = self._segment(target), self._segment(source)
            if into.attributes.get(condition.attribute) != condition.expected:
                raise ConditionFailed(f"{target} has another value", segment=target)
            if into.sealed:
                raise SegmentSealed(f"{target} is sealed", segment=target)
            assert there.sealed, f"{source} is merged before it is sealed"
            into.data += there.data
            into.attributes[condition.attribute] = condition.new
            into.attributes[EVENT_COUNT] += events
            del self._world.segments[source]
            self._world.merged.add(source)
            self._world.kept.add(source)

        self._call(f"merge {target} <- {source}", act)

    def read(self, name: str, start: int, end: int) -> Iterator[Block]:
        """See Segments."""
        at = start
        while at < end:
            take = min(self._block, end - at)

            def act(at: int = at, take: int = take) -> Block:
                there = self._segment(name)
                if at < there.start:
                    raise SegmentTruncated(
                        f"{name} begins at {there.start}", segment=name, start_offset=there.start
                    )
                data = bytes(there.data[at : at + take])
                if len(data) < take:  # the real store waits for more until the deadline
                    raise StoreUnavailable(f"{name} has nothing at {at + len(data)}")
                return Block(at, memoryview(data))

            yield self._call(f"read {name} [{at}, {at + take})", act)
            at += take

    @contextmanager
    def appender(self, name: str, *, writer: UUID, window: int) -> Iterator[ModelAppender]:
        """See Segments."""
        assert window > 0
        last = self._call(f"setup {name}", lambda: self._segment(name).writers.get(writer))
        yield ModelAppender(self, name, writer, last)

    def append_at(self, name: str, offset: int, data: bytes) -> bool:
        """See Segments."""

        def act() -> bool:
            there = self._segment(name)
            if len(there.data) != offset:
                return False
            there.data += data
            return True

        return self._call(f"append_at {name} {offset} +{len(data)}", act)

    # -- catalog

    def describe(self, name: StreamName) -> Stream | None:
        """See Catalog."""

        def act() -> Stream | None:
            there = self._world.streams.get(name)
            if there is None:
                return None
            return Stream(
                there.config, there.before or there.segments, there.segments, there.sealed
            )

        return self._call(f"describe {name}", act)

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
            if any(name.scope == scope for name in self._world.streams):
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
        self, scope: str, tag: str | None = None, *, internal: bool = False
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
            )

        return self._call(f"list_streams {scope} {tag}", act)

    def create_stream(self, name: StreamName, config: StreamConfig) -> bool:
        """See Catalog."""

        def act() -> bool:
            if name.scope not in self._world.scopes:
                raise ScopeNotFound(name.scope)
            if name in self._world.streams:
                return False
            segments = self._world.new_segments(name, config.scaling.min_segments, epoch=0)
            self._world.streams[name] = ModelStream(config, segments)
            return True

        return self._call(f"create_stream {name}", act)

    def update_stream(self, name: StreamName, config: StreamConfig) -> None:
        """See Catalog."""

        def act() -> None:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            stream = self._world.streams[name]
            if stream.sealed:
                raise StoreRejected(f"{name}: STREAM_SEALED")
            stream.config = config
            count = config.scaling.min_segments
            fixed = config.scaling.type is ScaleType.FIXED
            if self._world.rescales and fixed and len(stream.segments) != count:
                self._world.scale(name, count)

        self._call(f"update_stream {name}", act)

    def seal_stream(self, name: StreamName) -> None:
        """See Catalog."""

        def act() -> None:
            if name not in self._world.streams:
                raise StreamNotFound(str(name))
            stream = self._world.streams[name]
            stream.sealed = True
            for segment in (*stream.before, *stream.segments):
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
            for segment in (*stream.before, *stream.segments):
                del self._world.segments[segment_name(name, segment.id)]
            del self._world.streams[name]
            return True

        return self._call(f"delete_stream {name}", act)


class ModelAppender:
    """A fenced append: the store compares the last event number this connection knows."""

    def __init__(self, store: ModelStore, name: str, writer: UUID, last: int | None) -> None:
        self.last = last
        self.acknowledged = last
        self._store = store
        self._name = name
        self._writer = writer

    def append(self, data: Buffer, *, event_number: int) -> None:
        """See Appender."""

        def act() -> None:
            there = self._store._segment(self._name)
            if there.writers.get(self._writer) != self.acknowledged:
                raise InvalidEventNumber(f"{self._name} was written", segment=self._name)
            if there.sealed:
                raise SegmentSealed(f"{self._name} is sealed", segment=self._name)
            there.data += data
            there.writers[self._writer] = event_number
            there.attributes[EVENT_COUNT] += 1
            self.acknowledged = event_number

        self._store._call(f"append {self._name} +{len(data)} -> {event_number}", act)

    def flush(self) -> None:
        """See Appender."""
