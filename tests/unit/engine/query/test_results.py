"""Results are in the sinks exactly once, whichever process is killed, frozen or repeated."""

from __future__ import annotations

import json
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.core.copy import record_frames
from sluice.core.events.decoding import decoded
from sluice.core.query.ledger import (
    BatchRecord,
    BegunRecord,
    VersionRecord,
    check_repeated,
    record_json,
)
from sluice.core.query.rows import digest, keys_digest
from sluice.core.values.identity import TAG_QUERY
from sluice.core.values.model import KeyRange, Scaling, StreamConfig, StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.results import ResultAppender, fence, release, written
from sluice.engine.query.sinks import check_sink, make_sink
from sluice.errors import (
    JournalDamaged,
    QuerySuperseded,
    SluiceError,
    TargetExists,
    TargetReplaced,
    TargetScopeNotFound,
    TargetSealed,
)
from support.engine.queries import QUERY_ID, SINK, position, query_plan, rows_of, sink
from support.model import Fate, ModelStore, World, segment_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES = 3
PART = 2
"""Rows in one append: so few that a batch has several blocks for a segment."""

FIRST = VersionRecord(number=1, plan=query_plan(), begins=(position(0),))


class Killed(BaseException):
    """The death of the process."""


def world() -> World:
    """Return a world with the sink's scope."""
    made = World()
    ModelStore(made).create_scope(SINK.scope)
    return made


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pauses before a writer asks the store again."""
    monkeypatch.setattr("sluice.engine.streams.writing._PAUSES", (0.0,))


class Attempt:
    """An attempt of a query, which makes its batches one after the other.

    Args:
        made: the world.
        gate: see ModelStore.
        done: the batches that Spark's checkpoint counts as done, which attempts share.
    """

    def __init__(self, made: World, gate: Callable[[str], Fate], done: list[int]) -> None:
        self.store = ModelStore(made, gate)
        self.done = done

    def steps(self) -> Iterator[None]:
        """Run the query to its end, batch after batch. Spark repeats a batch that is not done."""
        ledger = QueryLedger(self.store, QUERY_ID, SINK)
        prepare = make_sink if ledger.load().version is None else check_sink
        prepare(sink(), self.store, QUERY_ID)
        ledger.begin()
        yield
        if ledger.state.version is None:
            ledger.add(FIRST)
        with ResultAppender(sink(), self.store, QUERY_ID, 1) as appender:
            for batch in range(len(self.done), BATCHES):
                yield
                rows = rows_of(batch)
                ends = (position(100 * batch + 100),)
                begun = BegunRecord(batch=batch, ends=ends, keys=keys_digest(rows), part=PART)
                check_repeated(ledger.state, begun)
                if ledger.state.whole < batch:
                    if ledger.state.begun is None:
                        ledger.add(begun)
                    else:
                        ledger.check_now()
                    yield
                    appender.append(batch, rows, PART)
                    yield
                    record = BatchRecord(
                        batch=batch, ends=ends, rows=len(rows), sha256=digest(rows)
                    )
                    ledger.add(record)
                yield
                if len(self.done) == batch:
                    self.done.append(batch)

    def run(self) -> None:
        """Take all steps."""
        for _ in self.steps():
            pass


def counts(made: World) -> Counter[tuple[str, int]]:
    """Return how often each row is in the sink."""
    found: Counter[tuple[str, int]] = Counter()
    for segment in made.streams[SINK].segments:
        data = made.segments[segment_name(SINK, segment.id)].data
        for _, event in decoded([memoryview(bytes(data))], 0):
            row = json.loads(event)
            found[row["k"], row["batch"]] += 1
    return found


def assert_exact(made: World) -> None:
    """Check that each row of each batch is in the sink once, and the ledger is whole."""
    assert counts(made) == Counter((row.key, at) for at in range(BATCHES) for row in rows_of(at))
    ledger = QueryLedger(ModelStore(made), QUERY_ID, SINK)
    state = ledger.load()
    assert state.last is not None
    assert (state.last.batch, state.rows) == (BATCHES - 1, BATCHES * len(rows_of(0)))


def calls_of_a_run() -> int:
    """Return the number of calls in a run that nothing disturbs."""
    calls: list[str] = []

    def gate(name: str) -> Fate:
        calls.append(name)
        return Fate.DONE

    made = world()
    Attempt(made, gate, []).run()
    assert_exact(made)
    return len(calls)


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
@pytest.mark.parametrize("at", range(calls_of_a_run()))
def test_a_killed_query_loses_and_repeats_no_row(at: int, fate: Fate) -> None:
    """The query is killed before or after each call to the store. The next attempt goes on."""
    made, done = world(), list[int]()
    calls = 0

    def gate(_name: str) -> Fate:
        nonlocal calls
        calls += 1
        if calls > at + 1:
            raise Killed
        return fate if calls == at + 1 else Fate.DONE

    with pytest.raises((SluiceError, Killed)):
        Attempt(made, gate, done).run()
    Attempt(made, lambda _: Fate.DONE, done).run()
    assert_exact(made)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 2), max_size=60))
def test_attempts_side_by_side_write_each_row_once(turns: list[int]) -> None:
    """Frozen attempts go on at any time, superseded ones end, and a last attempt does the rest."""
    made, done = world(), list[int]()
    running: dict[int, Iterator[None]] = {}
    for turn in turns:
        if turn not in running:
            running[turn] = Attempt(made, lambda _: Fate.DONE, done).steps()
        try:
            next(running[turn])
        except (StopIteration, QuerySuperseded):
            del running[turn]
    Attempt(made, lambda _: Fate.DONE, done).run()
    for steps in running.values():  # they notice that, or have nothing left to write
        with suppress(QuerySuperseded):
            deque(steps, maxlen=0)
    assert_exact(made)


def test_a_long_ledger_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is truncated before a summary, which tells the same."""
    monkeypatch.setattr("sluice.engine.query.ledger.COMPACT_AT", 1)
    made = world()
    Attempt(made, lambda _: Fate.DONE, []).run()
    assert_exact(made)
    ledger = QueryLedger(ModelStore(made), QUERY_ID, SINK)
    ledger.load()
    assert made.segments[ledger.name].start > 0


