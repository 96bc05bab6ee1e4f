"""Positions of a source, translated to its copy's target."""

from __future__ import annotations

import pytest

from sluice.core.values.model import KeyRange, Scaling, StreamConfig
from sluice.engine.copy.report import Outcome
from sluice.engine.positions.position_map import Mapped, position_map, translate
from sluice.errors import InvalidSpec, StreamNotFound
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import copy_all, drive, planned, put_scaled_source
from support.model import ModelStore, World, segment_name

ALL = KeyRange(low=0, high=1)
SHAPES = [[5, 90, 3], [40], [17, 2]]


def _copied(*moves: tuple[str, int]) -> tuple[World, ModelStore, list[Mapped]]:
    world = World()
    put_scaled_source(world, SHAPES, moves)
    store = ModelStore(world)
    copy_all(store, planned(store))
    return world, store, position_map(COPY, TARGET, store)


def test_the_target_tells_where_the_bytes_of_its_source_are() -> None:
    """The map has each source segment, its bounds and its target segment, by scale events."""
    world, _, mapped = _copied(("split", 0), ("merge", 1))
    source = world.streams[SOURCE].readable
    target = world.streams[TARGET].readable
    assert [one.source for one in mapped] == [segment.id for segment in source]
    assert [one.target for one in mapped] == [segment.id for segment in target]
    assert [one.end - one.start for one in mapped] == [len(x) for x in world.bytes_of(TARGET)]


def test_a_cut_of_each_generation_is_translated() -> None:
    """Ids differ after a truncation of the head. Offsets of whole segments are equal."""
    world, _, mapped = _copied(("split", 0), ("truncate", 0), ("merge", 1))
    by_source = {one.source: one for one in mapped}
    for made in (world.streams[SOURCE].made[0], world.streams[SOURCE].segments):
        cut = {segment.id: by_source[segment.id].end for segment in made}
        assert translate(cut, mapped) == {
            by_source[segment.id].target: by_source[segment.id].end for segment in made
        }


def test_a_store_may_number_the_segments_of_the_target_in_another_order() -> None:
    """This happens if the store scaled the source by itself, but the target on request."""
    world = World()
    put_scaled_source(world, SHAPES, [("split", 0), ("split", 2)])
    world.backwards = True
    store = ModelStore(world)
    (report,) = copy_all(store, planned(store))
    assert report.outcome is Outcome.COPIED
    mapped = position_map(COPY, TARGET, store)
    keys = {one.id: one.keys for one in world.streams[SOURCE].readable}
    assert [one.keys for one in mapped] == [keys[one.source] for one in mapped]
    assert [one.source for one in mapped] != [one.target for one in mapped]
    for one in mapped:
        there = world.segments[segment_name(TARGET, one.target)].data
        assert there == world.segments[segment_name(SOURCE, one.source)].data


def test_offsets_of_a_truncated_segment_are_shifted() -> None:
    """The target's segments begin at offset 0."""
    mapped = [Mapped(0, 7, 100, 250, 0, ALL)]
    assert translate({7: 130}, mapped) == {0: 30}
    assert mapped[0].shift == -100


@pytest.mark.parametrize("cut", [{7: 99}, {7: 251}, {8: 0}, {}])
def test_a_position_that_was_not_copied_is_refused(cut: dict[int, int]) -> None:
    """It may lie before the copy's begin, behind its end, in another segment, or nowhere."""
    with pytest.raises(InvalidSpec, match="has not got this position"):
        translate(cut, [Mapped(0, 7, 100, 250, 0, ALL)])


def test_only_a_whole_target_of_the_copy_tells() -> None:
    """A target is refused if it is missing, unfinished, of another copy, or without marks."""
    world = World()
    put_scaled_source(world, SHAPES, [])
    store = ModelStore(world)
    with pytest.raises(StreamNotFound):
        position_map(COPY, TARGET, store)
    drive(world, 3)
    with pytest.raises(InvalidSpec, match="not the whole target"):
        position_map(COPY, TARGET, store)
    (report,) = copy_all(store, planned(store))
    assert report.outcome is Outcome.COPIED
    with pytest.raises(InvalidSpec, match="not the whole target"):
        position_map("cd" * 16, TARGET, store)
    store.update_stream(TARGET, StreamConfig(scaling=Scaling(min_segments=2)))
    with pytest.raises(InvalidSpec, match="not the whole target"):
        position_map(COPY, TARGET, store)
