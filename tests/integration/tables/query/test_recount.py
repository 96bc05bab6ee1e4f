"""DuckDB computes a query's results anew, and the comparison finds differences in the sink."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sluice.core.values.model import StreamName
from sluice.engine.query.ledger import QueryLedger
from sluice.engine.streams.writing import EventWriter, Routed
from sluice.errors import InvalidQuery, QueryChanged, SourceTruncated
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.recount import recounted
from support.query.query_runs import ROUNDS
from support.store.counts import results

if TYPE_CHECKING:
    from typing import Any

    from sluice.pipelines.query.recount import SinkComparison
    from sluice.stores.base import Store
    from support.query.query_runs import QueryRuns
    from support.store.clicks import Clicks

pytestmark = pytest.mark.exhaustive

SLIDING = (
    "SELECT window.end AS until, k, count(*) AS n, avg(v) AS mean FROM clicks WHERE n % 3 <> 0"
    " GROUP BY window(ts, '2 minutes', '1 minute'), k"
)


def verified(query: QueryRuns, clicks: Clicks, store: Store, **changes: Any) -> SinkComparison:
    """Compare a query's sink with its results by DuckDB."""
    sink = StreamName(scope=clicks.name.scope, stream="counts")
    request = query.request(**changes)
    ledger = QueryLedger(store, request.query_id, sink)
    with Stores(query.settings) as stores:
        (found,) = recounted(request, ledger, stores, query.settings)
    return found


@pytest.mark.parametrize(
    ("query", "sql"),
    [
        pytest.param("Spark", None, id="tumbling by Spark"),
        pytest.param("Spark", SLIDING, id="sliding by Spark"),
        pytest.param("Arrow", None, id="tumbling by Arrow"),
    ],
    indirect=["query"],
)
def test_results_are_those_of_another_engine(
    query: QueryRuns, clicks: Clicks, store: Store, sql: str | None
) -> None:
    """Over scale events and several runs the results are equal. A forged row is found."""
    changes = {} if sql is None else {"query__sql": sql}
    with pytest.raises(InvalidQuery, match="no batch"):
        verified(query, clicks, store, **changes)
    clicks.write(2 * ROUNDS)
    query.run(**changes)
    clicks.split()
    clicks.write(2 * ROUNDS)
    query.run(**changes)
    found = verified(query, clicks, store, **changes)
    rows = results(store, clicks.name)
    assert (found.equal, found.rows, found.examples) == (True, len(rows), ())
    with pytest.raises(QueryChanged, match="version 1"):
        verified(query, clicks, store, query__sql="SELECT k FROM clicks")
    forged = json.dumps(rows[0]).encode()
    EventWriter(store, found.sink).write([Routed(0.0, forged)])
    found = verified(query, clicks, store, **changes)
    assert (found.equal, found.missing, found.extra) == (False, 0, 1)
    (example,) = found.examples
    assert example.startswith("+ ")


def test_a_version_is_compared_with_what_it_has_read(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """A version is compared with its own events only. Lost events of its source are an error."""
    clicks.write(2 * ROUNDS)
    query.run()
    before = len(results(store, clicks.name))
    clicks.write(2 * ROUNDS)
    again = {"query__sql": "SELECT k, n FROM clicks WHERE v > 0", "onChange": "Restart"}
    query.run(**again)
    found = verified(query, clicks, store, **again)
    assert (found.equal, found.rows) == (True, len(results(store, clicks.name)) - before)
    clicks.truncate()
    with pytest.raises(SourceTruncated):
        verified(query, clicks, store, **again)
