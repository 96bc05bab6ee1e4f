"""Viewers get the last rows of a result, and each later row once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sluice.core.events.decoding import encoded
from sluice.core.values.model import StreamName
from sluice.engine.query import tail
from sluice.engine.query.sinks import make_sink
from sluice.engine.query.tail import follow_rows
from sluice.errors import (
    EventsDamaged,
    SourceNotFound,
    SourceReplaced,
    StoreUnavailable,
    TargetExists,
)
from support.engine.queries import QUERY_ID, SINK, sink
from support.model import Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.core.query.recent import Rows


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail.time, "sleep", lambda _: None)
    monkeypatch.setattr(tail, "_AGAIN", 0.0)


@pytest.fixture
def made() -> World:
    """Return a world with an empty result of two segments."""
    world = World()
    ModelStore(world).create_scope(SINK.scope)
    make_sink(sink(), ModelStore(world), QUERY_ID)
    return world


def append(made: World, *numbers: int, segment: int = 0) -> None:
    """Append rows to a segment of the result."""
    name = segment_name(SINK, made.streams[SINK].segments[segment].id)
    for number in numbers:
        made.segments[name].data += encoded(json.dumps({"n": number}).encode())


def numbers_of(rows: Rows) -> list[int]:
    """Return the numbers of rows."""
    return [json.loads(text)["n"] for text in rows.texts]


def taken(rows: Iterator[Rows]) -> list[int]:
    """Return the numbers of all rows that come in some looks."""
    return [number for _ in range(5) for number in numbers_of(next(rows))]


def test_the_last_rows_come_first_then_each_row_once(made: World) -> None:
    """This holds for the rows of all segments."""
    append(made, 1, 2)
    append(made, 3, segment=1)
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    assert sorted(numbers_of(next(rows))) == [1, 2, 3]
    assert numbers_of(next(rows)) == []
    append(made, 4)
    append(made, 5, segment=1)
    assert sorted(numbers_of(next(rows))) == [4, 5]
    assert numbers_of(next(rows)) == []


def test_of_a_long_result_only_the_last_rows_are_read(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of them is whole."""
    monkeypatch.setattr(tail, "RECENT", 100)
    append(made, *range(1000))
    found = numbers_of(next(follow_rows(ModelStore(made), SINK, QUERY_ID)))
    assert found == [*range(1000 - len(found), 1000)]
    assert 1 <= len(found) <= 3


def test_rows_come_on_after_a_scale_event(made: World) -> None:
    """New segments are read from their beginnings, and no row comes twice."""
    append(made, 1)
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    append(made, 2)
    made.scale(SINK, 3)
    for segment in range(3):
        append(made, 10 + segment, segment=segment)
    found = [number for _ in range(4) for number in numbers_of(next(rows))]
    assert sorted(found) == [2, 10, 11, 12]


def test_rows_of_a_merged_segment_come_behind_all_before_it(made: World) -> None:
    """Otherwise older rows would follow a key's newer row."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    append(made, 1)
    append(made, *range(100, 104), segment=1)
    made.scale(SINK, 1)
    append(made, 999)
    found = [number for _ in range(4) for number in numbers_of(next(rows))]
    assert sorted(found) == [1, 100, 101, 102, 103, 999]
    assert found[-1] == 999


def test_successors_are_found_though_they_are_listed_late(made: World) -> None:
    """A store seals segments before it lists their successors."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    for segment in made.streams[SINK].segments:
        made.segments[segment_name(SINK, segment.id)].sealed = True
    for _ in range(3):
        assert numbers_of(next(rows)) == []
    made.scale(SINK, 2)
    append(made, 7)
    assert [number for _ in range(3) for number in numbers_of(next(rows))] == [7]


@pytest.mark.parametrize("sealed", [True, False])
def test_a_stream_that_is_made_again_is_another_one(made: World, sealed: bool) -> None:  # noqa: FBT001 - a parameter
    """Its rows must not follow the rows of the old stream."""
    store = ModelStore(made)
    rows = follow_rows(store, SINK, QUERY_ID)
    next(rows)
    if sealed:
        store.seal_stream(SINK)
        next(rows)
        next(rows)
    else:
        store.seal_stream(SINK)
    store.delete_stream(SINK)
    make_sink(sink(), store, QUERY_ID)
    with pytest.raises(SourceReplaced):
        taken(rows)


