"""Queries write each result once to a real store, however they end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from sluice.core.values.model import StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.query.results import ResultAppender
from sluice.errors import (
    CheckpointDiverged,
    CheckpointLost,
    MalformedEvents,
    QuerySuperseded,
    SourceNotFound,
    StateTooLarge,
    TargetExists,
)
from sluice.pipelines.query.arrow import query as arrow
from sluice.pipelines.query.arrow.checkpoint import ArrowCheckpoint
from sluice.pipelines.query.arrow.query import ArrowQuery
from sluice.pipelines.query.session import HEAP
from support.query.query_runs import ROUNDS
from support.store.clicks import KEYS
from support.store.counts import SQL, assert_counted, results
from support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from sluice.pipelines.query.arrow.checkpoint import PlannedOffset
    from sluice.stores.base import Store
    from support.query.query_runs import QueryRuns
    from support.store.clicks import Clicks

LATE = 5
"""The number of events that come after their window has closed."""


@pytest.mark.exhaustive
def test_windows_are_counted_once_over_runs_and_scale_events(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """Each run goes on where the last one ended. The source is scaled between them."""
    clicks.write(ROUNDS)
    query.run()
    clicks.split()
    clicks.write(ROUNDS)
    query.run()
    assert_counted(results(store, clicks.name), clicks)
    assert query.run() == 0
    assert_counted(results(store, clicks.name), clicks)


class Ended(BaseException):
    """The exception that ends the process."""


@pytest.fixture(
    params=[
        "between two segments",
        pytest.param("before the rows", marks=pytest.mark.exhaustive),
        pytest.param("before the ledger", marks=pytest.mark.exhaustive),
        pytest.param("behind it", marks=pytest.mark.exhaustive),
    ]
)
def ended(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process once, at the parameter's point of a batch with rows."""
    point, left = request.param, [1]

    def end() -> None:
        if left:
            left.pop()
            raise Ended

    append, send, add = ResultAppender.append, ResultAppender._send, QueryLedger.add

    def appending(self: ResultAppender, batch: int, rows: Any, most: int) -> int:
        if rows and point == "before the rows":
            end()
        done = append(self, batch, rows, most)
        if rows and point == "before the ledger":
            end()
        return done

    def sending(self: ResultAppender, segment: int, batch: int, parts: Any) -> int:
        sent = send(self, segment, batch, parts)
        if point == "between two segments":
            self._open[segment].flush()
            end()
        return sent

    def adding(self: QueryLedger, record: Any) -> None:
        add(self, record)
        if record.record == "batch" and record.rows and point == "behind it":
            end()

    monkeypatch.setattr(ResultAppender, "append", appending)
    monkeypatch.setattr(ResultAppender, "_send", sending)
    monkeypatch.setattr(QueryLedger, "add", adding)


