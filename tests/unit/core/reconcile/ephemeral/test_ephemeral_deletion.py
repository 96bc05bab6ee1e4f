from dataclasses import replace

import pytest

from sluice.core.reconcile.ephemeral.decide import (
    after_ephemeral_failure,
    asks_store,
    reconcile_ephemeral,
)
from sluice.core.reconcile.ephemeral.deletion import GONE_PATIENCE, POLL_SECONDS, READERS_PATIENCE
from sluice.core.reconcile.ephemeral.world import (
    EphemeralDecision,
    EphemeralSeen,
    LeaveBehind,
    Release,
    Unprotect,
)
from sluice.errors import (
    AuthenticationFailed,
    SecretNotFound,
    SluiceError,
    StoreNotFound,
    StoreTimeout,
    StoreUnavailable,
)
from support.reconcile.copies import later
from support.reconcile.ephemerals import (
    AWAY,
    OWNER,
    PRESENT,
    claimed,
    ephemeral,
    message,
    released,
    said,
    trouble,
    world,
)

GOING = claimed(ephemeral(), deleted=0.0)
DOWN = StoreUnavailable("no connection")


def deleting(seen: EphemeralSeen = GOING, **changes: object) -> EphemeralDecision:
    """Return the decision for a resource that is being deleted."""
    return reconcile_ephemeral(seen, world(holding=None, **changes))


def failed(error: SluiceError, deleted: float, **fields: object) -> EphemeralDecision:
    """Return the decision after a failed release, `deleted` seconds after the deletion."""
    seen = replace(GOING, spec=ephemeral(**fields).spec, deleted=deleted)
    return after_ephemeral_failure(seen, world(holding=None), trouble(error))


def test_a_deleted_resource_lets_its_streams_go_first() -> None:
    """The finalizer goes after the streams, so a crash in between leaves no stream behind."""
    decision = deleting()
    assert decision.actions == (Release(delete=True), Unprotect())
    assert said(decision) == ("Unknown", "Deleting")
    assert not asks_store(GOING, world())


def test_a_resource_that_made_nothing_goes_at_once() -> None:
    """A deleted resource without Sluice's finalizer needs no action."""
    decision = deleting(ephemeral(deleted=5.0))
    assert (decision.actions, decision.again) == ((), None)


def test_suspending_does_not_hold_a_deletion_up() -> None:
    """The operator deletes a suspended resource as it deletes any other."""
    held = replace(GOING, spec=ephemeral(suspend=True).spec)
    assert deleting(held).actions == (Release(delete=True), Unprotect())


def test_retained_streams_survive_the_deletion() -> None:
    """With onRelease Retain, Sluice's tags are removed at once, without waiting for readers."""
    kept = replace(GOING, spec=ephemeral(onRelease="Retain", gracePeriodSeconds=60).spec)
    decision = deleting(kept, readers=("a",))
    assert decision.actions == (Release(delete=False), Unprotect())


def test_a_store_that_is_away_is_told_during_the_next_try_as_well() -> None:
    """A retry may wait long for an answer, so the status shows the last failure until then."""
    away = replace(GOING, status=failed(DOWN, 10.0).status, deleted=12.0)
    for again in (deleting(away, store=AWAY), deleting(away)):
        assert (again.status, again.actions) == (away.status, (Release(delete=True), Unprotect()))
    assert said(deleting(store=AWAY)) == ("Unknown", "Deleting")


def test_a_deletion_leaves_a_grace_period() -> None:
    """The stream outlives a replaced owner, so that its successor may take it over."""
    seen = claimed(ephemeral(owners=[OWNER], gracePeriodSeconds=60), PRESENT)
    decision = deleting(replace(seen, deleted=20.0))
    assert (decision.actions, decision.again) == ((), 40)
    assert said(decision) == ("Unknown", "GracePeriod")
    over = deleting(replace(seen, deleted=60.0))
    assert over.actions == (Release(delete=True), Unprotect())


def test_what_was_released_has_no_grace_period() -> None:
    """A released stream is gone, so no grace period keeps it for a successor."""
    seen = released(claimed(ephemeral(maxAgeSeconds=1, gracePeriodSeconds=60)), now=later(1))
    assert deleting(replace(seen, deleted=0.0)).actions == (Release(delete=True), Unprotect())


