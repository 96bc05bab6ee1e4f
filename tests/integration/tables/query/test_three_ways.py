"""A query has the same results over a stream, over an archive and the stream, and over an archive.

The bytes of the result streams are compared by SHA-256.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from sluice.api.load import load
from sluice.config import Settings
from sluice.core.query.request import query_request
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.workloads.request import store_address
from sluice.pipelines.programs.stores import Stores
from sluice.pipelines.query.arrow.query import run_by_arrow
from sluice.pipelines.query.attempt import Run
from sluice.pipelines.query.planning import planned
from sluice.pipelines.query.spark_query import run_by_spark
from support.archiving.archiving import archive_in
from support.store.counts import assert_counted, manifest, results
from support.until import PATIENT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from localstore import Standalone
    from sluice.stores.base import Store
    from support.store.clicks import Clicks

pytestmark = pytest.mark.exhaustive

WAYS = {"live": "counts", "seam": "counts-of-both", "archive": "counts-of-the-archive"}
"""The stream of the results of each way."""

ROUNDS = 70
"""Events of each key, more than a minute's."""


def digests(store: Store, sink: StreamName) -> list[str]:
    """Return the SHA-256 of each segment of a result stream."""
    stream = store.describe(sink)
    assert stream is not None
    found = []
    for segment in stream.tail:
        name = store.segment_name(sink, segment.id)
        (info,) = store.infos([name])
        assert info is not None
        whole = hashlib.sha256()
        for block in store.read(name, 0, info.length):
            whole.update(block.data)
        found.append(whole.hexdigest())
    return found


def test_the_results_have_one_hash(
    spark: SparkSession, standalone: Standalone, store: Store, clicks: Clicks, tmp_path: Path
) -> None:
    """The stream is scaled before and after the seam. In the end it loses all archived events."""
    uri = standalone.controller_uri
    clicks.write(ROUNDS)
    clicks.renew(3)
    clicks.write(ROUNDS)
    seam = clicks.cut()
    archive_in(tmp_path / "archive", clicks, store)
    clicks.renew(2)
    clicks.write(ROUNDS)
    end = clicks.cut()

    def run(way: str, engine: str = "Spark") -> int:
        """Run the query to the tail. In each way its batches end at the scale events."""
        sink = f"{WAYS[way]}{'' if engine == 'Spark' else '-by-arrow'}"
        changes = {"sinks__0__stream__stream": sink, "engine": engine}
        text = manifest(uri, clicks.name, name=sink, **changes)
        resources = load(text, copies=False)
        (asked,) = resources.queries
        address = store_address(*resources.stores.values())
        request = query_request(asked, lambda *_: address, cluster="local")
        if way != "live":
            (source,) = request.sources
            place = StoreAddress(backend="volume", uri=(tmp_path / "archive").as_uri())
            request = request.model_copy(
                update={"sources": (source.model_copy(update={"archive": place}),)}
            )
        settings = Settings(timeouts=PATIENT)
        session = spark.newSession()
        plan, program = planned(session, request)
        with Stores(settings) as stores:
            how = Run.of(request, tmp_path / sink, listener=lambda *_: None)
            if program is not None:
                return run_by_arrow(plan, program, stores, settings, how)
            return run_by_spark(plan, session, stores, settings, how)

    rows = run("live")
    assert_counted(results(store, clicks.name), clicks)
    assert run("live", "Arrow") == rows
    clicks.truncate(seam)
    assert run("seam") == run("seam", "Arrow") == rows
    archive_in(tmp_path / "archive", clicks, store)
    clicks.truncate(end)
    assert run("archive") == run("archive", "Arrow") == rows
    scope = clicks.name.scope
    sinks = [*WAYS.values(), *(f"{sink}-by-arrow" for sink in WAYS.values())]
    of_live, *others = [digests(store, StreamName(scope=scope, stream=sink)) for sink in sinks]
    assert others == [of_live] * 5
    assert len(set(of_live)) == len(of_live)
