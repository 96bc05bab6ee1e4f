"""The copy protocol against an adversary that also truncates the source."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import REQUEST, put_scaled_source
from support.model import EVENT_COUNT, segment_name
from support.search import run_machine, searches
from unit.engine.copy.test_protocol_machine import MANY, Protocol

if TYPE_CHECKING:
    from sluice.core.values.model import Segment
    from support.engine.actors import Actor

STREAM, ORIGIN, START = identity.origin_attributes(COPY)


def edges(data: bytes) -> list[int]:
    """Return the offsets at which events begin, and the end."""
    found = [0]
    while found[-1] < len(data):
        (size,) = struct.unpack_from(">i", data, found[-1] + 4)
        found.append(found[-1] + 8 + size)
    return found


class Truncated(Protocol):
    """Drivers and aborts of a copy with onTruncation: Record, whose source is truncated."""

    @initialize(
        shapes=st.lists(
            st.lists(st.integers(0, 40), min_size=1, max_size=6), min_size=1, max_size=3
        ),
        moves=st.lists(
            st.tuples(st.sampled_from(["split", "merge", "truncate"]), st.integers(0, 3)),
            max_size=3,
        ),
        divided=st.booleans(),
    )
    def source(  # type: ignore[override]
        self, shapes: list[list[int]], moves: list[tuple[str, int]], *, divided: bool
    ) -> None:
        """Make a source of a few segments, scaled or not, in one or more parts each."""
        put_scaled_source(self.world, shapes, moves)
        self.request = REQUEST.model_copy(update={"on_truncation": "Record"})
        self.held: dict[int, bytes] = {}
        self.begins: dict[int, set[int]] = {}
        self.order: list[int] = []
        self.remember()
        self.divided = divided
        self.told = None
        for _ in range(2):
            self.driver()

    def remember(self) -> None:
        """Remember the source's content, since an adversary may truncate it."""
        for segment in self.world.streams[SOURCE].readable:
            there = self.world.segments[segment_name(SOURCE, segment.id)]
            self.held[segment.id] = bytes(there.data)
            self.begins.setdefault(segment.id, set()).add(there.start)
            if segment.id not in self.order:
                self.order.append(segment.id)

    def take(self, place: int, event: int) -> None:
        """Truncate events up to this one from a segment of the head."""
        head = self.world.streams[SOURCE].made[0]
        there = self.world.segments[segment_name(SOURCE, head[place % len(head)].id)]
        begin = edges(bytes(there.data))
        there.start = max(there.start, begin[event % len(begin)])
        self.world.history.append(f"truncated to {there.start}")
        self.remember()

    @rule(
        actor=Protocol.actors,
        kind=st.sampled_from(["create ", "setup", "read", "append ", "set_attribute", "append_at"]),
        again=st.integers(0, 3),
        event=st.integers(1, 6),
        how=st.sampled_from(["events", "events", "events", "events", "drop", "leave"]),
    )
    def overtake(self, actor: Actor, kind: str, again: int, event: int, how: str) -> None:
        """Truncate the source's first bytes while a driver is held up."""
        for _ in range(again):
            self.held_up(actor, kind)
        if how == "leave":
            self.leave_behind()
        elif how == "drop":
            self.drop()
        for place in range(len(self.world.streams[SOURCE].made[0])):
            self.take(place, event)

    def held_up(self, actor: Actor, kind: str) -> None:
        """Move an actor beyond its next call of a kind."""
        for _ in range(MANY):
            if not actor.alive or actor.pending.startswith(kind):
                break
            self.step(actor)
        self.step(actor)

    def drop(self) -> None:
        """Truncate all segments that take no more events."""
        for segment in self.world.streams[SOURCE].readable:
            self.begins[segment.id].add(len(self.held[segment.id]))
        self.world.truncate(SOURCE)
        self.world.history.append("truncated to the tail")

    def leave_behind(self) -> None:
        """Scale the source, and truncate it past all planned bytes."""
        ended = {segment.id for segment in self.world.streams[SOURCE].segments}
        self.world.replace(SOURCE, ended, [KeyRange(low=0, high=1)])
        self.remember()
        self.drop()

    def filled(self) -> list[tuple[Segment, bytes, int, int]]:
        """Return the target's published segments: bytes, source segment, and first offset."""
        found = []
        for segment in self.world.streams[TARGET].readable:
            there = self.world.segments[segment_name(TARGET, segment.id)]
            if identity.publish_attribute(COPY) in there.attributes and (
                there.attributes[identity.publish_attribute(COPY)] != identity.ABORTED
            ):
                origin, start = there.attributes[ORIGIN], there.attributes[START]
                found.append((segment, bytes(there.data), origin, start))
        return found

    @invariant()
    def only_whole_segments_are_readable(self) -> None:
        """Check that a reader sees of a segment all that its source had at some moment."""
        if TARGET not in self.world.streams:
            return
        found = self.filled()
        assert sum(len(data) for _, data, _, _ in found) == sum(map(len, self.readable()))
        for segment, data, origin, start in found:
            assert start in self.begins[origin], f"segment {segment.id} begins at {start}"
            assert data == self.held[origin][start:], f"segment {segment.id} holds {data!r}"
        places = [self.order.index(origin) for _, _, origin, _ in found]
        assert sorted(set(places)) == sorted(places)

    def readable(self) -> list[bytes]:
        """Return the readable bytes of the target."""
        return self.world.bytes_of(TARGET)

    @invariant()
    def staging_holds_beginnings(self) -> None:
        """Check that staged bytes are a stretch of one source segment from a part's begin."""
        wholes = list(self.held.values())
        for name in self.world.staging():
            data = bytes(self.world.segments[name].data)
            if data and not data.startswith(b"\0\0\0\0\0\0") and b'{"record"' not in data[:20]:
                assert any(data in whole for whole in wholes), name

    def assert_whole(self) -> None:
        """Check that the target has all planned bytes that are left, and the end of each gap."""
        self.only_whole_segments_are_readable()
        found = self.filled()
        assert len(found) == len(self.world.streams[TARGET].readable)
        for _, _, origin, start in found:
            there = self.world.segments.get(segment_name(SOURCE, origin))
            assert there is None or start <= there.start, f"{origin} lacks bytes that are there"

    @invariant()
    def complete_means_complete(self) -> None:
        """Check that a target marked whole is whole, and that its count of events is right."""
        stream = self.world.streams.get(TARGET)
        if stream is None or identity.completed(stream.config.tags, COPY) is None:
            return
        self.assert_whole()
        for segment, data, _, _ in self.filled():
            there = self.world.segments[segment_name(TARGET, segment.id)]
            assert there.attributes[EVENT_COUNT] == len(edges(data)) - 1


@searches
def test_a_truncated_source_is_copied_exactly_whatever_the_scheduler_does() -> None:
    """The copy of a source that loses bytes has one gap in a segment, and all bytes behind it."""
    run_machine(Truncated, examples=6, steps=60)
