"""How often stores are asked: by a clock that the tests move."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from sluice.core.values.model import StoreHealth
from sluice.errors import StoreUnavailable
from sluice.kube.stores import probes
from sluice.kube.stores.probes import Probes
from support.cases.resources import STORE, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probed

OBJECT: Object = changed(STORE, "metadata", {"name": "local", "namespace": "team", "uid": "u"})


class Asking:
    """Probes of a store that is away until it is said to be there; counts what it is asked."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.now = 1000.0
        self.asked = 0
        self.there = False
        self._probes = Probes(cast("Connections", self), threads)

    async def place(self, *_: Any, **__: Any) -> Self:
        """As Connections.place."""
        return self

    def probe(self) -> StoreHealth:
        """As Store.probe."""
        self.asked += 1
        if not self.there:
            raise StoreUnavailable("no connection")
        return StoreHealth(latency=0.0, protocol=1)

    def monotonic(self) -> float:
        """As time.monotonic."""
        return self.now

    def look(self, body: Object = OBJECT, **how: Any) -> Probed:
        """Look at the store."""
        return asyncio.run(self._probes.look(body, **how))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """A store that is away."""
    with ThreadPoolExecutor(1) as threads:
        asking = Asking(threads)
        monkeypatch.setattr(probes, "time", asking)
        yield asking


def asked_at(store: Asking, seconds: int, **how: Any) -> list[int]:
    """The seconds at which a store is asked that is looked at once a second."""
    times, begun = [], store.now
    for second in range(seconds):
        before, store.now = store.asked, begun + second
        store.look(**how)
        times += [second] if store.asked > before else []
    return times


def test_a_store_that_is_away_is_asked_less_and_less(store: Asking) -> None:
    """However often somebody looks; once it answers, it is asked as ever, and counts anew."""
    assert asked_at(store, 200) == [0, 4, 13, 32, 71, 130, 189]
    store.there = True
    assert asked_at(store, 100) == [49, 78]
    store.there = False
    assert asked_at(store, 50) == [8, 12, 21, 40]


def test_whoever_is_new_has_a_store_that_is_away_asked_at_once(store: Asking) -> None:
    """A hundred copies that are made at once do not ask it a hundred times."""
    assert asked_at(store, 100)[-1] == 71
    store.there = True
    assert store.look(max_age=60).failures == 5
    assert store.look(max_age=60, eager=True).failures == 0
    asked = store.asked
    assert isinstance(store.look(eager=True).answer, StoreHealth)
    assert store.asked == asked


def test_a_changed_spec_has_a_store_asked_at_once(store: Asking) -> None:
    """It may be another store, or another login: what was counted of the old one is forgotten."""
    asked_at(store, 100)
    assert store.look(changed(OBJECT, "metadata.generation", 2)).failures == 1
