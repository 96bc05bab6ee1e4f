"""Segments of a stream store in memory, and the whole store with the catalog."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from zlib import crc32

from sluice.core.values.groups import GroupConfig, GroupState
from sluice.core.values.model import SegmentInfo, StoreHealth, StreamName
from sluice.errors import (
    ConditionFailed,
    InvalidEventNumber,
    NoSuchSegment,
    ReaderGroupExists,
    ReaderGroupNotFound,
    ScopeNotFound,
    SegmentSealed,
    SegmentTruncated,
    StoreRejected,
    StoreUnavailable,
)
from sluice.stores.reading import Block
from support.model.tails import ModelTails
from support.model.transactions import ModelTransactions
from support.model.world import (
    CREATION_TIME,
    EPOCH,
    EVENT_COUNT,
    Fate,
    ModelGroup,
    ModelSegment,
    World,
    number_of,
    segment_name,
    transaction_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from sluice.core.values.groups import GroupName, GroupSettings
    from sluice.core.values.model import KeyRange
    from sluice.stores.reading import Buffer, Flow
    from sluice.stores.writing import CompareAndSet


class ModelStore(ModelTransactions):
    """A `sluice.stores.base.Store` over a World.

    Args:
        world: the world that the store shows.
        gate: callback before each call; it returns the call's fate.
        block: most bytes in a block that a read yields.
    """

    event_count = EVENT_COUNT
    creation_time = CREATION_TIME

    def __init__(
        self, world: World, gate: Callable[[str], Fate] = lambda _: Fate.DONE, *, block: int = 32
    ) -> None:
        super().__init__(world, gate)
        self._block = block

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
        return transaction_name(stream, segment, key)

    def read_cut(self, text: str) -> tuple[StreamName, dict[int, int]]:
        """See Store."""
        scope, stream, *pairs = text.split("/")
        cut = dict(tuple(map(int, pair.split("="))) for pair in pairs)
        return StreamName(scope=scope, stream=stream), cut

    def write_cut(self, stream: StreamName, cut: Mapping[int, int]) -> str:
        """See Store."""
        return "/".join([str(stream), *(f"{segment}={at}" for segment, at in cut.items())])

    def following(
        self, segments: Sequence[int], made: Sequence[Sequence[KeyRange]]
    ) -> list[tuple[int, ...]]:
        """See Store."""
        epoch, number = divmod(max(segments), EPOCH)
        number = max(segment % EPOCH for segment in segments)
        ids = []
        for ranges in made:
            epoch += 1
            places = self._world.numbered(ranges)
            ids.append(tuple(epoch * EPOCH + number + 1 + place for place in places))
            number += len(ranges)
        return ids

    def is_original(self, segment: int) -> bool:
        """See Store."""
        return segment < EPOCH

    def place_of(self, key: str) -> float:
        """See Store."""
        return crc32(key.encode()) / (1 << 32)

    def is_beside(self, one: int, other: int) -> bool:
        """See Store."""
        return one % EPOCH == other % EPOCH

    def probe(self) -> StoreHealth:
        """See Store."""
        return self._call("probe", lambda: StoreHealth(latency=0.0, protocol=1))

    def close(self) -> None:
        """See Store."""

    # -- reader groups

    def reader_group(self, group: GroupName) -> GroupConfig | None:
        """See Store."""
        there = self._world.groups.get
        return self._call(
            f"group {group}", lambda: found.config if (found := there(group)) else None
        )

    def group_state(self, group: GroupName) -> GroupState:
        """See Store."""

        def act() -> GroupState:
            there = self._world.groups.get(group)
            if there is None or there.state is None:
                raise ReaderGroupNotFound(str(group))
            return there.state

        return self._call(f"group state {group}", act)

    def create_reader_group(
        self,
        group: GroupName,
        start: Mapping[StreamName, Mapping[int, int]],
        *,
        settings: GroupSettings,
        identity: UUID,
    ) -> bool:
        """See Store."""
        wanted = {stream: dict(cut) for stream, cut in start.items()}

        def act() -> None:
            if group.scope not in self._world.scopes:
                raise ScopeNotFound(group.scope)
            config = GroupConfig(settings, tuple(wanted))
            made = ModelGroup(config, None, wanted, identity)
            if self._world.groups.setdefault(group, made).start != wanted:
                raise ReaderGroupExists(str(group))

        def begin() -> bool:
            there = self._world.groups[group]
            begun = there.state is not None
            there.state = there.state or GroupState((), wanted, {})
            return not begun

        self._call(f"create group {group}", act)
        return self._call(f"begin group {group}", begin)

    # -- segments

    def digests(self, name: str) -> Mapping[int, bytes]:  # noqa: ARG002 - no digests are kept
        """See Segments."""
        return {}

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

    def set_attribute(self, name: str, condition: CompareAndSet) -> bool:
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

    def truncate_segment(self, name: str, offset: int) -> None:
        """See Segments."""

        def act() -> None:
            there = self._segment(name)
            if offset > len(there.data):
                raise StoreRejected(f"{name} has no byte {offset}")
            there.start = max(there.start, offset)

        self._call(f"truncate {name} {offset}", act)

    def delete(self, name: str, *, length: int | None = None) -> bool:
        """See Segments. The real store breaks when a client deletes a merged segment.

        Without a length this is a look and a deletion, with a call between them. With a length the
        model leaves out this gap, which docs/protocol.md lists under what is not guaranteed.
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

    def merge(
        self,
        target: str,
        source: str,
        condition: CompareAndSet,
        *,
        events: int = 0,
        notes: Sequence[tuple[UUID, int]] = (),
    ) -> None:
        """See Segments."""

        def act() -> None:
            into, there = self._segment(target), self._segment(source)
            assert number_of(target) == number_of(source), "perhaps not in one place"
            if into.attributes.get(condition.attribute) != condition.expected:
                raise ConditionFailed(f"{target} has another value", segment=target)
            if into.sealed:
                raise SegmentSealed(f"{target} is sealed", segment=target)
            assert there.sealed, f"{source} is merged before it is sealed"
            into.data += there.data
            into.attributes[condition.attribute] = condition.new
            into.attributes[EVENT_COUNT] += events
            into.attributes |= dict(notes)
            del self._world.segments[source]
            self._world.merged.add(source)
            self._world.kept.add(source)

        self._call(f"merge {target} <- {source}", act)

    def read(
        self,
        name: str,
        start: int,
        end: int,
        *,
        flow: Flow | None = None,
        ahead: int | None = None,  # noqa: ARG002 - the model reads nothing ahead
    ) -> Iterator[Block]:
        """See Segments."""
        at = start
        while at < end:
            take = min(self._block, end - at)
            if flow is not None:
                take = flow.take(take)

            def act(at: int = at, take: int = take) -> Block:
                there = self._segment(name)
                if at < there.start:
                    raise SegmentTruncated(
                        f"{name} begins at {there.start}", segment=name, start_offset=there.start
                    )
                data = bytes(there.data[at : at + take])
                if len(data) < take:  # the real store waits for more bytes until the deadline
                    raise StoreUnavailable(f"{name} has nothing at {at + len(data)}")
                return Block(at, memoryview(data))

            yield self._call(f"read {name} [{at}, {at + take})", act)
            at += take

    @contextmanager
    def tails(self, *, most: int) -> Iterator[ModelTails]:
        """See TailReader."""
        assert most > 0
        yield ModelTails(self._world, self._call, self._block)

    @contextmanager
    def appender(self, name: str, *, writer: UUID, window: int) -> Iterator[ModelAppender]:
        """See Segments."""
        assert window > 0
        last = self._call(f"setup {name}", lambda: self._segment(name).attributes.get(writer))
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


