"""Streams that pods make under a prefix after their owner's end are deleted, too."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from sluice.core.reconcile.ephemeral.decide import reconcile_ephemeral
from sluice.core.reconcile.ephemeral.deletion import POLL_SECONDS, STOPPING_SECONDS
from sluice.core.reconcile.ephemeral.world import EphemeralDecision, Release, Unprotect
from support.reconcile.copies import later
from support.reconcile.ephemerals import (
    ABSENT,
    ABSENT_OWNER,
    ANOTHER,
    MARKED,
    OWNER,
    PRESENT,
    after,
    claimed,
    message,
    prefixed,
    released,
    said,
    spec,
    world,
)
from support.search import searches, seeds
from support.simulation.ephemeral_cluster import Cluster, Owner, Stream
from support.simulation.ephemeral_operator import Operator
from support.simulation.simulated import simulated

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _simulated() -> Iterator[None]:
    """Run the operator at the time and with the engine of the simulation."""
    with simulated():
        yield


POD_SECONDS = 30
"""For which Kubernetes lets a pod go on after it was deleted, unless its spec says otherwise."""

WATCH = (Release(delete=True, watch=True),)
LET_GO = (Release(delete=True), Unprotect())
EMPTY = replace(MARKED, streams=())


def deleting(deleted: float, **fields: object) -> EphemeralDecision:
    """Return the decision `deleted` seconds after the deletion of a claim to a prefix."""
    seen = claimed(prefixed(owners=[OWNER]), PRESENT, deleted=deleted)
    changed = replace(seen, spec=spec(stream=None, streamPrefix="app-", owners=[OWNER], **fields))
    return reconcile_ephemeral(changed, world(holding=None))


def test_a_prefix_stays_claimed_while_pods_stop() -> None:
    """The streams of a prefix are deleted at once, and again those that pods still make."""
    decision = deleting(0.0)
    assert (decision.actions, decision.again) == (WATCH, POLL_SECONDS)
    assert said(decision) == ("Unknown", "Deleting")
    assert "for 40 s after the end of their owners" in message(decision)
    late = deleting(STOPPING_SECONDS - 3)
    assert (late.actions, late.again) == (WATCH, 3)
    assert deleting(STOPPING_SECONDS).actions == LET_GO


def test_a_claim_that_never_had_an_owner_goes_at_once() -> None:
    """Without a bound owner there are no pods that could make streams."""
    seen = prefixed(owners=[OWNER])
    waiting = after(seen, reconcile_ephemeral(seen, world(ABSENT_OWNER)))
    assert waiting.finalizer
    gone = reconcile_ephemeral(replace(waiting, deleted=0.0), world(ABSENT_OWNER, holding=None))
    assert gone.actions == LET_GO


def test_a_grace_period_is_time_to_stop() -> None:
    """The grace period counts as time to stop. The operator waits for the rest of a short one."""
    assert deleting(44.0, gracePeriodSeconds=45).actions == ()
    assert deleting(45.0, gracePeriodSeconds=45).actions == LET_GO
    short = deleting(20.0, gracePeriodSeconds=20)
    assert (short.actions, short.again) == (WATCH, POLL_SECONDS)


@pytest.mark.parametrize(("deleted", "actions"), [(9.0, WATCH), (10.0, LET_GO)])
def test_a_deadline_counts_more(deleted: float, actions: tuple[object, ...]) -> None:
    """The field deletionTimeoutSeconds also bounds the wait for pods."""
    assert deleting(deleted, deletionTimeoutSeconds=10).actions == actions


def test_what_is_retained_is_not_watched() -> None:
    """With onRelease Retain, late streams stay as all others do."""
    assert deleting(0.0, onRelease="Retain").actions == (Release(delete=False), Unprotect())


def test_a_release_watches_the_prefix_as_well() -> None:
    """With tracking Observe, the release first deletes streams that stopping pods make."""
    seen = claimed(prefixed(owners=[OWNER], tracking="Observe"), PRESENT)
    gone = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=MARKED, now=later(5)))
    seen = after(seen, gone)
    for holding in (MARKED, EMPTY):
        decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=holding, now=later(42)))
        assert (decision.actions, decision.again) == (WATCH, 3)
        assert said(decision) == ("Unknown", "Releasing")
    over = world(ABSENT_OWNER, holding=EMPTY, now=later(45))
    assert reconcile_ephemeral(seen, over).actions == (Release(delete=True),)
    assert said(reconcile_ephemeral(seen, replace(over, holding=ABSENT))) == ("True", "Released")


def test_a_successors_streams_stay() -> None:
    """A new owner makes streams at once, and nothing tells whose they are, so they stay."""
    seen = claimed(prefixed(owners=[OWNER]), PRESENT, deleted=5.0)
    assert reconcile_ephemeral(seen, world(PRESENT, holding=None)).actions == WATCH
    assert reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=None)).actions == WATCH
    assert reconcile_ephemeral(seen, world(ANOTHER, holding=None)).actions == LET_GO
    seen = claimed(prefixed(owners=[OWNER], tracking="Observe"), PRESENT)
    seen = after(seen, reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=MARKED)))
    assert reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=MARKED)).actions == WATCH
    back = reconcile_ephemeral(seen, world(ANOTHER, holding=MARKED))
    assert back.actions == (Release(delete=True),)


def test_nothing_is_watched_without_a_claim() -> None:
    """A claim that was given up sees no late streams, so the operator does not wait."""
    seen = claimed(prefixed(owners=[OWNER], maxAgeSeconds=1), PRESENT)
    seen = released(seen, PRESENT, now=later(1))
    decision = reconcile_ephemeral(seen, world(PRESENT, holding=ABSENT, now=later(1)))
    assert said(decision) == ("True", "Released")


@pytest.mark.usefixtures("_simulated")
@searches
@pytest.mark.parametrize("first", seeds(50, 50))
def test_nothing_is_left_whatever_happens_while_pods_stop(first: int) -> None:
    """Under crashes, lost calls and an unreachable store, all streams are deleted at the end."""
    for seed in range(first, first + 50):
        random = Random(seed)  # noqa: S311 - a walk, no secret
        cluster = Cluster()
        operator = Operator(cluster)
        begin(random, cluster, operator)
        end = cluster.clock + POD_SECONDS
        while cluster.clock < end:
            move(random, cluster, operator)
            cluster.clock += random.choice((0, 1, 4))
            operator.rows.clear()
        cluster.up, operator.lost = True, ""
        for _ in range(20):
            cluster.collect()
            settle(cluster, operator)
            cluster.clock += 10
        assert cluster.streams == {}, seed
        assert cluster.markers == {}, seed
        assert cluster.orphaned == set(), seed


def begin(random: Random, cluster: Cluster, operator: Operator) -> None:
    """Start with an application that has made streams under its prefix and is deleted."""
    fields = {
        "owners": [OWNER],
        "tracking": random.choice(("OwnerReference", "Observe")),
        "gracePeriodSeconds": random.choice((0, 0, 5, 35)),
    }
    cluster.owners["app"] = Owner(cluster.unique("owner"))
    cluster.create("a", spec(stream=None, streamPrefix="app-", **fields))
    for _ in range(4):
        settle(cluster, operator)
    assert cluster.markers
    cluster.streams["app-first"] = Stream(cluster.tick(), foreign=True)
    del cluster.owners["app"]


def move(random: Random, cluster: Cluster, operator: Operator) -> None:
    """Make one random move while the application's pods stop."""
    match random.randrange(8):
        case 0 | 1:
            name = f"app-{random.randrange(3)}"
            cluster.streams.setdefault(name, Stream(cluster.tick(), foreign=True))
        case 2:
            operator.begin("a")
        case 3:
            operator.lost = random.choice(("request", "reply", "half")) if operator.busy else ""
            operator.step()
        case 4:
            settle(cluster, operator)
        case 5:
            operator.crash()
        case 6:
            cluster.up = random.random() < 0.7
        case _:
            cluster.collect()


def settle(cluster: Cluster, operator: Operator) -> None:
    """Let the operator make one complete look."""
    operator.begin("a")
    operator.finish()
    operator.rows.clear()
