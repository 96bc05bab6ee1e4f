"""A followed source and its target. The source is written to, scaled, truncated and sealed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.core.values import identity
from sluice.core.values.model import KeyRange
from sluice.errors import AbortRefused, CopyAborted, NoSuchSegment, StoreBusy, StoreUnavailable
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import events_of
from support.model import EVENT_COUNT, ModelStore, World, segment_name

if TYPE_CHECKING:
    from sluice.core.values.model import Segment

SIZES = st.lists(st.integers(8, 90), min_size=1, max_size=4)

EXPECTED = (AbortRefused, CopyAborted, NoSuchSegment, StoreBusy, StoreUnavailable)
"""Errors that may end an actor."""

LOST = ("SourceTruncated",)
"""Reasons of failures that lost bytes of the source cause."""

DAMAGE = (
    "DigestMismatch",
    "EventsDamaged",
    "IntegrityError",
    "JournalDamaged",
    "SourceReplaced",
    "SourceNotFound",
    "SourceUnsupported",
    "TargetExists",
)
"""Reasons that no driver may report while nothing is damaged."""


def events(data: bytes) -> list[bytes]:
    """Return the events in a segment's bytes. The last one may be incomplete."""
    found = []
    while data:
        length = 8 + struct.unpack_from(">i", data, 4)[0] if len(data) >= 8 else 8
        found.append(data[:length])
        data = data[length:]
    return found


