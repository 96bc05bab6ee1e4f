from dataclasses import replace

import pytest

from sluice.api.status.common import ConditionType
from sluice.core.claims.claim import Holding
from sluice.core.reconcile.ephemeral.decide import (
    after_ephemeral_failure,
    asks_store,
    reconcile_ephemeral,
)
from sluice.core.reconcile.ephemeral.failure import (
    RETRY_SECONDS,
    STALLED_SECONDS,
    STORE_SECONDS,
    WAIT_SECONDS,
)
from sluice.core.reconcile.ephemeral.holding import DRIFT_SECONDS, NEWS_SECONDS, SUCCESSOR_SECONDS
from sluice.core.reconcile.ephemeral.world import (
    Adopt,
    Configure,
    EphemeralWorld,
    Make,
    Protect,
    Release,
    Rival,
)
from sluice.errors import AccessDenied, PermissionDenied, SecretNotFound, StoreUnavailable
from support.reconcile.copies import NOW, later
from support.reconcile.ephemerals import (
    ABSENT,
    AWAY,
    CREATED,
    FOREIGN,
    MARKED,
    NO_SCOPE,
    OURS,
    OWNER,
    PRESENT,
    TAKEN,
    after,
    claimed,
    ephemeral,
    message,
    prefixed,
    ready,
    said,
    stands,
    trouble,
    world,
)

RIVAL = Rival(name="EphemeralStream team/older", uid="uid-of-older")
LEAVING = replace(RIVAL, grace=60.0)


def test_a_stream_is_made_under_a_finalizer() -> None:
    """The finalizer stands before the stream is made, so no crash leaves one behind."""
    decision = reconcile_ephemeral(ephemeral(), world())
    assert decision.actions == (Protect(), Make())
    assert said(decision) == ("Unknown", "Making")
    assert decision.again == 0.0


def test_a_stream_that_was_made_is_claimed() -> None:
    """The status names the stream and its configuration once the store holds it."""
    seen = after(ephemeral(), reconcile_ephemeral(ephemeral(), world()))
    decision = reconcile_ephemeral(seen, world(holding=OURS))
    assert decision.actions == ()
    assert said(decision) == ("True", "Claimed")
    assert decision.again == DRIFT_SECONDS
    assert decision.status.streams == ("helper",)
    assert (decision.status.stream_count, decision.status.created_milliseconds) == (1, CREATED)
    assert decision.status.config_hash is not None
    assert decision.status.observed_generation == 1
    assert message(decision) == "in/helper is there."


def test_a_prefix_is_marked_and_looked_at_often() -> None:
    """A marker claims the streams that an application makes itself, and the status counts them."""
    decision = reconcile_ephemeral(prefixed(), world())
    assert decision.actions == (Protect(), Make())
    seen = after(prefixed(), decision)
    decision = reconcile_ephemeral(seen, world(holding=replace(MARKED, left_alone=3)))
    assert (decision.status.stream_count, decision.again) == (2, NEWS_SECONDS)
    assert "2 streams under 'app-' are owned. 3 that are older" in message(decision)


def test_a_status_names_some_streams_and_counts_all() -> None:
    """A thousand streams under a prefix do not make the object large."""
    many = tuple(f"app-{number:04}" for number in range(1000))
    status = reconcile_ephemeral(prefixed(), world(holding=replace(MARKED, streams=many))).status
    assert (status.stream_count, len(status.streams)) == (1000, 50)


def test_a_finalizer_that_somebody_took_away_is_put_back() -> None:
    """A stream never exists without a finalizer, so the operator restores a removed one."""
    decision = reconcile_ephemeral(claimed(ephemeral(), finalizer=False), world(holding=OURS))
    assert decision.actions == (Protect(),)
    assert said(decision) == ("True", "Claimed")


