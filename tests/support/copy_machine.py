"""A copy and its adversary: crashes, stale looks, two operators, and what people do."""

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

from sluice.api.status import ConditionType
from sluice.core.reconcile.world import JobPhase
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
from support.copies import trouble
from support.copy_cluster import ENDED, Driver, wait
from support.copy_operator import Operator
from support.copy_promises import CopyPromises

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
)
CHANGES: tuple[dict[str, Any], ...] = (
    {"suspend": True},
    {"suspend": False},
    {"active_deadline_seconds": 60},
    {"active_deadline_seconds": None},
    {"backoff_limit": 0},
    {"backoff_limit": 6},
)
LOST = ("", "", "request", "reply", "operator")
LOSSES = ("pod", "finished Job", "Job", "plan", "words of the plan")
SECONDS = (1, 10, 60, 700)


class CopyMachine(CopyPromises, RuleBasedStateMachine):
    """One copy, its cluster, and one operator or two.

    Attributes:
        wishes: how often people ask for another run, beside what else happens.
    """

    wishes = 1

    def __init__(self) -> None:
        RuleBasedStateMachine.__init__(self)
        CopyPromises.__init__(self)

    def another(self) -> Operator:
        """Another operator, which knows of no other."""
        return Operator(self.cluster)

    @property
    def things(self) -> tuple[str, ...]:
        """What can happen outside."""
        return OUTSIDE

    def mend(self) -> None:
        """Whatever somebody has spoilt is put right."""
        cluster = self.cluster
        cluster.store.source = cluster.store.target = True
        cluster.source_there = cluster.target_there = cluster.profile_there = True
        cluster.store.foreign = False

    @initialize(two=st.booleans(), changes=st.lists(st.sampled_from(CHANGES), max_size=2))
    def begin(self, *, two: bool, changes: list[dict[str, Any]]) -> None:
        """Somebody applies a copy; there is an operator, or a second that knows of no other."""
        if two:
            self.operators.append(self.another())
        for change in changes:
            self.change(**change)

    # -- operators

    @rule(
        which=st.integers(0, 1),
        ready=st.booleans(),
        steps=st.integers(0, 7),
        lost=st.sampled_from(LOST),
    )
    def hold(self, which: int, steps: int, lost: str, *, ready: bool) -> None:
        """An operator looks, does some of what it decided and is held up; something may be lost."""
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
        """An operator does all that it has begun, or looks and does it."""
        self.carry_out(self.operators[which % len(self.operators)])

    def carry_out(self, operator: Operator) -> None:
        """What an operator does when nothing gets in its way."""
        if not operator.busy:
            operator.look()
        while operator.busy:
            operator.step()
            self.the_world_is_in_order()

    @rule(which=st.integers(0, 1), anew=st.booleans())
    def restart(self, which: int, *, anew: bool) -> None:
        """An operator ends where it is and is started anew, or its watch catches up."""
        operator = self.operators[which % len(self.operators)]
        operator.crash() if anew else operator.sync()

    @rule(rounds=st.integers(1, 3), steps=st.integers(0, 2))
    def go_on(self, rounds: int, steps: int) -> None:
        """Everything goes its way for a while."""
        for _ in range(rounds):
            operator = self.operators[0]
            operator.sync()
            self.carry_out(operator)
            for driver in list(self.cluster.drivers):
                self.advance(driver, steps)
            wait(self.cluster, min(operator.again or 60, 60))

    # -- drivers and pods

    def driver(self, which: int) -> Driver | None:
        """One of the drivers there are."""
        drivers = self.cluster.drivers
        return drivers[which % len(drivers)] if drivers else None

    def advance(self, driver: Driver | None, steps: int) -> None:
        """A driver goes on by some steps, if it lives so long."""
        for _ in range(steps):
            if driver is not None and driver in self.cluster.drivers:
                self.cluster.work(driver)

    @rule(which=st.integers(0, 3), steps=st.integers(1, 8))
    def work(self, which: int, steps: int) -> None:
        """A driver goes on."""
        self.advance(self.driver(which), steps)

    @rule(which=st.integers(0, 3), error=st.sampled_from(FAILURES))
    def fail(self, which: int, error: SluiceError | None) -> None:
        """A driver fails, or its pod cannot start; or it says that it is done, and it is not so."""
        driver = self.driver(which)
        job = None if driver is None else self.cluster.job_of(driver)
        if driver is None or job is None:
            return
        if not driver.running and isinstance(error, ImagePullFailed):
            job.trouble = trouble(error)
            return
        self.advance(driver, 2)
        if driver.running and driver in self.cluster.drivers:
            self.cluster.fail(driver, error)

    @rule(which=st.integers(0, 3), what=st.sampled_from(LOSSES))
    def lose(self, which: int, what: str) -> None:
        """A pod that was told to stop is gone, or somebody deletes a Job or spoils the plan."""
        cluster, driver = self.cluster, self.driver(which)
        if what.endswith("plan"):
            cluster.spoiled = what != "plan" and (cluster.spoiled or cluster.plan is not None)
            cluster.plan = None
        elif what == "pod":
            if driver is not None and driver.stopping:
                cluster.drivers.remove(driver)
        else:
            ended = what == "finished Job"
            names = [name for name, job in cluster.jobs.items() if (job.phase in ENDED) == ended]
            if names:
                cluster.remove_job(names[which % len(names)])

    # -- the world

    @rule(seconds=st.sampled_from(SECONDS))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        wait(self.cluster, seconds)

    @rule(what=st.sampled_from(OUTSIDE), on=st.booleans())
    def outside(self, what: str, *, on: bool) -> None:
        """A store can be reached or not, an object is there or not, the source grows."""
        store = self.cluster.store
        match what:
            case "source" | "target":
                setattr(store, what, on)
            case "source_there" | "target_there" | "profile_there":
                setattr(self.cluster, what, on)
            case "foreign":  # somebody makes a stream in the target's place, or takes it away
                store.foreign = on and store.whole is None and not store.holds_something
            case "length":
                store.length += 500
            case "runtime":
                self.cluster.runtime += 1
            case "whole":  # somebody deletes the target
                self.taken = self.taken or store.whole is not None
                store.whole = None

    # -- people

    def change(self, **fields: Any) -> None:
        """Somebody changes the spec."""
        self.cluster.change(**fields)
        self.final, self.succeeded = None, False

    @rule(change=st.sampled_from(CHANGES))
    def people(self, change: dict[str, Any]) -> None:
        """Somebody suspends the copy or lets it go on, or sets bounds or takes them away."""
        self.change(**change)

    @rule()
    def request(self) -> None:
        """Somebody asks for another run."""
        self.number += 1
        self.final, self.succeeded = None, False
        self.cluster.edit(requested_at=str(self.number))

    @rule(really=st.booleans())
    def lose_status(self, *, really: bool) -> None:
        """Somebody restores the copy from a backup, without its status."""
        if really:
            self.cluster.status = type(self.status)()
            self.cluster.version += 1
            self.attempts, self.final, self.succeeded = 0, None, False

    @precondition(lambda self: self.cluster.copy is not None)
    @rule(orphan=st.sampled_from([False, False, True]))
    def delete(self, *, orphan: bool) -> None:
        """Somebody deletes the copy, and may insist."""
        self.cluster.edit(force_orphan=orphan)
        self.cluster.delete()

    # -- what holds, at any time and in the end

    @invariant()
    def all_promises_hold(self) -> None:
        """Whatever happened."""
        self.the_world_is_in_order()

    def teardown(self) -> None:
        """When nothing fails any more, the copy is done, or gone if it was deleted."""
        cluster, operator = self.cluster, self.operators[0]
        self.mend()
        for busy in self.operators:
            while busy.busy:
                busy.step()
        self.change(suspend=False, active_deadline_seconds=None, backoff_limit=6)
        self.request()
        for _ in range(ROUNDS):
            if self.is_over():
                break
            if self.status.condition(ConditionType.STALLED):
                self.request()  # somebody looks at it
            for job in cluster.jobs.values():
                job.trouble = job.trouble if job.phase is JobPhase.FAILED else None
            for driver in list(cluster.drivers):
                self.advance(driver, 3)
            operator.sync()
            self.carry_out(operator)
            wait(cluster, max(30, operator.again or 60))
        assert self.is_over(), self.status
        assert cluster.copy is None or not cluster.copy.finalizer


def walk(machine: CopyMachine, seed: int, moves: int = 60) -> CopyMachine:
    """The machine after so many moves at random, which cost less than what hypothesis chooses."""
    random = Random(seed)  # noqa: S311 - a walk, no secret
    which, flag = partial(random.randrange, 4), partial(random.choice, (True, False))
    steps = partial(random.randrange, 8)
    choices: dict[str, tuple[int, Callable[[], None]]] = {
        "hold": (4, lambda: machine.hold(which(), steps(), random.choice(LOST), ready=flag())),
        "finish": (4, lambda: machine.finish(which())),
        "go on": (3, lambda: machine.go_on(1 + random.randrange(3), random.randrange(3))),
        "restart": (1, lambda: machine.restart(which(), anew=flag())),
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
    weights = [weight for weight, _ in choices.values()]
    changes = [random.choice(CHANGES) for _ in range(random.randrange(3))]
    machine.begin(two=not random.randrange(3), changes=changes)
    end = random.randrange(moves)
    for number, name in enumerate(random.choices(list(choices), weights, k=moves)):
        if name == "delete" and number < end:
            continue  # a copy that is gone has nothing to tell
        choices[name][1]()
        machine.the_world_is_in_order()
    return machine
