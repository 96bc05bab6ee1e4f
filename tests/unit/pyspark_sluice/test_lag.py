"""The lag of a query is read from its progress, whatever other sources it has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_sluice.lag import Lag, lag_of

TAIL = {"stream": "shop/clicks", "segments": {}, "bytesBehind": 12}
KAFKA = {"latestOffset": {"topic": {"0": 1}}}


@pytest.mark.parametrize("offset", [TAIL, json.dumps(TAIL)])
def test_each_stream_has_its_lag(offset: Any) -> None:
    """Offsets are objects or texts, depending on Spark's version."""
    sources = [KAFKA, {"latestOffset": offset}, {"latestOffset": None}, {"latestOffset": "7"}, {}]
    progress = {"sources": sources}
    assert lag_of(progress) == [Lag("shop/clicks", 12)]
    assert lag_of(json.dumps(progress)) == [Lag("shop/clicks", 12)]


def test_a_query_without_sources_has_no_lag() -> None:
    """A progress without readable sources has no lag, and raises no error."""
    assert lag_of({}) == []
    assert lag_of({"sources": [{"latestOffset": "no JSON"}]}) == []