@pytest.mark.parametrize(
    ("around", "reason", "again"),
    [
        (world(store=None), "StoreNotFound", STORE_SECONDS),
        (world(store=AWAY), "StoreNotReady", STORE_SECONDS),
        (world(holding=NO_SCOPE), "ScopeNotFound", WAIT_SECONDS),
        (world(holding=None), "StoreUnavailable", RETRY_SECONDS),
        (world(trouble=trouble(StoreUnavailable("a"))), "StoreUnavailable", RETRY_SECONDS),
    ],
)
def test_a_store_is_waited_for(around: EphemeralWorld, reason: str, again: float) -> None:
    """Without a store or scope the operator makes nothing. The condition says what is missing."""
    decision = reconcile_ephemeral(ephemeral(), around)
    assert decision.actions == ()
    assert said(decision) == ("Unknown", reason)
    assert decision.again == again


@pytest.mark.parametrize("around", [world(store=None), world(store=AWAY)])
def test_a_store_that_is_away_is_not_asked(around: EphemeralWorld) -> None:
    """A store that is unreachable is not called: the call would only cost time."""
    assert not asks_store(ephemeral(), around)
    assert asks_store(ephemeral(), world())


def test_a_scope_is_made_where_that_is_wanted() -> None:
    """CreateIfAbsent makes the scope with the stream."""
    seen = ephemeral(scopePolicy="CreateIfAbsent")
    assert Make() in reconcile_ephemeral(seen, world(holding=NO_SCOPE)).actions


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (world(refused=trouble(AccessDenied("not this scope"))), "AccessDenied"),
        (world(trouble=trouble(PermissionDenied("no"))), "PermissionDenied"),
        (world(trouble=trouble(SecretNotFound("no"))), "SecretNotFound"),
    ],
)
def test_what_a_person_has_to_mend_stalls(around: EphemeralWorld, reason: str) -> None:
    """A failure that only a user can mend sets Stalled, and the operator checks it seldom."""
    decision = reconcile_ephemeral(ephemeral(), around)
    assert decision.actions == ()
    assert said(decision) == ("False", reason)
    assert stands(decision, "Stalled")
    assert decision.again == STALLED_SECONDS


def test_a_foreign_stream_is_refused() -> None:
    """The operator leaves a stream that Sluice did not make alone. The message names the remedy."""
    decision = reconcile_ephemeral(ephemeral(), world(holding=FOREIGN))
    assert decision.actions == ()
    assert said(decision) == ("False", "StreamExists")
    assert "in/helper exists" in message(decision)
    assert decision.status.streams == ()
    assert decision.status.created_milliseconds is None


def test_a_foreign_stream_is_adopted_where_that_is_wanted() -> None:
    """Adopting begins with the finalizer, as making does."""
    decision = reconcile_ephemeral(ephemeral(adopt="IfUnowned"), world(holding=FOREIGN))
    assert decision.actions == (Protect(), Adopt())
    assert said(decision) == ("Unknown", "Making")


@pytest.mark.parametrize("config", [None, {"scaling": {"minSegments": 2}}])
def test_an_adopted_stream_is_given_the_configuration(config: dict[str, object] | None) -> None:
    """An adopted stream follows the spec. Without a config in the spec it stays unchanged."""
    seen = ephemeral(adopt="IfUnowned", config=config)
    seen = after(seen, reconcile_ephemeral(seen, world(holding=FOREIGN)))
    drifted = replace(OURS, drift=("scaling is Fixed/1, not Fixed/2",))
    decision = reconcile_ephemeral(seen, world(holding=drifted))
    if config is None:
        assert decision.actions == ()
        assert said(decision) == ("True", "Claimed")
        assert decision.status.condition("Drifted") is None
    else:
        assert decision.actions == (Configure(),)
        assert said(decision) == ("Unknown", "Configuring")


@pytest.mark.parametrize("holding", [ABSENT, FOREIGN])
@pytest.mark.parametrize("adopt", ["Never", "IfUnowned"])
def test_the_younger_of_two_says_conflict(holding: Holding, adopt: str) -> None:
    """A younger resource neither makes nor adopts a stream that an older resource claims."""
    decision = reconcile_ephemeral(ephemeral(adopt=adopt), world(holding=holding, rival=RIVAL))
    assert decision.actions == ()
    assert said(decision) == ("False", "Conflict")
    assert "EphemeralStream team/older has these streams" in message(decision)
    assert decision.again == WAIT_SECONDS


