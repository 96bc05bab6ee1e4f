"""Events written to the model store, while calls and their answers are lost, and segments end."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

import pytest

from sluice.core.events.decoding import encoded
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.engine.streams.reading import events_of
from sluice.engine.streams.writing import BATCH, BATCH_BYTES, EventWriter, Routed
from sluice.errors import InvalidSpec, StoreBusy, StoreUnavailable, StreamNotFound, TargetSealed
from support.model import ModelStore, World
from support.model.world import Fate, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = StreamName(scope="in", stream="s")
KEYS = 7
IN_A_ROW = 6
"""Losses in a row after which a writer still succeeds."""


@pytest.fixture
def world() -> World:
    """Return a world with a stream of two segments."""
    made = World()
    made.scopes.add("in")
    ModelStore(made).create_stream(STREAM, StreamConfig(scaling=Scaling(min_segments=2)))
    return made


def written(number: int) -> Routed:
    """Return an event that tells its key and its place among all events."""
    key = f"k{number % KEYS}"
    return Routed(ModelStore(World()).place_of(key), f"{key} {number}".encode())


def by_key(world: World) -> dict[str, list[int]]:
    """Return the numbers of the stream's events by their keys, in the order of a reader."""
    found = defaultdict(list)
    for event in events_of(ModelStore(world), STREAM):
        key, number = event.data.decode().split()
        found[key].append(int(number))
    return dict(found)


class Losses:
    """A gate that loses requests and replies at random, but never too many in a row."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - chance that can be repeated
        self._row = 0

    def __call__(self, what: str) -> Fate:
        """Return the fate of a call, which may be a loss if it is about a segment's bytes."""
        risky = what.startswith(("append ", "setup "))
        if risky and self._row < IN_A_ROW and self._random.random() < 1 / 3:
            self._row += 1
            return self._random.choice([Fate.REQUEST_LOST, Fate.REPLY_LOST])
        self._row = self._row if risky else 0
        return Fate.DONE


@pytest.mark.parametrize("seed", range(20))
def test_each_event_is_stored_once_and_in_order(world: World, seed: int) -> None:
    """This holds for any losses, although the stream is scaled meanwhile."""
    random = Random(seed)  # noqa: S311 - as above
    scaled = {random.randrange(60): random.randint(1, 4) for _ in range(2)}

    def events() -> Iterator[Routed]:
        for number in range(60):
            if number in scaled:
                world.scale(STREAM, scaled[number])
            yield written(number)

    waits: list[float] = []
    losses = Losses(seed)
    writer = EventWriter(ModelStore(world, losses), STREAM, sleep=waits.append)
    calls = iter(events())
    while batch := [event for _, event in zip(range(10), calls, strict=False)]:
        losses._row = 0
        writer.write(batch)
    assert by_key(world) == {
        f"k{key}": [number for number in range(60) if number % KEYS == key] for key in range(KEYS)
    }
    assert sum(writer.stored.values()) == 60


def test_a_store_that_stays_away_is_an_error_after_a_few_tries(world: World) -> None:
    """The waits between its tries grow."""
    waits: list[float] = []

    def lost(what: str) -> Fate:
        return Fate.REQUEST_LOST if what.startswith("append ") else Fate.DONE

    writer = EventWriter(ModelStore(world, lost), STREAM, sleep=waits.append)
    with pytest.raises(StoreUnavailable):
        writer.write([written(0)])
    assert waits == sorted(waits)
    assert len(waits) == IN_A_ROW
    assert by_key(world) == {}


def test_a_late_append_of_a_broken_connection_is_no_failure(world: World) -> None:
    """The late append comes first, and the store refuses the new one. Then the writer looks."""
    store, waits = ModelStore(world), []
    name = segment_name(STREAM, 0)
    late: list[str] = []

    def gate(call: str) -> Fate:
        if call.startswith(f"append {name} ") and len(late) < 2:
            late.append(call)
            if len(late) == 1:
                return Fate.REQUEST_LOST
            with store.appender(name, writer=writer._writer, window=1) as old:
                old.append(encoded(event.data), event_number=1)
        return Fate.DONE

    writer = EventWriter(ModelStore(world, gate), STREAM, sleep=waits.append)
    event = Routed(0.0, b"k0 0")
    writer.write([event])
    assert by_key(world) == {"k0": [0]}
    assert len(late) == 2


def test_a_stream_whose_scale_event_hangs_is_an_error_after_a_while(world: World) -> None:
    """The writer waits between two looks, and gives up."""
    waits: list[float] = []
    store = ModelStore(world)
    writer = EventWriter(store, STREAM, sleep=waits.append)
    for segment in world.streams[STREAM].segments:
        store.seal(segment_name(STREAM, segment.id))
    with pytest.raises(StoreBusy, match="no others in their place"):
        writer.write([written(0)])
    assert len(waits) == IN_A_ROW


def test_a_batch_is_bounded_by_bytes_and_whole_batches_are_counted(world: World) -> None:
    """So memory never holds many large events, and the number of stored events is known."""
    read = 0

    def events() -> Iterator[Routed]:
        nonlocal read
        for _ in range(6):
            read += 1
            yield Routed(0.5, b"x" * (BATCH_BYTES // 2))
            assert read - writer.whole <= 2

    writer = EventWriter(ModelStore(world), STREAM)
    writer.write(events())
    assert writer.whole == 6


def test_events_before_a_wrong_line_are_stored(world: World) -> None:
    """So a user can correct the source, and write it from that line on."""

    def events() -> Iterator[Routed]:
        yield from map(written, range(BATCH + 5))
        raise InvalidSpec("a wrong line")

    with pytest.raises(InvalidSpec, match="a wrong line"):
        EventWriter(ModelStore(world), STREAM).write(events())
    numbers = chain.from_iterable(by_key(world).values())
    assert sorted(numbers) == list(range(BATCH + 5))


def test_a_missing_or_sealed_stream_takes_nothing(world: World) -> None:
    """The error comes before the first event is read, and also if the stream is sealed later."""
    store = ModelStore(world)
    with pytest.raises(StreamNotFound):
        EventWriter(store, StreamName(scope="in", stream="none"))
    writer = EventWriter(store, STREAM)
    store.seal_stream(STREAM)
    with pytest.raises(TargetSealed):
        writer.write([written(0)])
    with pytest.raises(TargetSealed):
        EventWriter(store, STREAM)
