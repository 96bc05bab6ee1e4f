"""An archive and then its stream, read as the stream alone would be, wherever the seam is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.archive.runs.archive_root import ArchiveRoot
from sluice.core.archive.names import Format
from sluice.core.copy.planner import ArchiveChoice
from sluice.core.values.model import StreamName
from sluice.engine.access.source_runs import open_whole
from sluice.engine.tables.opening import located
from sluice.engine.tables.source import ContinuedStream, StoredStream
from sluice.errors import InvalidSpec, SourceTruncated
from support.archiving.archiving import archive_stream
from support.engine.plans import SOURCE
from support.engine.reading import SIZES, Change, Reading, act, changes, new_world
from support.model import ModelStore, World, segment_name
from support.model.memory_objects import MemoryObjects

if TYPE_CHECKING:
    from sluice.core.tables.positions import StreamPosition


def archived(world: World) -> StoredStream:
    """Record a run of the stream, and open it."""
    objects = MemoryObjects()
    root = ArchiveRoot("memory", lambda _: objects)
    archive_stream(root, "", Format.SEGMENTS, ModelStore(world), SOURCE)
    run = open_whole(ArchiveChoice(path=""), root, "source")
    return StoredStream(run, run.manifest.source.stream)


def truncate(world: World, cut: StreamPosition) -> None:
    """Truncate all events before a cut."""
    stream = world.streams[SOURCE]
    kept = stream.since(cut.cut)
    for one in stream.past - {segment.id for made in kept for segment in made}:
        world.segments.pop(segment_name(SOURCE, one), None)
    for number, offset in cut.offsets.items():
        world.segments[segment_name(SOURCE, number)].start = offset
    stream.made = list(kept)


@given(
    st.lists(SIZES, min_size=1, max_size=3),
    st.tuples(changes(6), changes(6), changes(6)),
    st.integers(1, 150),
)
def test_bytes_that_the_stream_lost_come_from_the_archive(
    shapes: list[list[int]], parts: tuple[list[Change], list[Change], list[Change]], most: int
) -> None:
    """The stream is cut anywhere before the archive's end, with scale events on both sides."""
    world = new_world(*shapes)
    before, between, after = parts
    act(world, before)
    cut = StoredStream(ModelStore(world), SOURCE).tail()
    act(world, between)
    run = archived(world)
    act(world, after)
    alone = Reading(world)
    written = alone.written()
    truncate(world, cut)
    live = StoredStream(ModelStore(world), SOURCE)
    both = Reading(world, ContinuedStream(run, live))
    both.read_all(most)
    assert both.seen == written
    assert both.place == live.tail()
    rest = Reading(world, live, cut)
    rest.read_all(most)
    assert all(set(found) <= set(written[one]) for one, found in rest.seen.items())


def test_a_gap_between_archive_and_stream_is_named() -> None:
    """The error has the first offset that neither of them has."""
    world = new_world([5], [4])
    run = archived(world)
    act(world, [("write", 0, [9, 9])])
    live = StoredStream(ModelStore(world), SOURCE)
    truncate(world, live.tail())
    both = Reading(world, ContinuedStream(run, live))
    with pytest.raises(SourceTruncated, match="segment 0 of in/s has no events from offset 13 on"):
        both.read_all()
    act(world, [("split", 0)])
    truncate(world, live.tail())
    with pytest.raises(SourceTruncated, match="it is deleted"):
        Reading(world, ContinuedStream(run, live)).read_all()


def test_an_archive_of_another_stream_is_refused() -> None:
    """The archive's offsets mean nothing in another stream."""
    world = new_world([5])
    other = StoredStream(ModelStore(world), StreamName(scope="in", stream="other"))
    with pytest.raises(InvalidSpec, match="the archive is one of in/s"):
        ContinuedStream(archived(world), other)


def test_positions_are_found_in_the_archive_too() -> None:
    """A position may be the text of a cut, offsets or JSON, even if the stream has lost it."""
    world = new_world([5, 5], [4])
    run = archived(world)
    live = StoredStream(ModelStore(world), SOURCE)
    act(world, [("split", 0)])
    truncate(world, live.tail())
    both = ContinuedStream(run, live)
    place = both.at({0: 13, 1: 0})
    assert located(both, "in/s/0=13/1=0") == place
    assert located(both, {"0": 13, "1": 0}) == place
    assert located(both, place.to_json()) == place
    assert located(both, "Head") == run.head()
    assert located(both, "Tail") == live.tail()
    with pytest.raises(InvalidSpec, match="no segment 0"):
        located(live, "in/s/0=13/1=0")
    for wrong in ("{", {"x": "y"}, {}, {"segments": 1}):
        with pytest.raises(InvalidSpec):
            located(both, wrong)
