"""Results are in the sinks once, whichever process is killed, frozen or repeated, and when."""

from __future__ import annotations

import json
from collections import Counter, deque
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.core.events.decoding import decoded
from sluice.core.query.ledger import BatchRecord, VersionRecord, check_repeated
from sluice.core.query.rows import digest
from sluice.core.values.model import KeyRange, StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.results import ResultAppender, make_sink
from sluice.errors import (
    BackendError,
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

BATCHES = 4
FIRST = VersionRecord(number=1, plan=query_plan(), begins=(position(0),))


class Killed(BaseException):
    """The process is no more."""


def world() -> World:
    """Return a world with the sink's scope."""
    made = World()
    ModelStore(made).create_scope(SINK.scope)
    return made


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
        """Run the query to its end, batch after batch. Spark repeats one that is not done."""
        make_sink(sink(), self.store, QUERY_ID)
        ledger = QueryLedger(self.store, QUERY_ID, SINK)
        ledger.begin()
        yield
        if ledger.state.version is None:
            ledger.add(FIRST)
        with ResultAppender(sink(), self.store, QUERY_ID, 1) as appender:
            for batch in range(len(self.done), BATCHES):
                yield
                rows = rows_of(batch)
                record = BatchRecord(
                    batch=batch,
                    ends=(position(100 * batch + 100),),
                    rows=len(rows),
                    sha256=digest(rows),
                )
                check_repeated(ledger.state, record)
                ledger.check()
                yield
                appender.append(batch, rows)
                yield
                last = ledger.state.last
                if last is None or last.batch < batch:
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
    """Return the calls that a run makes which nothing disturbs."""
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
    """It is killed at each call to the store, before it or after; the next attempt goes on."""
    made, done = world(), list[int]()
    calls = 0

    def gate(_name: str) -> Fate:
        nonlocal calls
        calls += 1
        return fate if calls == at + 1 else Fate.DONE

    # A process that meets the error ends, as one that is killed at this point.
    with pytest.raises((SluiceError, BackendError)):
        Attempt(made, gate, done).run()
    Attempt(made, lambda _: Fate.DONE, done).run()
    assert_exact(made)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 2), max_size=60))
def test_attempts_side_by_side_write_each_row_once(turns: list[int]) -> None:
    """Frozen attempts go on at any time; a superseded one ends, and a last one makes the rest."""
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
    for steps in running.values():  # they find out, or have nothing left to write
        with suppress(QuerySuperseded):
            deque(steps, maxlen=0)
    assert_exact(made)


def test_a_long_ledger_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is truncated before the summary, and tells the same."""
    monkeypatch.setattr("sluice.engine.query.ledger.COMPACT_AT", 1)
    made = world()
    Attempt(made, lambda _: Fate.DONE, []).run()
    assert_exact(made)
    ledger = QueryLedger(ModelStore(made), QUERY_ID, SINK)
    ledger.load()
    assert made.segments[ledger.name].start > 0


def test_a_stream_of_others_is_left_alone() -> None:
    """Nothing is appended to a stream that another made, or another query."""
    made = world()
    store = ModelStore(made)
    make_sink(sink(), store, "f" * 32)
    with pytest.raises(TargetExists):
        make_sink(sink(), store, QUERY_ID)
    with pytest.raises(TargetExists):
        ResultAppender(sink(), store, QUERY_ID, 1)


def test_a_sink_that_was_changed_is_refused() -> None:
    """Rows of one key would go to two segments, or nowhere."""
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
    """The query makes no scope."""
    nowhere = sink().model_copy(update={"stream": StreamName(scope="nowhere", stream="counts")})
    with pytest.raises(TargetScopeNotFound, match="no scope nowhere"):
        make_sink(nowhere, ModelStore(World()), QUERY_ID)


def _halves(low: float, high: float) -> list[KeyRange]:
    middle = (low + high) / 2
    return [KeyRange(low=low, high=middle), KeyRange(low=middle, high=high)]