@pytest.mark.parametrize("marks", [(), (f"{TAG_QUERY}{'f' * 32}",)], ids=["none", "a query's"])
def test_a_stream_of_others_is_left_alone(marks: tuple[str, ...]) -> None:
    """The stream of another client, or the sink of another query, is refused and gets no rows."""
    made = world()
    store = ModelStore(made)
    store.create_stream(SINK, StreamConfig(scaling=Scaling(min_segments=1), tags=marks))
    with pytest.raises(TargetExists):
        make_sink(sink(), store, QUERY_ID)
    with pytest.raises(TargetExists):
        ResultAppender(sink(), store, QUERY_ID, 1)
    assert not any(made.bytes_of(SINK))


def test_a_sink_that_was_changed_is_refused() -> None:
    """Rows of a key would go to two segments of a scaled sink, and nowhere in a sealed one."""
    made = world()
    store = ModelStore(made)
    make_sink(sink(), store, QUERY_ID)
    first = made.streams[SINK].segments[0]
    store.scale(SINK, [first.id], _halves(first.keys.low, first.keys.high))
    with pytest.raises(TargetReplaced):
        make_sink(sink(), store, QUERY_ID)
    store.seal_stream(SINK)
    with pytest.raises(TargetSealed):
        make_sink(sink(), store, QUERY_ID)


def test_a_scope_that_is_missing_is_named() -> None:
    """The query makes no scope, so the error names the missing one."""
    nowhere = sink().model_copy(update={"stream": StreamName(scope="nowhere", stream="counts")})
    with pytest.raises(TargetScopeNotFound, match="no scope nowhere"):
        make_sink(nowhere, ModelStore(World()), QUERY_ID)


def _halves(low: float, high: float) -> list[KeyRange]:
    middle = (low + high) / 2
    return [KeyRange(low=low, high=middle), KeyRange(low=middle, high=high)]


def test_a_sink_that_was_deleted_is_not_made_again() -> None:
    """The sink's results are gone, though the ledger still counts them."""
    made = world()
    Attempt(made, lambda _: Fate.DONE, []).run()
    store = ModelStore(made)
    check_sink(sink(), store, QUERY_ID)
    store.seal_stream(SINK)
    store.delete_stream(SINK)
    with pytest.raises(TargetReplaced, match="was deleted"):
        check_sink(sink(), store, QUERY_ID)


