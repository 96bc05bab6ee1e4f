"""A copy and its adversary: crashes, stale looks, two operators, and users' actions."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sluice.api.status.common import ConditionType
from sluice.errors import (
    DigestMismatch,
    DriverLost,
    DriverOutOfMemory,
    ImagePullFailed,
    SecretNotFound,
    SluiceError,
    StoreUnavailable,
    WaitingForExecutors,
)
from support.simulation.copy_cluster import Driver, wait
from support.simulation.copy_operator import Operator
from support.simulation.copy_promises import CopyPromises

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 80
FAILURES = (
    DriverLost("the pod is gone"),
    DriverOutOfMemory("too much"),
    StoreUnavailable("no connection"),
    WaitingForExecutors("none came"),
    DigestMismatch("other bytes"),
    SecretNotFound("no such Secret"),
    ImagePullFailed("no such image"),
    None,
)
OUTSIDE = (
    "source",
    "target",
    "source_there",
    "target_there",
    "profile_there",
    "foreign",
    "length",
    "runtime",
    "whole",
    "lag",
)
CHANGES: tuple[dict[str, Any], ...] = (
    {"suspend": True},
    {"suspend": False},
    {"activeDeadlineSeconds": 60},
    {"activeDeadlineSeconds": None},
    {"backoffLimit": 0},
    {"backoffLimit": 6},
)
LOST = ("", "", "request", "reply", "operator")
LOSSES = ("pod", "node", "finished Job", "Job", "plan", "words of the plan", "run")
SECONDS = (1, 10, 60, 700)


class CopyMachine(CopyPromises, RuleBasedStateMachine):
    """One copy, its cluster, and one operator or two.

    Attributes:
        wishes: weight of requests for another run, among all events.
    """

    wishes = 1

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        CopyPromises.__init__(self)

    @property
    def things(self) -> tuple[str, ...]:
        """The things that can happen outside."""
        return OUTSIDE

    def mend(self) -> None:
        """Repair all damage."""
        cluster = self.cluster
        cluster.store.source = cluster.store.target = True
        cluster.store.foreign = False
        cluster.lag(on=False)
        for which in ("source", "target"):
            if cluster.is_leaving(which):
                cluster.take_store(which, wholly=True)
            cluster.put_store(which)
        self.roll_out(there=True)

    @initialize(two=st.booleans(), changes=st.lists(st.sampled_from(CHANGES), max_size=2))
    def begin(self, *, two: bool, changes: list[dict[str, Any]]) -> None:
        """Apply a copy. With `two`, a second operator knows nothing of the first."""
        if two:
            self.operators.append(Operator(self.cluster))
            self.cluster.alone = False
        for change in changes:
            self.change(**change)

    # -- operators

    @rule(
        which=st.integers(0, 1),
        ready=st.booleans(),
        steps=st.integers(0, 20),
        lost=st.sampled_from(LOST),
    )
    def hold(self, which: int, steps: int, lost: str, *, ready: bool) -> None:
        """Let an operator look, act in part and be held up. A call or the operator may be lost."""
        operator = self.operators[which % len(self.operators)]
        if not operator.busy:
            operator.look(ready=ready)
        for left in reversed(range(steps)):
            if operator.busy:
                operator.step(lost="" if left else lost)
        if lost == "operator":
            operator.crash()

    @rule(which=st.integers(0, 1))
    def finish(self, which: int) -> None:
        """Finish an operator's work, or let it look and finish that."""
        self.carry_out(self.operators[which % len(self.operators)])

    def carry_out(self, operator: Operator) -> None:
        """Carry out an operator's work without interference."""
        if not operator.busy:
            operator.look()
        while operator.busy:
            operator.step()
            self.the_world_is_in_order()

    @rule(which=st.integers(0, 1), anew=st.booleans())
    def restart(self, which: int, *, anew: bool) -> None:
        """End an operator where it is and start a new one, or let its watch catch up."""
        operator = self.operators[which % len(self.operators)]
        operator.crash() if anew else operator.sync()

    @rule(which=st.integers(0, 1), most=st.integers(0, 4))
    def hear(self, which: int, most: int) -> None:
        """Give an operator's watches the next few news, which may be stale."""
        self.operators[which % len(self.operators)].sync(most)

    @rule(rounds=st.integers(1, 3), steps=st.integers(0, 2))
    def go_on(self, rounds: int, steps: int) -> None:
        """Run an operator and the drivers for some rounds, and let time pass."""
        for _ in range(rounds):
            operator = self.operators[0]
            operator.sync()
            self.carry_out(operator)
            for driver in list(self.cluster.drivers):
                self.advance(driver, steps)
            wait(self.cluster, min(operator.again or 60, 60))

    # -- drivers and pods

    def driver(self, which: int) -> Driver | None:
        """Return one of the present drivers."""
        drivers = self.cluster.drivers
        return drivers[which % len(drivers)] if drivers else None

    def advance(self, driver: Driver | None, steps: int) -> None:
        """Take some steps of a driver, if it lives so long."""
        for _ in range(steps):
            if driver is not None and driver in self.cluster.drivers:
                self.cluster.work(driver)

    @rule(which=st.integers(0, 3), steps=st.integers(1, 8))
    def work(self, which: int, steps: int) -> None:
        """Take some steps of a driver."""
        self.advance(self.driver(which), steps)

    @rule(which=st.integers(0, 3), error=st.sampled_from(FAILURES))
    def fail(self, which: int, error: SluiceError | None) -> None:
        """Let a driver fail, or its pod not start. Without an error it reports a false success."""
        driver = self.driver(which)
        if driver is None or self.cluster.is_stopping(driver):
            return
        if not driver.running and isinstance(error, ImagePullFailed):
            self.cluster.cannot_start(driver, error)
            return
        self.advance(driver, 2)
        if driver.running and driver in self.cluster.drivers:
            self.cluster.fail(driver, error)

    @rule(which=st.integers(0, 3), what=st.sampled_from(LOSSES))
    def lose(self, which: int, what: str) -> None:
        """Lose a pod that was told to stop, delete a Job, or spoil the plan."""
        cluster, driver = self.cluster, self.driver(which)
        match what:
            case "plan":
                cluster.drop_plan()
            case "words of the plan":
                cluster.forge_plan(which)
            case "run" if driver is not None:
                cluster.forge_run(driver)
            case "pod" if driver is not None and cluster.is_stopping(driver):
                cluster.lose_node(driver)
            case "node" if driver is not None:
                cluster.lose_node(driver)
            case "Job" | "finished Job":
                names = cluster.job_names(ended=what == "finished Job")
                if names:
                    cluster.remove_job(names[which % len(names)])

    # -- the world

    @rule(seconds=st.sampled_from(SECONDS))
    def wait(self, seconds: int) -> None:
        """Let time pass."""
        wait(self.cluster, seconds)

    @rule(what=st.sampled_from(OUTSIDE), on=st.booleans())
    def outside(self, what: str, *, on: bool) -> None:
        """Change whether a store or an object is there, or let the source grow."""
        cluster, store = self.cluster, self.cluster.store
        match what:
            case "source" | "target":
                setattr(store, what, on)
            case "source_there" | "target_there":
                which = what.removesuffix("_there")
                if on:
                    cluster.put_store(which)
                else:
                    cluster.take_store(which, wholly=not cluster.is_leaving(which))
            case "profile_there":
                self.roll_out(there=on)
            case "lag":
                cluster.lag(on=on)
            case "foreign":  # another client makes a stream in the target's place, or removes it
                store.foreign = on and store.whole is None and not store.holds_something
            case "length":
                store.length += 500
            case "runtime":
                cluster.runtime += 1
                self.roll_out(there=cluster.profile_there)
            case "whole":  # another client deletes the target
                self.taken = self.taken or store.whole is not None
                store.whole = None

    def roll_out(self, *, there: bool) -> None:
        """Change the administrator's settings, so that every operator starts anew."""
        self.cluster.profile_there = there
        for operator in self.operators:
            operator.crash()

    def others(self, random: Random) -> dict[str, tuple[int, Callable[[], None]]]:  # noqa: ARG002 - for subclasses
        """Return the moves of a walk that only this machine has, each with its weight."""
        return {}

    # -- users

    def change(self, **fields: Any) -> None:
        """Change the spec."""
        self.cluster.change(**fields)
        self.final, self.succeeded = None, False

    @rule(change=st.sampled_from(CHANGES))
    def people(self, change: dict[str, Any]) -> None:
        """Suspend or resume the copy, or set or remove bounds."""
        self.change(**change)

    @rule()
    def request(self) -> None:
        """Request another run."""
        self.number += 1
        self.final, self.succeeded = None, False
        self.cluster.request(self.number)

    @rule(really=st.booleans())
    def lose_status(self, *, really: bool) -> None:
        """Restore the copy from a backup, without its status."""
        if really:
            self.cluster.lose_status()
            self.attempts, self.final, self.succeeded = 0, None, False

    @precondition(lambda self: self.cluster.copy is not None)
    @rule(orphan=st.sampled_from([False, False, True]))
    def delete(self, *, orphan: bool) -> None:
        """Delete the copy, perhaps with the annotation that forces it to go."""
        self.cluster.force_orphan(on=orphan)
        self.cluster.delete()

    # -- claims, at any time and in the end

    @invariant()
    def all_promises_hold(self) -> None:
        """Check the promises after every step."""
        self.the_world_is_in_order()

    def teardown(self) -> None:
        """Check that the copy is done, or gone if it was deleted, once nothing fails any more."""
        cluster, operator = self.cluster, self.operators[0]
        for busy in self.operators:
            while busy.busy:
                busy.step()
        self.mend()
        self.change(suspend=False, activeDeadlineSeconds=None, backoffLimit=6)
        self.request()
        for _ in range(ROUNDS):
            if self.is_over():
                break
            if self.status.condition(ConditionType.STALLED):
                self.request()  # a user looks at the copy
            cluster.can_start()
            for driver in list(cluster.drivers):
                self.advance(driver, 3)
            operator.sync()
            self.carry_out(operator)
            wait(cluster, max(30, operator.again or 60))
        assert self.is_over(), self.status
        assert not cluster.finalizer