def test_a_deletion_waits_for_readers() -> None:
    """A deletion waits for a copy that reads the stream, for an hour at most."""
    decision = deleting(replace(GOING, deleted=10.0), readers=("StreamCopy team/a",))
    assert (decision.actions, decision.again) == ((), POLL_SECONDS)
    assert said(decision) == ("Unknown", "StillRead")
    late = deleting(replace(GOING, deleted=READERS_PATIENCE), readers=("StreamCopy team/a",))
    assert late.actions == (Release(delete=True), Unprotect())


@pytest.mark.parametrize(
    "seen",
    [
        GOING,
        replace(GOING, spec=ephemeral(gracePeriodSeconds=60).spec),
        replace(GOING, spec=ephemeral(suspend=True).spec),
    ],
)
def test_force_orphan_lets_go_at_once(seen: EphemeralSeen) -> None:
    """The annotation acts without the store and without waiting. An event names the remains."""
    decision = deleting(replace(seen, force_orphan=True), store=None, readers=("a",))
    abandon, last = decision.actions
    assert isinstance(abandon, LeaveBehind)
    assert "force-orphan" in abandon.why
    assert last == Unprotect()


def test_force_orphan_means_nothing_before_the_deletion() -> None:
    """The annotation has no effect before the deletion: it deletes and orphans nothing."""
    seen = claimed(ephemeral(), force_orphan=True)
    assert reconcile_ephemeral(seen, world()).status.release is None
    assert not any(
        isinstance(action, LeaveBehind | Unprotect | Release)
        for action in reconcile_ephemeral(seen, world()).actions
    )


@pytest.mark.parametrize("error", [DOWN, StoreTimeout("slow"), AuthenticationFailed("no")])
def test_a_store_that_is_down_is_waited_for_for_ever(error: SluiceError) -> None:
    """A stream does not leak because a store was away, for however long."""
    for deleted in (0.0, 1e3, 1e7):
        decision = failed(error, deleted)
        assert decision.actions == ()
        assert said(decision) == ("Unknown", error.reason)
        assert "force-orphan=true" in message(decision)


def test_waits_become_longer() -> None:
    """The operator retries an unreachable store after growing waits, of a minute at most."""
    waits = [failed(DOWN, deleted).again for deleted in (0, 8, 40, 1e6)]
    assert waits == [1.0, 2.0, 10.0, 60.0]


@pytest.mark.parametrize("error", [DOWN, StoreNotFound("none"), AuthenticationFailed("no")])
def test_a_timeout_ends_the_waiting_loudly(error: SluiceError) -> None:
    """After deletionTimeoutSeconds the operator releases the resource and names its streams."""
    assert failed(error, 29.0, deletionTimeoutSeconds=30).again == 1.0
    decision = failed(error, 30.0, deletionTimeoutSeconds=30)
    abandon, last = decision.actions
    assert isinstance(abandon, LeaveBehind)
    assert error.message in abandon.why
    assert last == Unprotect()


@pytest.mark.parametrize("error", [StoreNotFound("none"), SecretNotFound("none")])
def test_a_store_that_is_gone_for_good_is_not_waited_for(error: SluiceError) -> None:
    """The store may come back for a while. Then the operator releases the resource."""
    assert failed(error, GONE_PATIENCE).actions == ()
    decision = failed(error, GONE_PATIENCE + 1)
    assert [type(action) for action in decision.actions] == [LeaveBehind, Unprotect]


@pytest.mark.parametrize(("error", "patience"), [(DOWN, 30), (StoreNotFound("none"), 301)])
def test_patience_begins_after_the_grace_period(error: SluiceError, patience: int) -> None:
    """No call is made during the grace period, so the first failure after it drops nothing."""
    fields = {"gracePeriodSeconds": 3600, "deletionTimeoutSeconds": 30 if error is DOWN else None}
    first = failed(error, 3600.0, **fields)
    assert (first.actions, first.again) == ((), 1.0)
    assert failed(error, 3600.0 + patience, **fields).actions != ()