def test_who_has_a_stream_keeps_it() -> None:
    """An older resource that comes late reports Conflict: the holder keeps its stream."""
    assert said(reconcile_ephemeral(ephemeral(), world(holding=TAKEN))) == ("False", "Conflict")
    decision = reconcile_ephemeral(claimed(ephemeral()), world(holding=OURS, rival=RIVAL))
    assert said(decision) == ("True", "Claimed")


def test_a_prefix_is_given_up_for_an_older_resource() -> None:
    """Of two resources that mark a prefix in one second, the younger leaves its streams alone."""
    decision = reconcile_ephemeral(claimed(prefixed()), world(holding=MARKED, rival=RIVAL))
    assert decision.actions == (Release(delete=False),)
    assert said(decision) == ("False", "Conflict")


def test_a_predecessor_in_grace_leaves_its_stream() -> None:
    """While a deleted resource is in its grace period, its successor takes over the stream."""
    seen = ephemeral(adopt="IfUnowned")
    decision = reconcile_ephemeral(seen, world(holding=TAKEN, rival=LEAVING))
    assert decision.actions == (Protect(), Adopt("uid-of-older"))


@pytest.mark.parametrize(
    ("adopt", "rival"),
    [
        ("Never", LEAVING),
        ("IfUnowned", RIVAL),
        ("IfUnowned", replace(LEAVING, grace=SUCCESSOR_SECONDS)),
        ("IfUnowned", replace(LEAVING, uid="uid-of-a-third")),
        ("IfUnowned", None),
    ],
)
def test_a_predecessors_stream_is_not_snatched(adopt: str, rival: Rival | None) -> None:
    """A stream is adopted only from a resource in deletion that holds it and has time left."""
    decision = reconcile_ephemeral(ephemeral(adopt=adopt), world(holding=TAKEN, rival=rival))
    assert decision.actions == ()
    assert said(decision) == ("False", "Conflict")


def test_a_stream_that_was_left_behind_is_adopted() -> None:
    """A stream whose resource is gone for good may be adopted: no resource loses it."""
    around = world(holding=TAKEN, left=True)
    decision = reconcile_ephemeral(ephemeral(adopt="IfUnowned"), around)
    assert decision.actions == (Protect(), Adopt("uid-of-older"))


def test_a_stream_that_was_left_behind_is_refused_where_nothing_is_adopted() -> None:
    """The old resource no longer exists, so the condition does not ask the user to delete it."""
    decision = reconcile_ephemeral(ephemeral(), world(holding=TAKEN, left=True))
    assert decision.actions == ()
    assert said(decision) == ("False", "StreamExists")
    assert "Set spec.adopt to IfUnowned" in message(decision)


def test_an_older_claim_goes_before_a_stream_that_was_left_behind() -> None:
    """When two resources could get the stream, the older one gets it."""
    around = world(holding=TAKEN, left=True, rival=RIVAL)
    decision = reconcile_ephemeral(ephemeral(adopt="IfUnowned"), around)
    assert decision.actions == ()
    assert said(decision) == ("False", "Conflict")


def test_a_changed_spec_reaches_the_stream() -> None:
    """The operator applies an edited config to the stream."""
    seen = claimed(ephemeral())
    changed = ephemeral(config={"scaling": {"minSegments": 2}}, generation=2)
    seen = replace(seen, spec=changed.spec, generation=2)
    drifted = replace(OURS, drift=("scaling is Fixed/1, not Fixed/2",))
    decision = reconcile_ephemeral(seen, world(holding=drifted))
    assert decision.actions == (Configure(),)
    seen = after(seen, decision)
    assert (
        seen.status.config_hash != reconcile_ephemeral(seen, world(holding=OURS)).status.config_hash
    )


def test_a_configuration_that_does_not_hold_is_tried_more_and_more_seldom() -> None:
    """If the store keeps changing the configuration, the operator retries after growing waits."""
    drifted = replace(OURS, drift=("retention is 60000, not 1",))
    seen = replace(claimed(ephemeral()), spec=ephemeral(config={"retention": {"seconds": 1}}).spec)
    waits = []
    for seconds in (0, 0, 40, 400):
        decision = reconcile_ephemeral(seen, world(holding=drifted, now=later(seconds)))
        assert decision.actions == (Configure(),)
        seen = after(seen, decision)
        waits.append(decision.again)
    assert waits == [0.0, 0.0, 10.0, 100.0]