@pytest.mark.usefixtures("ended")
def test_a_batch_that_was_cut_off_is_written_once(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """An interrupted batch is repeated. The store refuses the rows that it has already."""
    clicks.write(2 * ROUNDS)
    with pytest.raises(Ended):
        query.run()
    query.run()
    assert_counted(results(store, clicks.name), clicks)


@pytest.mark.exhaustive
def test_late_events_are_counted_once(
    query: QueryRuns, clicks: Clicks, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events of closed windows are left out and counted. A repeated batch counts none twice."""
    clicks.write(2 * ROUNDS)
    query.run()
    ledger = QueryLedger(
        store, query.identity, StreamName(scope=clicks.name.scope, stream="counts")
    )
    before, rows = ledger.load().late, results(store, clicks.name)
    for number in range(LATE):
        event = {"k": "key-1", "n": number, "v": 0, "ts": "2026-01-01T00:00:30Z"}
        clicks.write_raw(json.dumps(event).encode())
    add, left = QueryLedger.add, [1]

    def adding(self: QueryLedger, record: Any) -> None:
        if left and record.record == "batch" and record.late:
            left.pop()
            raise Ended
        add(self, record)

    monkeypatch.setattr(QueryLedger, "add", adding)
    with pytest.raises(Ended):
        query.run()
    assert ledger.load().late == before
    query.run()
    assert ledger.load().late == before + LATE
    assert results(store, clicks.name) == rows


@pytest.mark.exhaustive
def test_a_second_attempt_ends_the_first(
    query: QueryRuns, clicks: Clicks, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second attempt begins during a batch of the first. The first then writes nothing."""
    clicks.write(2 * ROUNDS)
    add, left = QueryLedger.add, [1]

    def adding(self: QueryLedger, record: Any) -> None:
        if left and record.record == "begun":
            left.pop()
            other = QueryLedger(store, self._query, self._sink)
            other.begin()
        add(self, record)

    monkeypatch.setattr(QueryLedger, "add", adding)
    with pytest.raises(QuerySuperseded):
        query.run()
    assert results(store, clicks.name) == []
    query.run()
    assert_counted(results(store, clicks.name), clicks)


@pytest.mark.exhaustive
def test_a_lost_checkpoint_is_said_and_a_restart_reads_on(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """Without its checkpoint a query stops, since it would count windows twice.

    With `onChange: Restart` a new version begins after the last batch.
    """
    clicks.write(ROUNDS)
    query.run()
    before = results(store, clicks.name)
    query.folder = query.folder.with_name("lost")
    with pytest.raises(CheckpointLost):
        query.run()
    assert query.run(onChange="Restart") == 0
    clicks.write(ROUNDS)
    query.run(onChange="Restart")
    rows = results(store, clicks.name)
    assert [row for row in rows if row in before] == before
    # The window that was open at the checkpoint's loss has only later events.
    later = {(row["start"], row["k"]) for row in rows if row not in before}
    assert len(later) == len(rows) - len(before)


@pytest.mark.exhaustive
def test_an_old_checkpoint_is_refused(query: QueryRuns, clicks: Clicks, tmp_path: Path) -> None:
    """An old copy of the checkpoint is refused, since its next batches were written already."""
    clicks.write(ROUNDS)
    query.run()
    now = query.folder
    copy = tmp_path / "copy"
    _copy(now, copy)
    clicks.write(ROUNDS)
    query.run()
    query.folder = copy
    with pytest.raises(CheckpointDiverged):
        query.run()
    query.folder = now
    assert query.run() == 0


def _copy(folder: Path, to: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            there = to / file.relative_to(folder)
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(file.read_bytes())


@pytest.mark.exhaustive
def test_a_query_goes_on_behind_events_that_the_stream_has_lost(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """What was read before the end of a run is not read again."""
    clicks.write(ROUNDS)
    query.run()
    clicks.truncate()
    assert query.run() == 0
    clicks.write(ROUNDS)
    query.run()
    assert_counted(results(store, clicks.name), clicks)


@pytest.mark.parametrize("query", ["Arrow"], indirect=True)
def test_a_run_that_ends_while_it_repeats_batches_loses_none(
    query: QueryRuns, clicks: Clicks, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are planned behind a state. A run reads some of them again, and ends."""
    monkeypatch.setattr(arrow, "_LONGEST", 0.0)
    clicks.write(4 * ROUNDS)
    with monkeypatch.context() as patched:
        patched.setattr(ArrowCheckpoint, "keep", lambda *_: None)
        query.run()
    finish, left = ArrowQuery._finish, [3]

    def finishing(self: ArrowQuery, planned: PlannedOffset) -> None:
        left[0] -= 1
        if not left[0]:
            raise Ended
        finish(self, planned)

    with monkeypatch.context() as patched:
        patched.setattr(ArrowQuery, "_finish", finishing)
        with pytest.raises(Ended):
            query.run()
    clicks.write(ROUNDS)
    query.run()
    assert_counted(results(store, clicks.name), clicks)


@pytest.mark.exhaustive
def test_malformed_events_end_a_query_with_their_place(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """A malformed event ends the query with its pointer.

    With `malformed: Drop` a new version goes on, and counts those that it leaves out.
    """
    clicks.write(ROUNDS)
    clicks.write_raw(b"no JSON")
    with pytest.raises(MalformedEvents, match=r"0\.#epoch\.0:\d+-15"):
        query.run()
    dropping = {"onChange": "Restart", "sources__0__malformed": "Drop"}
    assert query.run(**dropping) > 0
    ledger = QueryLedger(
        store, query.identity, StreamName(scope=clicks.name.scope, stream="counts")
    )
    assert ledger.load().malformed == 1
    clicks.write_raw(b"no JSON either")
    clicks.write_raw(b'{"k": "key-1", "n": "no number", "ts": "2026-01-01T00:30:00Z"}')
    clicks.write(2 * ROUNDS)
    query.run(**dropping)
    state = ledger.load()
    assert state.malformed == 3
    assert state.last is not None
    assert state.last.latency is not None
    clicks.write_raw(b"no JSON again")
    clicks.write(2 * ROUNDS)
    query.run(
        **dropping,
        sources__0__schema="k STRING NOT NULL, n BIGINT NOT NULL, v DOUBLE, ts TIMESTAMP NOT NULL",
    )
    assert ledger.load().malformed == 4
    assert all(row["k"].startswith("key-") for row in results(store, clicks.name))


@pytest.mark.exhaustive
def test_windows_that_take_too_much_memory_are_said_and_more_memory_goes_on(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """The query ends before its process would, and writes nothing of the batch. Nothing is lost."""
    query.heap = 1 << 10
    clicks.write(3 * ROUNDS)  # so many bytes that there are several batches
    with pytest.raises(StateTooLarge, match=r"rows of open windows take .* of 1.0 kB of memory"):
        query.run()
    query.heap = HEAP
    query.run()
    clicks.write(2 * ROUNDS)
    query.run()
    assert_counted(results(store, clicks.name), clicks)


@pytest.mark.exhaustive
def test_what_is_missing_or_taken_is_said(query: QueryRuns, clicks: Clicks, store: Store) -> None:
    """A missing source is an error before the sink is made. So is a sink of another query."""
    clicks.write(1)
    with pytest.raises(SourceNotFound):
        query.run(sources__0__stream__stream="nothing")
    assert store.list_streams(clicks.name.scope) == ["clicks"]
    clicks.write(ROUNDS)
    query.run()
    query.folder = query.folder.with_name("other")
    with pytest.raises(TargetExists):
        query.run(name="other")


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", ["", "WHERE k = 'key-3'"])
def test_the_windows_of_an_idle_stream_are_closed(
    query: QueryRuns, clicks: Clicks, store: Store, where: str
) -> None:
    """Once no events come, the clock closes windows, also in a query that filters events."""
    clicks.write(ROUNDS)
    sql = SQL.replace("GROUP BY", f"{where} GROUP BY")
    with query.running(sources__0__eventTime__idleAfterSeconds=1, query__sql=sql):
        keys = 1 if where else KEYS
        until("both windows are closed", lambda: len(results(store, clicks.name)) >= 2 * keys)
    found = results(store, clicks.name)
    assert sum(row["n"] for row in found) == ROUNDS * keys
    assert len(found) == 2 * keys
    assert all(row["k"] is not None for row in found)
