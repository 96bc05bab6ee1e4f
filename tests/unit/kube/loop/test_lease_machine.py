"""Replicas that share a Lease, at an API server whose calls get lost or come late.

They run the operator's own LeaseKeeper, one call at a time. Each clock runs at a rate of its own. A
replica keeps its own seconds under any delay, and freezes when it gets no turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sluice.errors import ApiUnavailable
from sluice.kube.api.fence import Fence
from sluice.kube.api.kinds import LEASE
from sluice.kube.loop.lease import LeaseKeeper, LeaseLost
from support.kube.api_server import ApiServer
from support.search import run_machine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from sluice.kube.api.client import Api

COUNT = 3
NAME, NAMESPACE = "sluice-operator", "sluice-system"


@dataclass(eq=False)
class Call:
    """A call on its way to the API server. `yield` gives it to the machine."""

    make: Callable[[], Awaitable[Any]]
    answer: Any = None
    has_arrived: bool = False

    def __await__(self) -> Generator[Call, Any, Any]:
        """Wait until the machine lets the answer arrive."""
        return (yield self)

    def arrive(self) -> None:
        """Let the server carry out the call."""
        try:
            cast("Coroutine[Any, Any, Any]", self.make()).send(None)  # the call never waits
        except StopIteration as end:
            self.answer = end.value
        self.has_arrived = True


class Distant:
    """The way to the server, for one replica."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def get(self, *words: Any) -> Any:
        """See Api.get."""
        return await Call(lambda: self._server.get(*words))

    async def create(self, *words: Any) -> Any:
        """See Api.create."""
        return await Call(lambda: self._server.create(*words))

    async def patch(self, *words: Any) -> Any:
        """See Api.patch."""
        return await Call(lambda: self._server.patch(*words))


class Patient(LeaseKeeper):
    """A keeper whose calls stay unanswered only when the machine says so."""

    async def _within(self, call: Awaitable[Any]) -> Any:
        return await call


class Replica:
    """A process, with its clock and its present turn."""

    def __init__(self, machine: Replicas, rate: float) -> None:
        self._machine = machine
        self._rate = rate
        self.begun = 0
        self.start()

    def start(self) -> None:
        """Restart as another process."""
        self.fence = Fence(lambda: self._machine.now * self._rate)
        api = cast("Api", Distant(self._machine.server))
        self.keeper = Patient(api, NAMESPACE, NAME, fence=self.fence, leads=self._leads)
        self._turn: Coroutine[Call, Any, Any] | None = None
        self.call: Call | None = None

    def _leads(self) -> None:
        self.begun += 1

    def go_on(self) -> None:
        """Go on to the next call, with the answer to the last one."""
        if self._turn is None:
            self._turn = self.keeper._turn()
        self._step(lambda turn: turn.send(None if self.call is None else self.call.answer))

    def fail(self) -> None:
        """Get no answer to the present call. It may arrive later."""
        if self.call is not None and not self.call.has_arrived:
            self._machine.late.append(self.call)
        if self._turn is not None:
            self._step(lambda turn: turn.throw(ApiUnavailable("no answer")))

    def release(self) -> None:
        """Give the Lease back during any work, and restart."""
        if self.call is not None and not self.call.has_arrived:
            self._machine.late.append(self.call)
        ending = self.keeper.release()
        answer = None
        try:
            while True:
                call = ending.send(answer)
                call.arrive()
                answer = call.answer
        except StopIteration:
            pass
        assert not self.fence.is_open
        self.start()

    def _step(self, step: Callable[[Coroutine[Call, Any, Any]], Call]) -> None:
        assert self._turn is not None
        try:
            self.call = step(self._turn)
        except (StopIteration, ApiUnavailable):
            self._turn = self.call = None
        except LeaseLost:
            self.start()


ONE = st.integers(0, COUNT - 1)
STRANGE = st.sampled_from(
    [
        {"holderIdentity": "nobody-knows"},
        {"holderIdentity": ""},
        {"holderIdentity": None},
        {"holderIdentity": "nobody-knows", "leaseDurationSeconds": 10**9},
        {"renewTime": "9999-12-31T23:59:59.999999Z", "leaseTransitions": 2**31 - 1},
        {"leaseDurationSeconds": 1},
        {},
    ]
)