def walk(machine: CopyMachine, seed: int, moves: int = 60) -> CopyMachine:
    """Make random moves, which cost less than those that hypothesis chooses. Return the machine."""
    random = Random(seed)  # noqa: S311 - a walk, no secret
    which, flag = partial(random.randrange, 4), partial(random.choice, (True, False))
    steps, calls = partial(random.randrange, 8), partial(random.randrange, 20)
    choices: dict[str, tuple[int, Callable[[], None]]] = {
        "hold": (4, lambda: machine.hold(which(), calls(), random.choice(LOST), ready=flag())),
        "finish": (4, lambda: machine.finish(which())),
        "go on": (3, lambda: machine.go_on(1 + random.randrange(3), random.randrange(3))),
        "restart": (1, lambda: machine.restart(which(), anew=flag())),
        "hear": (1, lambda: machine.hear(which(), which())),
        "work": (4, lambda: machine.work(which(), steps())),
        "fail": (2, lambda: machine.fail(which(), random.choice(FAILURES))),
        "lose": (2, lambda: machine.lose(which(), random.choice(LOSSES))),
        "wait": (2, lambda: machine.wait(random.choice(SECONDS))),
        "outside": (2, lambda: machine.outside(random.choice(machine.things), on=flag() or flag())),
        "people": (2, lambda: machine.people(random.choice(CHANGES))),
        "request": (machine.wishes, machine.request),
        "lose status": (1, lambda: machine.lose_status(really=flag())),
        "delete": (1, lambda: machine.delete(orphan=not random.randrange(3))),
    }
    choices |= machine.others(random)
    weights = [weight for weight, _ in choices.values()]
    changes = [random.choice(CHANGES) for _ in range(random.randrange(3))]
    machine.begin(two=not random.randrange(3), changes=changes)
    end = random.randrange(moves)
    for number, name in enumerate(random.choices(list(choices), weights, k=moves)):
        if name == "delete" and number < end:
            continue  # nothing is left to check of a copy that is gone
        choices[name][1]()
        machine.the_world_is_in_order()
    return machine
