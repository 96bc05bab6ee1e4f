"""A replica that takes the Lease, keeps it and gives it back, at an API server in memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from sluice.errors import ApiUnavailable
from sluice.kube.api.fence import Fence
from sluice.kube.api.kinds import LEASE
from sluice.kube.loop import lease
from sluice.kube.loop.lease import LeaseKeeper, LeaseLost
from support.kube.api_server import ApiServer

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

NAME, NAMESPACE = "sluice-operator", "sluice-system"


class Server(ApiServer):
    """An API server that may refuse changes, or carry them out without an answer."""

    refusal: ApiUnavailable | None = None
    is_silent = False

    async def patch(self, kind: Kind, namespace: str, name: str, body: Object) -> Object | None:
        """See Api.patch."""
        if self.refusal is not None:
            raise self.refusal
        found = await super().patch(kind, namespace, name, body)
        if self.is_silent:
            await asyncio.Event().wait()
        return found

    @property
    def spec(self) -> Object:
        """Return the Lease's spec."""
        body = self.body(LEASE, NAME, NAMESPACE)
        assert body is not None
        return dict(body["spec"])


class Bench:
    """A replica, at a server where the Lease is free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "ANSWER", 0.05)
        self.now, self.begun = 0.0, 0
        self.server = Server()
        meta = {"name": NAME, "namespace": NAMESPACE}
        self.server.put(LEASE, {"metadata": meta, "spec": {}})
        self.fence = Fence(lambda: self.now)
        self.keeper = LeaseKeeper(
            self.server.api, NAMESPACE, NAME, fence=self.fence, leads=self._leads
        )

    def _leads(self) -> None:
        self.begun += 1

    def turn(self, seconds: float = 0.0) -> float:
        """Advance the clock by `seconds`, and let the replica do all that is due."""
        self.now += seconds
        return asyncio.run(self.keeper._turn())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a replica at a server with a free Lease."""
    return Bench(monkeypatch)


def test_a_free_lease_is_taken_and_renewed_by_one_call_each_time(bench: Bench) -> None:
    """The replica renews it every two seconds, and begins its work once."""
    assert not bench.fence.is_open
    assert bench.turn() == pytest.approx(2.0)
    assert bench.fence.is_open
    holder = bench.server.spec["holderIdentity"]
    before = len(bench.server.changes)
    for _ in range(10):
        bench.turn(2)
    assert bench.fence.until == 20 + 9
    assert bench.server.changes[before:] == [("patch", "Lease", NAME)] * 10
    assert bench.server.spec["holderIdentity"] == holder
    assert bench.begun == 1


def test_a_renewal_without_an_answer_is_given_up_and_counts_once_it_is_seen(bench: Bench) -> None:
    """The next turn looks at the Lease first, finds this replica's name, and goes on."""
    bench.turn()
    bench.server.is_silent = True
    with pytest.raises(ApiUnavailable, match="no answer within"):
        bench.turn(2)
    assert bench.fence.until == 9
    bench.server.is_silent = False
    bench.turn(2)
    assert bench.fence.until == 4 + 9
    assert bench.begun == 1


def test_after_its_time_a_replica_that_nobody_replaced_goes_on(bench: Bench) -> None:
    """The same process begins its work a second time."""
    bench.turn()
    bench.server.refusal = ApiUnavailable("down")
    for _ in range(20):
        with suppress(ApiUnavailable):
            bench.turn(1)
    assert not bench.fence.is_open
    bench.server.refusal = None
    bench.turn()
    assert bench.fence.is_open
    assert bench.begun == 2


def test_a_replica_that_another_one_replaced_ends(bench: Bench) -> None:
    """The error names the new holder."""
    bench.turn()
    bench.server.edit(LEASE, NAME, NAMESPACE, spec={"holderIdentity": "other"})
    with pytest.raises(LeaseLost, match="other"):
        bench.turn(2)


def test_a_lease_that_is_given_back_is_free_at_once(bench: Bench) -> None:
    """From then on this replica makes no more changes."""
    bench.turn()
    asyncio.run(bench.keeper.release())
    assert not bench.fence.is_open
    assert bench.server.spec == {"leaseTransitions": 1}
    fence = Fence(lambda: bench.now)
    other = LeaseKeeper(bench.server.api, NAMESPACE, NAME, fence=fence, leads=bench._leads)
    asyncio.run(other._turn())
    assert fence.is_open


@pytest.mark.parametrize("before", [False, True])
def test_a_lease_of_another_replica_is_not_given_back(bench: Bench, *, before: bool) -> None:
    """This holds whether this replica ever held it or not."""
    if before:
        bench.turn()
    spec: dict[str, Any] = {"holderIdentity": "other", "leaseDurationSeconds": 10}
    bench.server.edit(LEASE, NAME, NAMESPACE, spec=spec)
    asyncio.run(bench.keeper.release())
    assert bench.server.spec == spec


def test_replicas_on_one_machine_have_different_names(bench: Bench) -> None:
    """A process and its predecessor in the same pod have different names, too."""
    other = LeaseKeeper(bench.server.api, NAMESPACE, NAME, fence=Fence(), leads=bench._leads)
    assert other._replica.name != bench.keeper._replica.name
