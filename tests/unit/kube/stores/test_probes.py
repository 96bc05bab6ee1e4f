"""The frequency of probes of stores, by a clock that the tests move."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TYPE_CHECKING, Any, Self, cast

import pytest

from sluice.core.reconcile.store import AWAY, TRIES_AT_ONCE, TRY_SECONDS
from sluice.core.values.model import StoreHealth
from sluice.errors import StoreUnavailable
from sluice.kube.stores import probes
from sluice.kube.stores.probes import Probes
from sluice.stores.deadline import left
from support.cases.resources import STORE, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.kube.api.kinds import Object
    from sluice.kube.stores.connections import Connections
    from sluice.kube.stores.probes import Probed

OBJECT: Object = changed(STORE, "metadata", {"name": "local", "namespace": "team", "uid": "u"})


class Asking:
    """Probes of a store that is unreachable until `there` is set. It counts its probes."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.now = 1000.0
        self.asked = 0
        self.there = False
        self.left: list[float] = []
        self._probes = Probes(cast("Connections", self), threads, lambda: 0.0)

    async def place(self, *_: Any, **__: Any) -> Self:
        """See Connections.place."""
        return self

    def probe(self) -> StoreHealth:
        """See Store.probe."""
        self.asked += 1
        self.left.append(left())
        if not self.there:
            raise StoreUnavailable("no connection")
        return StoreHealth(latency=0.0, protocol=1)

    def monotonic(self) -> float:
        """See time.monotonic."""
        return self.now

    def look(self, body: Object = OBJECT, **how: Any) -> Probed:
        """Look at the store."""
        return asyncio.run(self._probes.look(body, **how))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    """Yield a store that is unreachable."""
    with ThreadPoolExecutor(1) as threads:
        asking = Asking(threads)
        monkeypatch.setattr(probes, "time", asking)
        yield asking


def asked_at(store: Asking, seconds: int, **how: Any) -> list[int]:
    """Look at the store once a second. Return the seconds at which it is probed."""
    times, begun = [], store.now
    for second in range(seconds):
        before, store.now = store.asked, begun + second
        store.look(**how)
        times += [second] if store.asked > before else []
    return times


def test_a_store_that_is_away_is_asked_each_few_seconds(store: Asking) -> None:
    """More looks do not matter. Once it answers, it is probed as usual, and the count restarts."""
    assert asked_at(store, 50) == [0, 4, 11, 18, 25, 32, 39, 46]
    store.there = True
    assert asked_at(store, 100) == [4, 33, 62, 91]
    store.there = False
    assert asked_at(store, 50) == [21, 25, 32, 39, 46]


def test_a_probe_of_a_store_that_was_away_has_seconds(store: Asking) -> None:
    """A call that met a starting server may never be answered, and the next one is."""
    asked_at(store, 20)
    store.there = True
    asked_at(store, 40)
    assert store.left[0] == store.left[-1] == inf
    assert all(seconds <= TRY_SECONDS for seconds in store.left[1:-1])


def test_many_stores_of_a_namespace_that_are_away_share_the_probes(store: Asking) -> None:
    """Each store of the namespace is probed less often. Stores of other namespaces are not."""
    crowd = [changed(OBJECT, "metadata.name", f"store-{number}") for number in range(40)]
    for body in crowd:
        store.look(body)
    assert store.look(crowd[-1]).due == pytest.approx(40 * TRY_SECONDS / TRIES_AT_ONCE)
    assert store.look(changed(OBJECT, "metadata.namespace", "other")).due == AWAY.first


def test_whoever_is_new_has_a_store_that_is_away_asked_at_once(store: Asking) -> None:
    """A hundred copies that are made at once do not cause a hundred probes."""
    assert asked_at(store, 30)[-1] == 25
    store.there = True
    assert store.look(max_age=60).failures == 5
    assert store.look(max_age=60, eager=True).failures == 0
    asked = store.asked
    assert isinstance(store.look(eager=True).answer, StoreHealth)
    assert store.asked == asked


def test_a_changed_spec_has_a_store_asked_at_once(store: Asking) -> None:
    """It may be another store or login, so the count of failures starts anew."""
    asked_at(store, 100)
    assert store.look(changed(OBJECT, "metadata.generation", 2)).failures == 1
