"""Fixtures for the contract of a store. Each test module has a scope of its own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from localstore import Standalone
from sluice.core.values.model import Scaling, StreamConfig, StreamName
from sluice.stores.pravega.store import PravegaStore
from support.until import PATIENT


@pytest.fixture(scope="session")
def store(standalone: Standalone) -> Iterator[PravegaStore]:
    """Yield a client of the shared server."""
    client = PravegaStore(standalone.controller_uri, credentials=None, timeouts=PATIENT)
    yield client
    client.close()


@pytest.fixture(scope="module")
def scope(store: PravegaStore) -> str:
    """Return a scope with a unique name."""
    name = f"contract-{uuid4().hex[:12]}"
    assert store.create_scope(name)
    return name


@pytest.fixture
def name(scope: str) -> StreamName:
    """Return the name of a stream that does not exist."""
    return StreamName(scope=scope, stream=f"s-{uuid4().hex[:12]}")


@pytest.fixture
def stream(store: PravegaStore, name: StreamName) -> StreamName:
    """Return a stream with two empty segments, 0 and 1."""
    assert store.create_stream(name, StreamConfig(scaling=Scaling(min_segments=2)))
    return name


@pytest.fixture
def segment(store: PravegaStore, stream: StreamName) -> str:
    """Return the name of an empty segment of a stream."""
    return store.segment_name(stream, 0)


@pytest.fixture
def staging(store: PravegaStore, stream: StreamName) -> str:
    """Return the name of an empty staging segment beside the stream's segment 0."""
    name = store.staging_name(stream, 0, uuid4().hex)
    assert store.create(name)
    return name
