"""Fixtures for queries: one Spark session, whose JVM starts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.pipelines.query.session import query_session
from support.until import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


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