class ModelAppender:
    """A fenced append: the store compares the last event number that this connection knows."""

    def __init__(self, store: ModelStore, name: str, writer: UUID, last: int | None) -> None:
        self.last = last
        self.acknowledged = last
        self.offset: int | None = None
        self._store = store
        self._name = name
        self._writer = writer
        self._sent = False

    def append(self, data: Buffer, *, event_number: int, events: int = 1) -> None:
        """See Appender."""
        assert events > 0

        def act() -> None:
            there = self._store._segment(self._name)
            if there.attributes.get(self._writer) != self.acknowledged:
                raise InvalidEventNumber(f"{self._name} was written", segment=self._name)
            if there.sealed:
                raise SegmentSealed(f"{self._name} is sealed", segment=self._name)
            there.data += data
            there.attributes[self._writer] = event_number
            there.attributes[EVENT_COUNT] += events
            self.acknowledged = event_number
            self.offset = len(there.data)

        self._store._call(f"append {self._name} +{len(data)} -> {event_number}", act)
        self._sent = True

    def has_room(self, size: int) -> bool:  # noqa: ARG002 - a window takes one block here
        """See Appender."""
        return not self._sent

    def pump(self) -> None:
        """See Appender."""
        self._sent = False

    def flush(self) -> None:
        """See Appender."""
        self._sent = False