class Replicas(RuleBasedStateMachine):
    """Three replicas, the Lease, and a user who changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.server = ApiServer()
        self.late: list[Call] = []
        self.all: list[Replica] = []

    @initialize(rates=st.lists(st.floats(0.98, 1.02), min_size=COUNT, max_size=COUNT))
    def begin(self, rates: list[float]) -> None:
        """Start all replicas."""
        self.all = [Replica(self, rate) for rate in rates]

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.0, 4.0, 9.5, 60.0]))
    def pass_time(self, seconds: float) -> None:
        """Let time pass for all replicas."""
        self.now += seconds

    @rule(which=ONE, calls=st.integers(1, 4))
    def work(self, which: int, calls: int) -> None:
        """Let a replica make calls that are answered at once."""
        replica = self.all[which]
        for _ in range(calls):
            if replica.call is not None and not replica.call.has_arrived:
                replica.call.arrive()
            replica.go_on()

    @rule(which=ONE, seconds=st.integers(1, 14))
    def live(self, which: int, seconds: int) -> None:
        """Let a replica run for some seconds, while the others freeze."""
        for _ in range(seconds):
            self.now += 1
            self.work(which, 4)
            self.at_most_one_acts()

    @rule(which=ONE)
    def arrive(self, which: int) -> None:
        """Let a call arrive whose answer comes later."""
        replica = self.all[which]
        if replica.call is not None and not replica.call.has_arrived:
            replica.call.arrive()

    @rule(which=ONE)
    def lose(self, which: int) -> None:
        """Let the answer to a call get lost, or the call itself."""
        replica = self.all[which]
        replica.fail()

    @rule(data=st.data())
    def arrive_late(self, data: st.DataObject) -> None:
        """Let a call arrive that was given up."""
        if self.late:
            call = data.draw(st.sampled_from(self.late))
            self.late.remove(call)
            call.arrive()

    @rule(which=ONE)
    def kill(self, which: int) -> None:
        """Kill a process, and start another one."""
        replica = self.all[which]
        if replica.call is not None and not replica.call.has_arrived:
            self.late.append(replica.call)
        replica.start()

    @rule(which=ONE)
    def stop(self, which: int) -> None:
        """End a process by SIGTERM, and start another one."""
        replica = self.all[which]
        replica.release()

    @rule(spec=STRANGE, which=ONE)
    def edit(self, spec: dict[str, Any], which: int) -> None:
        """Edit the Lease, or only touch it. A replica looks at it next."""
        if (body := self.server.body(LEASE, NAME, NAMESPACE)) is not None:
            self.server.edit(LEASE, NAME, NAMESPACE, spec=body["spec"] | spec)
        self.work(which, 4)

    @rule(which=ONE)
    def delete(self, which: int) -> None:
        """Delete the Lease. A replica looks for it next."""
        self.server.remove(LEASE, NAME, NAMESPACE)
        self.work(which, 4)

    @invariant()
    def at_most_one_acts(self) -> None:
        """Check that at most one replica acts."""
        acting = [one.keeper._replica.name for one in self.all if one.fence.is_open]
        assert len(acting) <= 1, acting

    def teardown(self) -> None:
        """Stop all disturbances, and check that a replica acts after little more than a minute."""
        self.late.clear()
        end = self.now + 75
        while self.now < end:
            self.now += 1
            for replica in range(COUNT):
                self.work(replica, 4)
            self.at_most_one_acts()
        assert [one for one in self.all if one.fence.is_open]
        assert not math.isinf(max(one.fence.until for one in self.all))


def test_never_do_two_replicas_act_at_a_time() -> None:
    """This holds under freezes, kills, late and lost calls, and any change of the Lease by a user.

    Once all is well, one of them acts.
    """
    run_machine(Replicas, examples=8, steps=50)