def test_a_configuration_changed_behind_our_back_is_reported() -> None:
    """Drift is reported and not reverted, since it may be intended.

    The stream exists, so it is ready.
    """
    drifted = replace(OURS, drift=("retention is Bytes/1, not None/0",))
    decision = reconcile_ephemeral(claimed(ephemeral()), world(holding=drifted))
    assert decision.actions == ()
    assert said(decision) == ("True", "Claimed")
    found = decision.status.condition(ConditionType.DRIFTED)
    assert found is not None
    assert (found.status, found.reason) == ("True", "ConfigDrifted")
    assert "in/helper: retention is Bytes/1, not None/0" in found.message
    gone = reconcile_ephemeral(after(claimed(ephemeral()), decision), world(holding=OURS))
    assert not stands(gone, "Drifted")


def test_a_missing_stream_is_made_again_and_said() -> None:
    """The operator makes a missing stream again and reports that its events are lost."""
    decision = reconcile_ephemeral(claimed(ephemeral()), world())
    assert decision.actions == (Protect(), Make())
    assert said(decision) == ("Unknown", "StreamMissing")
    assert decision.status.streams == ()


def test_another_stream_in_its_place_is_not_ours() -> None:
    """If another client replaces the stream by one of that name, Sluice leaves it alone."""
    decision = reconcile_ephemeral(claimed(ephemeral()), world(holding=FOREIGN))
    assert decision.actions == ()
    assert said(decision) == ("False", "StreamExists")


def test_suspending_holds_everything() -> None:
    """The operator makes nothing for a suspended resource and does not call its store."""
    for seen in (ephemeral(suspend=True), claimed(ephemeral(suspend=False))):
        held = replace(seen, spec=ephemeral(suspend=True, maxAgeSeconds=1).spec)
        decision = reconcile_ephemeral(held, world(now=later(100)))
        assert (decision.actions, decision.again) == ((), None)
        assert said(decision) == ("Unknown", "Suspended")
        assert stands(decision, "Suspended")
        assert not asks_store(held, world())


def test_what_cannot_be_done_is_tried_again() -> None:
    """If the store fails to make a stream, the operator retries soon and keeps the status."""
    decision = reconcile_ephemeral(ephemeral(), world())
    failed = after_ephemeral_failure(
        after(ephemeral(), decision), world(), trouble(StoreUnavailable("broke"))
    )
    assert (failed.actions, failed.again) == ((), RETRY_SECONDS)
    assert ready(failed.status) == ("Unknown", "StoreUnavailable")
    denied = after_ephemeral_failure(ephemeral(), world(), trouble(PermissionDenied("no")))
    assert (ready(denied.status), denied.again) == (("False", "PermissionDenied"), STALLED_SECONDS)


def test_a_failure_keeps_the_owners() -> None:
    """The status names the bound owner before a call fails, and keeps it after the failure."""
    seen = ephemeral(owners=[OWNER], references=frozenset({"owner-1"}))
    seen = after(seen, reconcile_ephemeral(seen, world(PRESENT)))
    failed = after_ephemeral_failure(seen, world(PRESENT), trouble(StoreUnavailable("a")))
    assert [owner.uid for owner in failed.status.owners] == ["owner-1"]


def test_a_claim_ends_with_its_age_in_sight() -> None:
    """The look at which the age is reached is not missed."""
    seen = claimed(ephemeral(maxAgeSeconds=100))
    decision = reconcile_ephemeral(seen, world(holding=OURS, now=later(40)))
    assert decision.again == 60


def test_the_creation_is_counted_from_the_resource() -> None:
    """The age counts from the resource's creation, no matter when the operator first saw it."""
    seen = ephemeral(maxAgeSeconds=100, created=NOW)
    assert reconcile_ephemeral(seen, world(now=later(100))).status.release is not None
