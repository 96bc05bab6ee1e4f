"""Reader groups of a source, and the groups that go on in the target."""

from __future__ import annotations

import pytest

from sluice.core.values.groups import (
    AT_END,
    DEFAULT_SETTINGS,
    GroupConfig,
    GroupName,
    GroupSettings,
    GroupState,
)
from sluice.core.values.model import StreamName
from sluice.engine.positions.position_map import Mapped, position_map, translate
from sluice.engine.positions.reader_groups import look, make
from sluice.errors import (
    InvalidSpec,
    ReaderGroupBusy,
    ReaderGroupExists,
    ReaderGroupNotFound,
    StoreUnavailable,
)
from support.engine.plans import COPY, SOURCE, TARGET
from support.engine.sources import copy_all, planned, put_scaled_source
from support.model import Fate, ModelGroup, ModelStore, World, segment_name

GROUP = GroupName("in", "readers")
NEW = GroupName("out", "readers")
SETTINGS = GroupSettings(refresh=7, checkpoints=8, outstanding=9, retention=1)
SHAPES = [[5, 90, 3], [40], [17, 2]]
OTHER = StreamName(scope="in", stream="other")


def _copied(*moves: tuple[str, int]) -> tuple[World, ModelStore, list[Mapped]]:
    world = World()
    put_scaled_source(world, SHAPES, moves)
    store = ModelStore(world)
    copy_all(store, planned(store))
    return world, store, position_map(COPY, TARGET, store)


def _put(
    world: World,
    positions: dict[int, int],
    *,
    awaiting: dict[int, frozenset[int]] | None = None,
    readers: tuple[str, ...] = (),
    streams: tuple[StreamName, ...] = (SOURCE,),
    bounded: tuple[StreamName, ...] = (),
    changing: bool = False,
) -> None:
    config = GroupConfig(SETTINGS, streams, bounded)
    state = GroupState(readers, {SOURCE: positions}, {SOURCE: awaiting or {}}, changing)
    world.groups[GROUP] = ModelGroup(config, state)


def _length(world: World, segment: int) -> int:
    return len(world.segments[segment_name(SOURCE, segment)].data)


def test_a_group_is_where_its_readers_left_it() -> None:
    """The position is in the source and, translated, in the target. The settings stay."""
    world, store, mapped = _copied(("truncate", 0))
    at = {segment.id: 0 for segment in world.streams[SOURCE].segments}
    _put(world, at)
    move = look(GROUP, SOURCE, mapped, store)
    assert (move.source, move.target) == (at, translate(at, mapped))
    assert (move.settings, move.left) == (SETTINGS, ())


def test_while_a_merge_is_passed_what_was_read_is_at_its_end() -> None:
    """So the cut also has the keys of a segment that was read to its end."""
    world, store, mapped = _copied(("merge", 0))
    (left, right), (merged,) = world.streams[SOURCE].made
    _put(world, {right.id: 0}, awaiting={merged.id: frozenset({right.id})})
    move = look(GROUP, SOURCE, mapped, store)
    assert move.source == {left.id: _length(world, left.id), right.id: 0}
    assert move.target == translate(move.source, mapped)


def test_an_end_that_a_reader_reached_before_it_left_is_the_segments_length() -> None:
    """No reader has reported its successors, so the group still reads that segment."""
    world, store, mapped = _copied(("merge", 0))
    (left, right), _ = world.streams[SOURCE].made
    _put(world, {left.id: AT_END, right.id: 0})
    move = look(GROUP, SOURCE, mapped, store)
    assert move.source == {left.id: _length(world, left.id), right.id: 0}
    assert move.target == translate(move.source, mapped)


def test_at_the_end_of_a_sealed_source_the_group_is_at_the_targets_end() -> None:
    """This holds though the group reads no segment any more."""
    world, store, mapped = _copied(("split", 0))
    store.seal_stream(SOURCE)
    _put(world, {})
    tail = world.streams[SOURCE].segments
    assert look(GROUP, SOURCE, mapped, store).source == {s.id: _length(world, s.id) for s in tail}