def test_a_version_that_is_fenced_appends_no_more_until_it_is_released() -> None:
    """This holds wherever its attempts stand. The number of its last batch stays known."""
    made = world()
    store = ModelStore(made)
    sinks = [(sink(), store)]
    make_sink(sink(), store, QUERY_ID)
    assert (written(sinks, QUERY_ID, 1), fence(sinks, QUERY_ID, 1)) == (-1, -1)
    with ResultAppender(sink(), store, QUERY_ID, 1) as late, pytest.raises(QuerySuperseded):
        late.append(0, rows_of(0), PART)
    release(sinks, QUERY_ID, 1)
    with ResultAppender(sink(), store, QUERY_ID, 1) as frozen:
        frozen.append(7, rows_of(7, keys=1), PART)
        assert [written(sinks, QUERY_ID, version) for version in (1, 2)] == [7, -1]
        assert [fence(sinks, QUERY_ID, 1) for _ in range(2)] == [7, 7]
        with pytest.raises(QuerySuperseded):
            frozen.append(8, rows_of(8), PART)
    release(sinks, QUERY_ID, 1)
    release(sinks, QUERY_ID, 1)
    with ResultAppender(sink(), store, QUERY_ID, 1) as again:
        assert again.append(7, rows_of(7, keys=1), PART) == 0
        again.append(8, rows_of(8), PART)
    assert written(sinks, QUERY_ID, 1) == 8


def test_a_forged_division_of_a_batch_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many blocks, their numbers would be those of later batches."""
    monkeypatch.setattr("sluice.engine.query.results._PART_BITS", 1)
    store = ModelStore(world())
    make_sink(sink(), store, QUERY_ID)
    appending = ResultAppender(sink(), store, QUERY_ID, 1)
    with appending as appender, pytest.raises(JournalDamaged, match="blocks"):
        appender.append(0, rows_of(0), 1)


def test_a_sink_with_rows_and_without_a_ledger_is_refused() -> None:
    """Without the ledger, the query would write these rows again."""
    made = world()
    store = ModelStore(made)
    make_sink(sink(), store, QUERY_ID)
    make_sink(sink(), store, QUERY_ID)
    with ResultAppender(sink(), store, QUERY_ID, 1) as appender:
        appender.append(0, rows_of(0), PART)
    with pytest.raises(TargetExists, match="has rows"):
        make_sink(sink(), store, QUERY_ID)


def test_an_attempt_that_was_superseded_writes_nothing_though_it_has_read_on() -> None:
    """Reading the record of a later attempt does not give the ledger back to the earlier one."""
    made = world()
    store = ModelStore(made)
    earlier, later = (QueryLedger(store, QUERY_ID, SINK) for _ in range(2))
    earlier.begin()
    later.begin()
    earlier.load()
    with pytest.raises(QuerySuperseded):
        earlier.add(FIRST)
    later.add(FIRST)


def test_the_ledger_of_another_query_is_damage() -> None:
    """Any client may write beside a sink, so the ledger's plan must be that of the query."""
    made = world()
    store = ModelStore(made)
    ledger = QueryLedger(store, QUERY_ID, SINK)
    ledger.begin()
    other = query_plan(query_id="f" * 32)
    record = record_frames.frame(record_json(FIRST.model_copy(update={"plan": other})))
    assert store.append_at(ledger.name, ledger.end, record)
    with pytest.raises(JournalDamaged, match="another query"):
        QueryLedger(store, QUERY_ID, SINK).load()


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.REPLY_LOST])
def test_a_record_is_written_once_though_a_call_is_lost(fate: Fate) -> None:
    """The attempt asks the store again, and recognises its own record."""
    made, lost = world(), [fate]
    Attempt(made, lambda _: Fate.DONE, []).run()

    def gate(name: str) -> Fate:
        return lost.pop() if lost and name.startswith("append_at") else Fate.DONE

    ledger = QueryLedger(ModelStore(made), QUERY_ID, SINK)
    ledger.begin()
    ledger._store = ModelStore(made, gate)
    record = BegunRecord(batch=BATCHES, ends=(position(1),), keys="0" * 64, part=1)
    ledger.add(record)
    assert not lost
    assert QueryLedger(ModelStore(made), QUERY_ID, SINK).load().begun == record