def test_a_stream_that_is_deleted_is_said_to_be_gone(made: World) -> None:
    """The reader raises SourceNotFound, and the query is shown without rows then."""
    store = ModelStore(made)
    rows = follow_rows(store, SINK, QUERY_ID)
    next(rows)
    store.seal_stream(SINK)
    store.delete_stream(SINK)
    with pytest.raises(SourceNotFound):
        taken(rows)


def test_a_stream_of_somebody_else_is_not_read(made: World) -> None:
    """A user who may write a query could name any stream as its sink."""
    append(made, 1)
    with pytest.raises(TargetExists):
        next(follow_rows(ModelStore(made), SINK, "0" * 32))


def test_many_new_segments_are_read_back_no_further_than_few(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All new segments together are read back as far as a single one."""
    monkeypatch.setattr(tail, "RECENT", 2000)
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    made.scale(SINK, 20)
    for segment in range(20):
        append(made, *range(100), segment=segment)
    found = [number for _ in range(4) for number in numbers_of(next(rows))]
    assert len(found) * 16 <= 2000


def test_rows_come_on_after_a_truncation(made: World) -> None:
    """This holds even if the truncation took unread rows."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    append(made, 1, 2)
    name = segment_name(SINK, made.streams[SINK].segments[0].id)
    ModelStore(made).truncate_segment(name, len(made.segments[name].data))
    append(made, 3)
    assert [number for _ in range(3) for number in numbers_of(next(rows))] == [3]


def test_a_sealed_result_is_followed_to_its_end(made: World) -> None:
    """After the last row nothing more comes, while the page stays open."""
    append(made, 1)
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    append(made, 2)
    for segment in made.streams[SINK].segments:
        made.segments[segment_name(SINK, segment.id)].sealed = True
    assert [number for _ in range(4) for number in numbers_of(next(rows))] == [2]
    assert numbers_of(next(follow_rows(ModelStore(made), SINK, QUERY_ID))) == [1, 2]


def test_a_result_that_is_not_there_is_an_error(made: World) -> None:
    """The query makes its result when it begins. Before, the reader raises SourceNotFound."""
    with pytest.raises(SourceNotFound):
        next(follow_rows(ModelStore(made), StreamName(scope="out", stream="none"), QUERY_ID))


class Watch:
    """A clock that goes on by sleeps only.

    Attributes:
        now: the time, in seconds.
        slept: the seconds of each sleep.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        monkeypatch.setattr(tail.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(tail.time, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return the clock of this test."""
    return Watch(monkeypatch)


def test_the_pieces_of_a_batch_are_not_held_up(made: World, watch: Watch) -> None:
    """A store may hand out the rows that were appended together one by one."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    next(rows)
    watch.now = 1.0
    for number in range(5):
        append(made, number)
        assert numbers_of(next(rows)) == [number]
    assert not watch.slept


def test_rows_that_come_all_the_time_are_handed_out_twenty_times_a_second(
    made: World, watch: Watch
) -> None:
    """Each answer goes to all viewers, however few rows it has."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    for number in range(200):
        append(made, number)
        assert numbers_of(next(rows)) == [number]
    assert watch.now == pytest.approx(199 / 20)


def test_a_store_that_is_away_is_an_error(made: World) -> None:
    """The reader raises StoreUnavailable. The caller reports that, and tries again."""
    calls = 0

    def gate(_: str) -> Fate:
        return Fate.DONE if calls == 0 else Fate.REQUEST_LOST

    rows = follow_rows(ModelStore(made, gate), SINK, QUERY_ID)
    next(rows)
    calls = 1
    with pytest.raises(StoreUnavailable):
        next(rows)


def test_foreign_bytes_are_an_error(made: World) -> None:
    """A result holds only rows, so other bytes raise EventsDamaged."""
    rows = follow_rows(ModelStore(made), SINK, QUERY_ID)
    next(rows)
    made.segments[segment_name(SINK, made.streams[SINK].segments[0].id)].data += b"\xff" * 20
    with pytest.raises(EventsDamaged):
        next(rows)
