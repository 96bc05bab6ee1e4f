"""Looks with and without a call for the resource itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from sluice.api.status.common import Condition, ConditionType, ResourceStatus
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import EPHEMERAL_STREAM
from sluice.kube.api.objects import REQUESTED_AT
from sluice.kube.api.status import StatusWriter
from sluice.kube.loop.queue import Key
from sluice.kube.loop.reconciler import LONG, Reconciler
from support.kube.api_server import BEGAN, ApiServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.kube.api.client import Api
    from sluice.kube.api.events import Recorder
    from sluice.kube.api.kinds import Kind, Object
    from sluice.kube.loop.reconciler import Workings

KEY: Final = Key(EPHEMERAL_STREAM.name, "default", "one")
AGAIN: Final = 7.0


@dataclass
class Decision:
    """A decision with the values that a test sets."""

    status: ResourceStatus
    actions: Sequence[Any] = ()
    again: float | None = AGAIN


@dataclass
class Fake:
    """The workings of a kind: its status has the word of the spec, and it may want an action."""

    kind = EPHEMERAL_STREAM
    status = ResourceStatus
    finalizer = "x"
    glances: list[bool] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    acts: bool = False
    ready: bool = True
    again: float | None = AGAIN

    async def look(self, body: Object, *, glance: bool = False) -> Any:
        """Return the object alone."""
        self.glances.append(glance)
        return SimpleNamespace(body=body)

    def decide(self, situation: Any) -> Decision:
        """Report the word, and that the resource is ready or in progress."""
        generation = situation.body["metadata"]["generation"]
        kind = ConditionType.READY if self.ready else ConditionType.RECONCILING
        said = Condition(
            type=kind,
            status="True",
            reason="Claimed",
            message=situation.body["spec"]["word"],
            last_transition_time=BEGAN,
            observed_generation=generation,
        )
        status = ResourceStatus(observed_generation=generation, conditions=(said,))
        return Decision(status, actions=("act",) if self.acts else (), again=self.again)

    async def perform(self, _: Any, action: str) -> None:
        """Note the action."""
        self.done.append(action)

    def written(self, _: ResourceStatus, __: ResourceStatus) -> None:
        """Count nothing."""

    def forget(self, _: str, name: str) -> None:
        """Note the name."""
        self.done.append(f"forget {name}")


class Counting(ApiServer):
    """An API server that counts how often an object is read."""

    reads = 0

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See Api.get."""
        self.reads += 1
        return await super().get(kind, namespace, name)


class Bench:
    """A resource, its state in the watches, and its reconciler."""

    def __init__(self, **parts: Any) -> None:
        self.server, self.mirror, self.fake = Counting(), Mirror(), Fake(**parts)
        recorder = cast("Recorder", SimpleNamespace(mention=lambda *_: None))
        api = cast("Api", self.server)
        workings = cast("Workings[Any, Any]", self.fake)
        self._reconciler = Reconciler(api, workings, StatusWriter(api, recorder), self.mirror)
        self.server.put(
            EPHEMERAL_STREAM, {"metadata": {"name": "one", "generation": 1}, "spec": {"word": "a"}}
        )
        self.show()

    def show(self) -> None:
        """Show the news to the watches."""
        for _, body, gone in self.server.news:
            self.mirror.see(EPHEMERAL_STREAM, body, gone=gone)
        self.server.news.clear()

    def look(self) -> int:
        """Look at the resource. Return the number of reads."""
        before = self.server.reads
        self.again = asyncio.run(self._reconciler.reconcile(KEY))
        return self.server.reads - before

    def word(self) -> str:
        """Return the word of the status at the API server."""
        body = self.server.body(EPHEMERAL_STREAM, "one") or {}
        return str(body["status"]["conditions"][0]["message"])


@pytest.mark.parametrize("ready", [True, False])
def test_a_resource_at_which_nothing_is_to_be_done_is_not_read(*, ready: bool) -> None:
    """It is settled, or the last look at this version changed nothing."""
    bench = Bench(ready=ready)
    assert bench.look() == 1  # the resource is new
    bench.show()
    assert bench.look() == (0 if ready else 1)
    assert [bench.look(), bench.look()] == [0, 0]
    assert bench.again == AGAIN
    assert bench.server.changes == [("apply", "EphemeralStream", "one")]


@pytest.mark.parametrize("again", [LONG, None])
def test_a_resource_that_waits_for_long_is_not_read(again: float | None) -> None:
    """Thousands may wait for one store. A resource with a soon look has mostly changed by then."""
    bench = Bench(ready=False, again=again)
    assert bench.look() == 1
    bench.show()
    assert bench.look() == 0
    assert bench.again == again


def test_a_change_that_the_watches_show_is_decided_on_what_the_api_server_says() -> None:
    """This includes changes that the watches have not shown yet."""
    bench = Bench()
    bench.look()
    bench.show()
    bench.server.edit(EPHEMERAL_STREAM, "one", spec={"word": "b"}, metadata={"generation": 2})
    assert bench.look() == 0  # no change was shown
    bench.show()
    bench.server.edit(EPHEMERAL_STREAM, "one", spec={"word": "c"}, metadata={"generation": 3})
    assert bench.look() == 1
    assert bench.word() == "c"


def test_nothing_is_done_by_a_glance() -> None:
    """Its surroundings may have changed. The operator reads the resource and looks again first."""
    bench = Bench()
    bench.look()
    bench.show()
    bench.fake.glances.clear()
    bench.fake.acts = True
    assert bench.look() == 1
    assert bench.fake.glances == [True, False]
    assert bench.fake.done == ["act"]


def test_a_resource_that_asks_or_leaves_is_read() -> None:
    """A resource that the watches do not show any more is read, too."""
    asked: Object = {"annotations": {REQUESTED_AT: "now"}}
    for meta in (asked, {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["x"]}):
        bench = Bench()
        bench.look()
        bench.server.edit(EPHEMERAL_STREAM, "one", metadata=meta)
        bench.show()
        assert bench.look() == 1
    bench.server.destroy(EPHEMERAL_STREAM, "one")
    bench.show()
    assert bench.look() == 1
    assert bench.fake.done == ["forget one"]
