"""Fixtures for queries: one Spark session, whose JVM starts once, and queries by both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.pipelines.query.session import query_session
from support.query.both_engines import BothEngines, drawn_rows
from support.query.query_runs import QueryRuns
from support.until import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from localstore import Standalone
    from support.store.clicks import Clicks


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkSession]:
    """Yield a session whose JVM all tests of queries share."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SLUICE_STORE_TIMEOUT", str(PATIENT.call))
        with query_session(2) as session:
            yield session


@pytest.fixture
def spark(engine: SparkSession) -> SparkSession:
    """Return a session with temporary tables of its own."""
    return engine.newSession()


@pytest.fixture
def both(spark: SparkSession) -> BothEngines:
    """Return both engines over one table of drawn rows."""
    return BothEngines(spark, drawn_rows(1))


@pytest.fixture(params=["Spark", "Arrow"])
def query(
    spark: SparkSession,
    standalone: Standalone,
    clicks: Clicks,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> QueryRuns:
    """Return the query of a new stream, by each engine."""
    uri, folder = standalone.controller_uri, tmp_path / "checkpoints"
    return QueryRuns(spark, uri, clicks, folder, request.param)
