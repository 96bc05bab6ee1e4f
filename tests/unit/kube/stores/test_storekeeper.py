"""The protection of a StreamStore that a schedule needs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.errors import AccessDenied
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import OWN, SECRET, STREAM_ARCHIVE, STREAM_STORE
from sluice.kube.api.objects import IN_USE_FINALIZER, STAGING_FINALIZER
from sluice.kube.api.status import StatusWriter
from sluice.kube.loop.queue import Key, WorkQueue
from sluice.kube.stores.probes import Probed
from sluice.kube.stores.storekeeper import StoreKeeper
from support.cases.resources import ARCHIVE, BUCKET, STORE, changed
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.stores.probes import Probes

STORES = ("local", "archives")
HEALTHY = StoreHealth(latency=0.0, protocol=1)
SCHEDULE = {"cron": "0 3 * * *"}
THINGS = ((STREAM_STORE, "local"), (STREAM_STORE, "archives"), (SECRET, "keys"))
NIGHTLY = (STREAM_ARCHIVE, "orders")


class TurningServer(FinalizingServer):
    """An API server during whose calls other clients make theirs. `patched` lists changed kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.patched: set[Kind] = set()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See Api.get."""
        await asyncio.sleep(0)
        return await super().get(kind, namespace, name)

    async def list(self, kind: Kind, namespace: str | None, **wanted: Any) -> list[Object]:
        """See Api.list."""
        found = await super().list(kind, namespace, **wanted)
        await asyncio.sleep(0)
        return found

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """See Api.patch."""
        self.patched.add(kind)
        await asyncio.sleep(0)
        return await super().patch(kind, namespace, name, body)


class Bench:
    """A namespace with two stores, a Secret and an archive, and the keeper of its stores."""

    def __init__(
        self,
        *finalizers: str,
        shared: bool = False,
        hold_secrets: bool = True,
        answer: StoreHealth | Trouble = HEALTHY,
        **spec: Any,
    ) -> None:
        self.server, self._mirror = TurningServer(), Mirror()
        self.server.put(SECRET, {"metadata": {"name": "keys"}})
        login = {"basic": {"secretRef": {"name": "keys"}}}
        live = changed(STORE, "spec.pravega.auth", login) if shared else STORE
        for body in (live, BUCKET):
            self.server.put(STREAM_STORE, changed(body, "metadata.generation", 1))
        meta = {"name": "orders", "finalizers": list(finalizers)}
        archive = ARCHIVE | {"metadata": meta, "spec": ARCHIVE["spec"] | spec}
        self.server.put(STREAM_ARCHIVE, archive)
        self.answer = answer

        async def look(*_: object, **__: object) -> Probed:
            return Probed(self.answer, datetime.now(UTC), 0.0, "u", 1)

        probes = SimpleNamespace(look=look, forget=lambda *_: None)
        recorder = SimpleNamespace(mention=lambda *_: None)
        self._keeper = StoreKeeper(
            self.server.api,
            queue=WorkQueue(),
            mirror=self._mirror,
            probes=cast("Probes", probes),
            statuses=StatusWriter(self.server.api, cast("Recorder", recorder)),
            hold_secrets=hold_secrets,
        )
        self.look()

    def look(self) -> None:
        """Show the news to the operator, and have it look at both stores at once."""
        for kind, body, gone in self.server.news:
            if kind in OWN:
                self._mirror.see(OWN[kind], body, gone=gone)
        self.server.news.clear()
        keys = [Key(STREAM_STORE.name, "default", name) for name in STORES]

        async def both() -> None:
            await asyncio.gather(*map(self._keeper.reconcile, keys))

        asyncio.run(both())

    def held(self) -> list[str]:
        """Return the names of the objects that have the finalizer."""
        return [
            name
            for kind, name in THINGS
            if IN_USE_FINALIZER in (self.server.finalizers(kind, name) or ())
        ]

    def store(self) -> tuple[int, str, str]:
        """Return the number of users of the store `archives`, and its reason and message."""
        status = (self.server.body(STREAM_STORE, "archives") or {})["status"]
        (ready,) = [one for one in status["conditions"] if one["type"] == "Ready"]
        return status["inUseBy"], ready["reason"], ready["message"]


@pytest.mark.parametrize("suspend", [False, True])
def test_a_schedule_holds_its_stores_between_its_runs(*, suspend: bool) -> None:
    """Both stores and the Secret are held, also while the archive is suspended."""
    bench = Bench(schedule=SCHEDULE, suspend=suspend)
    assert bench.held() == ["local", "archives", "keys"]
    assert bench.store()[:2] == (1, "Reachable")
    bench.server.remove(STREAM_STORE, "archives")
    bench.look()
    users, reason, message = bench.store()
    assert (users, reason) == (1, "InUse")
    assert message == (
        "It was deleted and goes when these are done or deleted: StreamArchive orders."
    )


def test_no_secret_is_changed_where_the_operator_may_not() -> None:
    """The stores are held and released as usual. The status names no Secret."""
    bench = Bench(schedule=SCHEDULE, shared=True, hold_secrets=False)
    assert bench.held() == ["local", "archives"]
    for name in ("local", "archives"):
        assert not (bench.server.body(STREAM_STORE, name) or {})["status"].get("heldSecrets")
    bench.server.remove(*NIGHTLY)
    bench.look()
    assert bench.held() == []
    assert SECRET not in bench.server.patched


def test_a_secret_that_does_not_consent_is_not_held() -> None:
    """A user who may name the Secret cannot block its deletion. A held Secret stays held."""
    denied = Trouble.of(AccessDenied("the Secret 'keys' lacks the label"))
    bench = Bench(schedule=SCHEDULE, answer=denied)
    assert bench.held() == ["local", "archives"]
    assert SECRET not in bench.server.patched
    bench = Bench(schedule=SCHEDULE)
    bench.answer = denied
    bench.look()
    assert bench.held() == ["local", "archives", "keys"]


def test_an_archive_without_a_schedule_holds_nothing_at_rest() -> None:
    """The archive begins no other run by itself."""
    bench = Bench()
    assert bench.held() == []
    assert bench.store()[0] == 0


def test_a_schedule_that_is_removed_lets_its_stores_go() -> None:
    """The stores are then as free as without a schedule."""
    bench = Bench(schedule=SCHEDULE)
    bench.server.edit(*NIGHTLY, spec=ARCHIVE["spec"])
    bench.look()
    assert bench.held() == []


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("order", list(permutations((*THINGS, NIGHTLY))))
def test_all_can_be_deleted_in_any_order(
    order: tuple[tuple[Any, str], ...], *, shared: bool
) -> None:
    """This holds for the deletion of a namespace, even if both stores share a Secret."""
    bench = Bench(schedule=SCHEDULE, shared=shared)
    for kind, name in order:
        bench.server.remove(kind, name)
        bench.look()
    bench.look()
    assert [(kind, name) for kind, name in order if bench.server.body(kind, name)] == []


def test_stores_that_are_released_at_once_let_their_secret_go() -> None:
    """Neither store leaves the Secret to the other."""
    bench = Bench(schedule=SCHEDULE, shared=True)
    assert bench.held() == ["local", "archives", "keys"]
    bench.server.remove(*NIGHTLY)
    bench.look()
    assert bench.held() == []


@pytest.mark.parametrize("finalizer", ["foregroundDeletion", "other.example/mine"])
def test_a_schedule_that_was_deleted_and_is_kept_by_others_holds_nothing(finalizer: str) -> None:
    """The archive begins no other run. Its own staged bytes hold the stores until the cleanup."""
    for finalizers, held in (
        ((finalizer,), []),
        ((finalizer, STAGING_FINALIZER), ["local", "archives", "keys"]),
    ):
        bench = Bench(*finalizers, schedule=SCHEDULE)
        bench.server.remove(*NIGHTLY)
        bench.look()
        assert bench.held() == held
