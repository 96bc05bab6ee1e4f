"""The streams of live sinks: made, kept for a time, made again, and deleted by name and look."""

from __future__ import annotations

import pytest

from sluice.core.values.model import RetentionType, ScaleType, Scaling, StreamConfig
from sluice.engine.query.results import ResultAppender
from sluice.engine.query.sinks import drop_live, prepare_sinks, renew_live
from sluice.errors import TargetExists, TargetReplaced
from support.engine.queries import QUERY_ID, SINK, rows_of, sink
from support.model import ModelStore, World

LIVE = sink().model_copy(update={"keep_ms": 60_000})


@pytest.fixture
def store() -> ModelStore:
    """Return a store with the sink's scope."""
    made = ModelStore(World())
    made.create_scope(SINK.scope)
    return made


def lengths(store: ModelStore) -> list[int]:
    """Return the lengths of the sink's segments."""
    stream = store.describe(SINK)
    assert stream is not None
    infos = store.infos([store.segment_name(SINK, one.id) for one in stream.tail])
    return [0 if info is None else info.length for info in infos]


def append(store: ModelStore, batch: int) -> int:
    """Append a batch, and return how many rows were sent."""
    with ResultAppender(LIVE, store, QUERY_ID, 1) as appender:
        return appender.append(batch, rows_of(batch), 100)


def test_a_live_sink_keeps_rows_for_a_time(store: ModelStore) -> None:
    """The store drops older ones. Any other sink keeps all."""
    prepare_sinks([(LIVE, store)], QUERY_ID, first=True)
    stream = store.describe(SINK)
    assert stream is not None
    assert stream.config.retention.type is RetentionType.TIME
    assert stream.config.retention.minimum == 60_000
    assert drop_live(SINK, store, QUERY_ID)
    prepare_sinks([(sink(), store)], QUERY_ID, first=True)
    stream = store.describe(SINK)
    assert stream is not None
    assert stream.config.retention.type is RetentionType.NONE


def test_a_live_sink_that_was_deleted_is_made_again(store: ModelStore) -> None:
    """It only shows results. A sink that keeps them is never made again."""
    prepare_sinks([(LIVE, store)], QUERY_ID, first=True)
    assert append(store, 0) == len(rows_of(0))
    prepare_sinks([(LIVE, store)], QUERY_ID, first=False)
    assert append(store, 0) == 0
    assert drop_live(SINK, store, QUERY_ID)
    prepare_sinks([(LIVE, store)], QUERY_ID, first=False)
    assert append(store, 0) == len(rows_of(0))
    assert drop_live(SINK, store, QUERY_ID)
    with pytest.raises(TargetReplaced, match="was deleted"):
        prepare_sinks([(sink(), store)], QUERY_ID, first=False)


def test_a_new_query_does_not_go_on_with_an_old_live_sink(store: ModelStore) -> None:
    """Without a ledger, the numbers of its batches begin anew: rows of before would refuse them."""
    prepare_sinks([(LIVE, store)], QUERY_ID, first=True)
    append(store, 7)
    prepare_sinks([(LIVE, store)], QUERY_ID, first=True)  # another attempt may own the ledger
    assert append(store, 7) == 0
    renew_live([(LIVE, store), (sink(), store)], QUERY_ID)
    assert lengths(store) == [0, 0]
    assert append(store, 0) == len(rows_of(0))


@pytest.mark.parametrize("spoiled", ["sealed", "kept for another time"])
def test_a_live_sink_that_was_changed_is_made_again(store: ModelStore, spoiled: str) -> None:
    """A deletion may have been cut off, or the store may keep rows for another time."""
    longer = LIVE.model_copy(update={"keep_ms": 120_000})
    prepare_sinks([(LIVE if spoiled == "sealed" else longer, store)], QUERY_ID, first=True)
    if spoiled == "sealed":
        store.seal_stream(SINK)
    prepare_sinks([(LIVE, store)], QUERY_ID, first=False)
    stream = store.describe(SINK)
    assert stream is not None
    assert not stream.sealed
    assert stream.config.retention.minimum == 60_000
    assert append(store, 0) == len(rows_of(0))


def test_a_stream_of_another_maker_is_neither_used_nor_deleted(store: ModelStore) -> None:
    """A stream counts as a query's by its tag, not by its name."""
    scaling = Scaling(type=ScaleType.FIXED, min_segments=2)
    assert store.create_stream(SINK, StreamConfig(scaling=scaling))
    assert not drop_live(SINK, store, QUERY_ID)
    with pytest.raises(TargetExists):
        prepare_sinks([(LIVE, store)], QUERY_ID, first=True)
    assert store.describe(SINK) is not None
    assert not drop_live(SINK, store, "e" * 32)


def test_deleting_a_live_sink_is_safe_to_repeat(store: ModelStore) -> None:
    """Whether its stream, or its scope, is gone already."""
    assert not drop_live(SINK, store, QUERY_ID)
    prepare_sinks([(LIVE, store)], QUERY_ID, first=True)
    assert drop_live(SINK, store, QUERY_ID)
    assert not drop_live(SINK, store, QUERY_ID)
    assert not drop_live(SINK.model_copy(update={"scope": "nowhere"}), store, QUERY_ID)
