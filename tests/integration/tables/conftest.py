"""Fixtures for streams as tables: a store, and a stream of events that count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.stores.connect import connect
from support.store.clicks import Clicks
from support.until import PATIENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localstore import Standalone
    from sluice.stores.base import Store


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
