"""Queries whose spec was changed do not go on over windows of another query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from sluice.errors import QueryChanged
from support.query.query_runs import ROUNDS
from support.store.counts import assert_counted, results

if TYPE_CHECKING:
    from sluice.stores.base import Store
    from support.query.query_runs import QueryRuns
    from support.store.clicks import Clicks

CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another filter": (
        {"query__sql": "SELECT window.start AS start, k, count(*) AS n, sum(n) AS total FROM clicks"
         " WHERE v > 1 GROUP BY window(ts, '1 minute'), k"},
        "spec.query.sql",
    ),
    "longer windows": (
        {"query__sql": "SELECT window.start AS start, k, count(*) AS n, sum(n) AS total FROM clicks"
         " GROUP BY window(ts, '5 minutes'), k"},
        "spec.query.sql",
    ),
    "another lateness": (
        {"sources__0__eventTime__latenessSeconds": 9},
        "spec.sources[clicks].eventTime.latenessSeconds",
    ),
}  # fmt: skip
"""Changes that Spark accepts in silence over the same checkpoint."""


@pytest.mark.exhaustive
def test_changes_that_spark_accepts_in_silence_are_refused(
    query: QueryRuns, clicks: Clicks, store: Store
) -> None:
    """The changed field is named and nothing is written.

    Other words for the same query are allowed.
    """
    clicks.write(ROUNDS)
    query.run()
    before = results(store, clicks.name)
    clicks.write(ROUNDS)
    for change, field in CHANGES.values():
        with pytest.raises(QueryChanged, match=re.escape(f"{field} was ")):
            query.run(**change)
        assert results(store, clicks.name) == before
    same = (
        "select window.start as start, K, count( * ) N, sum(n) -- all of them\n as total "
        "from clicks group by window(ts, '60 seconds'), k"
    )
    same = same.replace("K", "k").replace(" N", " n")
    query.run(query__sql=same)
    assert_counted(results(store, clicks.name), clicks)