class FollowedWorld(RuleBasedStateMachine):
    """The part of a state machine that changes the source, and checks the target against it.

    Attributes:
        world: the store of source and target.
        held: the bytes that each segment of the source ever held.
        foreign: for each segment of the target, the offset and length of other clients' bytes.
        record: whether the copy goes on without bytes that the source has lost.
        rescaled: whether several drivers have scaled the target at the same time.
        promised: the bytes of the target as of the first report that it is whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.seed = 1_000
        self.held: dict[int, bytes] = {}
        self.foreign: dict[int, list[tuple[int, int]]] = {}
        self.record = False
        self.rescaled = False
        self.promised: list[bytes] | None = None

    # The source and its writers, and another client

    def remember(self) -> None:
        """Record the bytes of the source, since a truncation may remove them."""
        for segment in self.readable:
            there = self.world.segments[segment_name(SOURCE, segment.id)]
            self.held[segment.id] = bytes(there.data)

    @property
    def readable(self) -> list[Segment]:
        """All segments of the source that the target must have, in order."""
        return self.world.streams[SOURCE].readable

    def goes_on(self) -> bool:
        """Tell whether the source still takes events."""
        return not self.world.streams[SOURCE].sealed

    @precondition(goes_on)
    @rule(place=st.integers(0, 3), sizes=SIZES)
    def write(self, place: int, sizes: list[int]) -> None:
        """Write to the source, as a writer does."""
        active = self.world.streams[SOURCE].segments
        there = self.world.segments[segment_name(SOURCE, active[place % len(active)].id)]
        self.seed += 1
        there.data += events_of(sizes, self.seed)
        there.attributes[EVENT_COUNT] += len(sizes)
        self.remember()

    @precondition(goes_on)
    @rule(place=st.integers(0, 3), sizes=SIZES, merges=st.booleans())
    def scale(self, place: int, sizes: list[int], *, merges: bool) -> None:
        """Scale the source, and write to it."""
        active = self.world.streams[SOURCE].segments
        place %= len(active)
        one = active[place]
        if merges and place + 1 < len(active):
            other = active[place + 1]
            whole = KeyRange(low=one.keys.low, high=other.keys.high)
            self.world.replace(SOURCE, {one.id, other.id}, [whole])
        elif len(active) < 4:
            middle = (one.keys.low + one.keys.high) / 2
            halves = [(one.keys.low, middle), (middle, one.keys.high)]
            ranges = [KeyRange(low=low, high=high) for low, high in halves]
            self.world.replace(SOURCE, {one.id}, ranges)
        self.world.history.append("source: scaled")
        self.write(place, sizes)

    @precondition(goes_on)
    @rule()
    def seal(self) -> None:
        """Seal the source."""
        self.world.history.append("source: sealed")
        ModelStore(self.world).seal_stream(SOURCE)

    @rule(place=st.integers(0, 3), event=st.integers(0, 5))
    def truncate(self, place: int, event: int) -> None:
        """Truncate the first events of a segment of the source."""
        one = self.readable[place % len(self.readable)]
        there = self.world.segments[segment_name(SOURCE, one.id)]
        sizes = [len(event) for event in events(bytes(there.data))]
        to = sum(sizes[: event % (len(sizes) + 1)])
        there.start = max(there.start, to)
        self.world.history.append(f"source: segment {one.id} truncated to {there.start}")

    @precondition(lambda self: TARGET in self.world.streams and self.promised is None)
    @rule(place=st.integers(0, 3), sizes=SIZES)
    def write_to_target(self, place: int, sizes: list[int]) -> None:
        """Write to the target, as another client does while the copy is live."""
        stream = self.world.streams[TARGET]
        one = stream.segments[place % len(stream.segments)]
        there = self.world.segments[segment_name(TARGET, one.id)]
        positions = {identity.position_attribute(COPY, one) for one in self.held}
        if not positions & there.attributes.keys() or there.sealed or self.stopped():
            return  # the copy is not live yet, or no longer
        self.seed += 1
        data = events_of(sizes, self.seed)
        self.foreign.setdefault(one.id, []).append((len(there.data), len(data)))
        self.world.history.append(f"another client: writes to {one.id} at {len(there.data)}")
        there.data += data

    def stopped(self) -> bool:
        """Tell whether the copy has ended. From then on any client may change the target."""
        records = (self.world.segments[name].data for name in self.world.staging())
        return self.is_whole() or any(b'"record":"stop"' in record for record in records)

    # Invariants

    def layouts(self) -> int:
        """Return the number of scale events of the target; 0 without a target."""
        stream = self.world.streams.get(TARGET)
        return 0 if stream is None else len(stream.ever)

    def is_whole(self) -> bool:
        """Tell whether the target's tags say that it is whole."""
        stream = self.world.streams.get(TARGET)
        return stream is not None and identity.completed(stream.config.tags, COPY) is not None

    @invariant()
    def the_target_holds_a_beginning(self) -> None:
        """Check that each target segment holds whole events of its source segment, in order, once.

        The target lacks only lost events. A segment has events only after its predecessors, which
        had its keys, are whole.
        """
        if TARGET not in self.world.streams or self.rescaled:
            return
        stream, theirs = self.world.streams[TARGET], self.world.streams[SOURCE]
        if not any(self.world.bytes_of(TARGET)):
            return
        assert len(stream.made) <= len(theirs.made), "scaled before its source"
        # A target whose name was used before has other ids.
        same = theirs.ever == theirs.made and stream.made[0] == theirs.made[0]
        for made, others in zip(stream.made, theirs.made, strict=False):
            assert [one.keys for one in made] == [one.keys for one in others]
            if same:
                assert [one.id for one in made] == [one.id for one in others]
        pairs = list(zip(stream.readable, theirs.readable, strict=False))
        whole = [self.is_beginning(ours.id, their.id) for ours, their in pairs]
        for (ours, _), ended in zip(pairs, whole, strict=True):
            assert ended or not self.followed_by_events(ours)

    def followed_by_events(self, segment: Segment) -> bool:
        """Tell whether later segments of the target with the same keys have data."""
        stream = self.world.streams[TARGET]
        place = next(i for i, made in enumerate(stream.made) if segment in made)
        return any(
            one.keys.overlaps(segment.keys) and self.has_data(one)
            for made in stream.made[place + 1 :]
            for one in made
        )

    def has_data(self, segment: Segment) -> bool:
        """Tell whether a segment of the target has bytes."""
        return bool(self.world.segments[segment_name(TARGET, segment.id)].data)

    def is_beginning(self, ours: int, theirs: int) -> bool:
        """Check a segment of the target. Return whether it has every byte its source ever held."""
        data = bytes(self.world.segments[segment_name(TARGET, ours)].data)
        for at, count in reversed(self.foreign.get(ours, [])):
            # Events in flight may arrive after another client's events, but still in order.
            data = data[:at] + data[at + count :]
        expected = events(self.held[theirs])
        lost = self.world.segments[segment_name(SOURCE, theirs)].start
        at = place = found = 0
        for event in events(data):
            while place < len(expected) and expected[place] != event:
                # A copy begins where its source began when it was planned.
                assert self.record or not found, f"{theirs}: left out or torn at {at}"
                assert at < lost, f"{theirs}: an event is left out that is not lost, at {at}"
                at += len(expected[place])
                place += 1
            assert place < len(expected), f"{theirs}: an event is there twice, or is not its own"
            at += len(event)
            place, found = place + 1, found + 1
        return at >= max(lost, len(self.held[theirs])) or (
            (self.record or not found) and at < lost == len(self.held[theirs])
        )

    def has_lost(self) -> bool:
        """Tell whether the source was truncated, in a copy that does not record such gaps."""
        return not self.record and any(
            self.world.segments[segment_name(SOURCE, one.id)].start for one in self.readable
        )
