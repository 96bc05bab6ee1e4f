"""Sources of any content: long events, plain bytes, many events at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.follow.cutting import Cut, Cutter, EventPiece
from sluice.core.follow.rows import proved
from sluice.core.values import identity
from sluice.engine.copy.report import Outcome
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import events_of, put_source
from support.model import EVENT_COUNT, ModelStore, World, segment_name
from unit.engine.follow.test_follow import FOLLOW, RECORD, killed, nothing, run, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from sluice.core.copy.journal import Journal

LONGEST = 40
"""Most bytes of an event that is appended here."""


def staged(world: World) -> list[bytes]:
    """Return the staged bytes of single events."""
    keys = [identity.event_key(COPY, at) for at in range(300)]
    names = [ModelStore(world).staging_name(TARGET, 0, key) for key in keys]
    return [bytes(world.segments[name].data) for name in names if name in world.segments]


def count(world: World) -> int:
    """Return the store's count of the events in the target's first segment."""
    return world.segments[segment_name(TARGET, 0)].attributes[EVENT_COUNT]


def test_a_long_event_is_staged_and_merged_between_its_neighbours() -> None:
    """Each event is there once, in order and counted, and no byte stays staged."""
    world = World()
    (first,) = put_source(world, [20])
    sizes = [9, 90, 200, 5, 41, 33]
    report = run(
        world, nothing, lambda: write(world, 0, sizes, 7), nothing, longest=LONGEST, rounds=20
    )
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [first + events_of(sizes, 7)]
    assert count(world) == report.events == 7
    assert len(world.merged) == 1 + 4
    assert world.staging() == []


def test_a_long_event_is_not_readable_before_all_of_it_is_staged() -> None:
    """A driver that is killed in its midst leaves the staged bytes, and the next one goes on."""
    world = World()
    (first,) = put_source(world, [20])
    source = world.segments[segment_name(SOURCE, 0)]
    data = events_of([100], 7)

    def begin() -> None:
        source.data += data[:70]

    killed(world, begin, nothing, longest=LONGEST)
    assert world.bytes_of(TARGET) == [first]
    assert staged(world) == [data[:70]]
    source.data += data[70:]
    report = run(world, nothing, longest=LONGEST)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [first + data]
    assert world.staging() == []


def test_a_byte_that_changed_in_what_is_staged_is_found_before_the_event_is_readable() -> None:
    """The staged event is compared with its source, even if another driver has staged it."""
    world = World()
    (first,) = put_source(world, [20])
    source = world.segments[segment_name(SOURCE, 0)]
    data = events_of([100], 7)

    def begin() -> None:
        source.data += data[:70]

    killed(world, begin, nothing, longest=LONGEST)
    key = identity.event_key(COPY, len(first))
    there = world.segments[ModelStore(world).staging_name(TARGET, 0, key)]
    there.data[50] ^= 1
    source.data += data[70:]
    report = run(world, nothing, longest=LONGEST)
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"
    assert "what is staged for segment 0 of out/t has another byte" in report.error.message
    assert f"source's offset {len(first) + 50} of segment 0" in report.error.message
    assert world.bytes_of(TARGET) == [first]


def test_bytes_of_another_client_behind_a_staged_event_are_not_merged() -> None:
    """The driver checks the length of the staged bytes once no more can come."""
    world = World()
    (first,) = put_source(world, [20])
    source = world.segments[segment_name(SOURCE, 0)]
    data = events_of([100], 7)

    def begin() -> None:
        source.data += data[:70]

    killed(world, begin, nothing, longest=LONGEST)
    key = identity.event_key(COPY, len(first))
    there = world.segments[ModelStore(world).staging_name(TARGET, 0, key)]
    source.data += data[70:]
    there.data += data[70:] + b"more"
    there.attributes[identity.writer_id(COPY, key)] = len(first) + len(data)
    report = run(world, nothing, longest=LONGEST)
    assert report.error is not None
    assert report.error.reason == "DigestMismatch"
    assert "has 112 bytes, and the event at offset 28 of segment 0 has 108" in report.error.message
    assert world.bytes_of(TARGET) == [first]


def test_another_clients_bytes_before_a_long_event_are_named() -> None:
    """The merge does not return the event's place, so the driver checks it."""
    world = World()
    (first,) = put_source(world, [20])

    def both() -> None:
        world.segments[segment_name(TARGET, 0)].data += events_of([2], 8)
        write(world, 0, [90], 7)

    report = run(world, nothing, both, nothing, longest=LONGEST, every=1e9)
    assert report.error is not None
    assert report.error.reason == "TargetReplaced"
    assert "another client wrote 10 bytes into segment 0 of out/t" in report.error.message
    assert f"between offsets {len(first)} and {len(first) + 108}" in report.error.message