def test_a_finished_segment_that_is_gone_has_no_end() -> None:
    """The segment was truncated away, so the group has to read on first."""
    world, store, mapped = _copied(("merge", 0))
    (left, right), (merged,) = world.streams[SOURCE].made
    _put(world, {right.id: 0}, awaiting={merged.id: frozenset({right.id})})
    del world.segments[segment_name(SOURCE, left.id)]
    with pytest.raises(InvalidSpec, match=f"segment {left.id}, .* is gone"):
        look(GROUP, SOURCE, mapped, store)


def test_what_takes_events_is_not_taken_for_finished() -> None:
    """The group may have read none of the events whose keys its position lacks."""
    world, store, mapped = _copied()
    first, second = world.streams[SOURCE].segments
    _put(world, {first.id: 0})
    with pytest.raises(InvalidSpec, match=f"segment {second.id}, .* takes events"):
        look(GROUP, SOURCE, mapped, store)


def test_a_position_that_was_not_copied_names_the_group() -> None:
    """The group read on after the copy had taken its bounds."""
    world, store, mapped = _copied()
    first, second = world.streams[SOURCE].segments
    _put(world, {first.id: _length(world, first.id) + 1, second.id: 0})
    with pytest.raises(InvalidSpec, match=r"has not got this position.*in/readers") as caught:
        look(GROUP, SOURCE, mapped, store)
    assert caught.value.field == "--reader-group"


def test_a_group_whose_readers_are_online_is_not_moved() -> None:
    """The readers are named, since their progress is unknown. A given cut replaces it."""
    world, store, mapped = _copied()
    at = {segment.id: 0 for segment in world.streams[SOURCE].segments}
    _put(world, at, readers=("r1", "r2"))
    with pytest.raises(ReaderGroupBusy, match="r1, r2"):
        look(GROUP, SOURCE, mapped, store)
    assert look(GROUP, SOURCE, mapped, store, cut=at).target == translate(at, mapped)
    _put(world, at, changing=True)
    with pytest.raises(ReaderGroupBusy, match="setting"):
        look(GROUP, SOURCE, mapped, store)


def test_a_group_that_reads_more_is_moved_only_if_asked_for_this_stream_alone() -> None:
    """The error names the other streams."""
    world, store, mapped = _copied()
    _put(world, {s.id: 0 for s in world.streams[SOURCE].segments}, streams=(OTHER, SOURCE))
    with pytest.raises(InvalidSpec, match="reads in/other as well"):
        look(GROUP, SOURCE, mapped, store)
    assert look(GROUP, SOURCE, mapped, store, alone=True).left == (OTHER,)


def test_a_group_of_another_stream_or_with_an_end_is_refused() -> None:
    """A missing group is refused, too."""
    world, store, mapped = _copied()
    with pytest.raises(ReaderGroupNotFound, match="no reader group in/readers"):
        look(GROUP, SOURCE, mapped, store)
    _put(world, {}, streams=(OTHER,))
    with pytest.raises(ReaderGroupNotFound, match="reads in/other"):
        look(GROUP, SOURCE, mapped, store)
    _put(world, {}, bounded=(SOURCE,))
    with pytest.raises(InvalidSpec, match="only up to a cut"):
        look(GROUP, SOURCE, mapped, store)


def test_with_a_cut_a_group_need_not_be_there() -> None:
    """Then the group is made with the settings that clients use by default."""
    world, store, mapped = _copied()
    at = {segment.id: 0 for segment in world.streams[SOURCE].segments}
    assert look(GROUP, SOURCE, mapped, store, cut=at).settings == DEFAULT_SETTINGS


def test_making_a_group_twice_makes_it_once() -> None:
    """A lost answer does no harm. At other positions the group is refused and unchanged."""
    world, store, _ = _copied()
    cut = {segment.id: 0 for segment in world.streams[TARGET].segments}
    lossy = ModelStore(world, lambda what: Fate.REPLY_LOST if "begin" in what else Fate.DONE)
    with pytest.raises(StoreUnavailable, match="begin group"):
        make(NEW, TARGET, cut, settings=SETTINGS, copy_id=COPY, store=lossy)
    before = world.groups[NEW]
    assert (before.start, before.config.settings) == ({TARGET: cut}, SETTINGS)
    assert not make(NEW, TARGET, cut, settings=SETTINGS, copy_id=COPY, store=store)
    with pytest.raises(ReaderGroupExists):
        make(NEW, TARGET, cut | {0: 5}, settings=SETTINGS, copy_id=COPY, store=store)
    assert world.groups[NEW] is before
