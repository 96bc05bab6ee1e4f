"""Fixtures for queries: one Spark session, and a stream of events that count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.pipelines.query.session import query_session
from sluice.stores.connect import connect
from support.store.clicks import Clicks
from support.until import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from localstore import Standalone
    from sluice.stores.base import Store


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkSession]:
    """Yield a session whose JVM all tests of queries share."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SLUICE_STORE_TIMEOUT", str(PATIENT.call))
        with query_session(2) as session:
            yield session


@pytest.fixture
def spark(engine: SparkSession) -> SparkSession:
    """Return a session with tables of its own."""
    return engine.newSession()


@pytest.fixture
def store(standalone: Standalone) -> Iterator[Store]:
    """Yield the shared store."""
    made = connect(StoreAddress(uri=standalone.controller_uri), Settings(timeouts=PATIENT))
    yield made
    made.close()


@pytest.fixture
def clicks(store: Store, scope: str) -> Clicks:
    """Return a new stream in a scope of its own."""
    return Clicks(store, StreamName(scope=scope, stream="clicks"))