def test_an_event_that_is_lost_while_it_is_staged_is_left_out() -> None:
    """Its staged bytes are deleted."""
    world = World()
    (first,) = put_source(world, [20])
    source = world.segments[segment_name(SOURCE, 0)]
    data = events_of([100], 7)
    killed(world, lambda: source.data.extend(data[:70]), nothing, request=RECORD, longest=LONGEST)
    assert staged(world) == [data[:70]]
    source.data += data[70:]
    source.start = len(source.data)
    write(world, 0, [30], 8)
    report = run(world, nothing, request=RECORD, longest=LONGEST)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [first + events_of([30], 8)]
    assert [one.lost for one in report.segments] == [108]
    assert world.staging() == []


def test_a_source_that_is_sealed_inside_a_long_event_is_damaged() -> None:
    """No byte of the event enters the target."""
    world = World()
    (first,) = put_source(world, [20])
    source = world.segments[segment_name(SOURCE, 0)]

    def end() -> None:
        source.data += events_of([100], 7)[:70]
        ModelStore(world).seal_stream(SOURCE)

    report = run(world, nothing, end, nothing, longest=LONGEST)
    assert report.error is not None
    assert report.error.reason == "EventsDamaged"
    assert "inside the event that begins at 28" in report.error.message
    assert world.bytes_of(TARGET) == [first]


def test_what_is_compared_at_a_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long event is compared piece by piece while it is staged, and again in the target."""
    monkeypatch.setattr("sluice.engine.follow.large_event.COMPARE_BYTES", 64)
    monkeypatch.setattr("sluice.engine.follow.comparing.COMPARE_BYTES", 100)
    world = World()
    (first,) = put_source(world, [20])
    journal: Journal = killed(
        world, lambda: write(world, 0, [900], 7), *[nothing] * 9, longest=LONGEST
    )
    assert world.bytes_of(TARGET) == [first + events_of([900], 7)]
    assert proved(journal, 0).offset > 900


def test_beginnings_of_events_of_many_segments_are_not_all_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beginnings above the bound are read again when the ends of their events have come."""
    monkeypatch.setattr("sluice.engine.follow.session.HELD", 100)
    world = World()
    contents = put_source(world, *[[20]] * 8)
    most = 0
    feed = Cutter.feed

    def fed(cutter: Cutter, data: bytes) -> Iterator[Cut | EventPiece]:
        nonlocal most
        yield from feed(cutter, data)
        most = max(most, cutter.rest)

    monkeypatch.setattr(Cutter, "feed", fed)

    def more() -> None:
        for segment in range(8):
            write(world, segment, [170, 3], 7 + segment)

    report = run(world, nothing, more, nothing, rounds=12)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [
        data + events_of([170, 3], 7 + segment) for segment, data in enumerate(contents)
    ]
    assert most <= 100 + 32


TEXT = b"text without events, which may be cut anywhere"


def plain_source(world: World, *texts: bytes) -> None:
    """Make a stream whose segments have plain bytes."""
    put_source(world, *[[20]] * len(texts))
    for segment, text in enumerate(texts):
        world.segments[segment_name(SOURCE, segment)].data[:] = text


def test_a_source_of_plain_bytes_is_cut_anywhere() -> None:
    """The first leg found no events. All later bytes come, and the report says so."""
    world = World()
    plain_source(world, TEXT, b"")

    def more() -> None:
        for segment in (0, 1):
            world.segments[segment_name(SOURCE, segment)].data += TEXT

    report = run(world, nothing, more, nothing, long=100)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [TEXT + TEXT, TEXT]
    assert [one.plain for one in report.segments] == [True, True]


def test_a_driver_that_goes_on_knows_plain_bytes() -> None:
    """The journal records it, also after its records were replaced by one."""
    world = World()
    plain_source(world, TEXT)
    source = world.segments[segment_name(SOURCE, 0)]
    killed(world, lambda: source.data.extend(TEXT), nothing, long=100)
    source.data += b"end"
    report = run(world, nothing, long=100)
    assert report.outcome is Outcome.COPIED, report.error
    assert world.bytes_of(TARGET) == [TEXT + TEXT + b"end"]


def test_a_source_that_turns_to_plain_bytes_is_named_and_stops() -> None:
    """Blocks of a live target end between events. All earlier events are in the target."""
    world = World()
    (first,) = put_source(world, [20])

    def turn() -> None:
        write(world, 0, [9], 7)
        world.segments[segment_name(SOURCE, 0)].data += TEXT

    report = run(world, nothing, turn, nothing, request=FOLLOW)
    assert report.error is not None
    assert report.error.reason == "EventsDamaged"
    assert "no event begins at offset 45 of in/s/0" in report.error.message
    assert "All events before it are in the target" in report.error.remedy
    assert world.bytes_of(TARGET) == [first + events_of([9], 7)]
