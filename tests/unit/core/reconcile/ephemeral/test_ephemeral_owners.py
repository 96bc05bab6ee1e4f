from dataclasses import replace

import pytest

from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.core.reconcile.ephemeral.decide import (
    CLAIM_SECONDS,
    REFER_SECONDS,
    asks_store,
    reconcile_ephemeral,
)
from sluice.core.reconcile.ephemeral.failure import RETRY_SECONDS, STALLED_SECONDS, WAIT_SECONDS
from sluice.core.reconcile.ephemeral.holding import DRIFT_SECONDS, UNWATCHED_SECONDS
from sluice.core.reconcile.ephemeral.world import (
    Make,
    OwnerSeen,
    Protect,
    Refer,
    Rival,
)
from sluice.core.values.trouble import Trouble
from sluice.errors import ApiUnavailable, Category
from support.reconcile.copies import later
from support.reconcile.ephemerals import (
    ABSENT,
    ABSENT_OWNER,
    ANOTHER,
    MARKED,
    OURS,
    OWNER,
    PRESENT,
    SECOND,
    after,
    claimed,
    ephemeral,
    message,
    prefixed,
    said,
    stands,
    states,
    trouble,
    world,
)

ONE = ephemeral(owners=[OWNER])
TWO = ephemeral(owners=[OWNER, SECOND])
FAR = ephemeral(owners=[OWNER | {"namespace": "other"}], tracking="Observe", gracePeriodSeconds=60)
FORBIDDEN = OwnerSeen(
    trouble=Trouble(
        reason="OwnerForbidden",
        category=Category.SPEC,
        message="deployments.apps cannot be read",
        remedy="Give the operator the right.",
        field="spec.owners[0]",
    )
)
REFERS = frozenset({"owner-1"})


def test_an_owner_that_does_not_exist_yet_is_waited_for() -> None:
    """Without an owner the operator makes no stream and does not call the store."""
    decision = reconcile_ephemeral(ONE, world(ABSENT_OWNER, holding=None))
    assert (decision.actions, decision.again) == ((), WAIT_SECONDS)
    assert said(decision) == ("Unknown", "WaitingForOwner")
    assert "Deployment app" in message(decision)
    assert states(decision) == ["Absent"]
    assert decision.status.owners_summary == "0/1"
    assert not asks_store(ONE, world(ABSENT_OWNER))


def test_a_prefix_is_claimed_before_an_owner_is_there() -> None:
    """An application may make streams as soon as it starts, so its prefix is claimed before."""
    seen = prefixed(owners=[OWNER])
    assert asks_store(seen, world(ABSENT_OWNER))
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER))
    assert (decision.actions, decision.again) == ((Protect(), Make()), CLAIM_SECONDS)
    assert said(decision) == ("Unknown", "WaitingForOwner")
    comes = reconcile_ephemeral(seen, world(PRESENT))
    assert comes.actions == (Refer(((0, "owner-1"),)), Protect(), Make())
    kept = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=MARKED))
    assert (kept.actions, kept.again) == ((), WAIT_SECONDS)
    assert message(kept) == "New streams under 'app-' are claimed for Deployment app."
    assert kept.status.streams == MARKED.streams


@pytest.mark.parametrize(
    "around",
    [
        {"holding": None},
        {"holding": replace(ABSENT, scope=False)},
        {"rival": Rival(name="EphemeralStream older", uid="uid-older")},
    ],
    ids=["store away", "no scope", "claimed by another"],
)
def test_a_prefix_that_cannot_be_claimed_early_waits_for_its_owner(
    around: dict[str, object],
) -> None:
    """A resource whose owner may never appear makes nothing and takes nothing from another."""
    decision = reconcile_ephemeral(prefixed(owners=[OWNER]), world(ABSENT_OWNER, **around))
    assert (decision.actions, said(decision)) == ((), ("Unknown", "WaitingForOwner"))


def test_a_claim_to_existing_streams_waits_for_its_owner() -> None:
    """A claim to existing streams also covers earlier streams, so it can wait for its owner."""
    seen = prefixed(owners=[OWNER], claim="ExistingAndNew")
    assert not asks_store(seen, world(ABSENT_OWNER))
    assert reconcile_ephemeral(seen, world(ABSENT_OWNER)).actions == ()


def test_an_owner_is_bound_once_its_reference_stands() -> None:
    """The reference comes before the stream, since the collector goes by references."""
    decision = reconcile_ephemeral(ONE, world(PRESENT, holding=None))
    assert decision.actions == (Refer(((0, "owner-1"),)),)
    assert decision.again == REFER_SECONDS
    assert said(decision) == ("Unknown", "Making")
    assert decision.status.owners[0].uid is None
    seen = after(ONE, decision, references=REFERS)
    assert asks_store(seen, world(PRESENT))
    decision = reconcile_ephemeral(seen, world(PRESENT))
    assert decision.actions == (Protect(), Make())
    assert decision.status.owners[0].uid == "owner-1"
    assert decision.status.owners_summary == "1/1"


def test_observing_sets_no_reference() -> None:
    """The status alone remembers an owner in another namespace."""
    decision = reconcile_ephemeral(FAR, world(PRESENT))
    assert decision.actions == (Protect(), Make())
    assert decision.status.owners[0].uid == "owner-1"
    assert decision.status.owners[0].namespace == "other"


def test_several_owners_share_a_stream() -> None:
    """The second owner is attached when it appears, while the stream exists for the first."""
    seen = claimed(TWO, PRESENT, ABSENT_OWNER)
    decision = reconcile_ephemeral(seen, world(PRESENT, ANOTHER, holding=OURS))
    assert decision.actions == (Refer(((1, "owner-2"),)),)
    assert said(decision) == ("True", "Claimed")
    seen = after(seen, decision, references=frozenset({"owner-1", "owner-2"}))
    both = reconcile_ephemeral(seen, world(PRESENT, ANOTHER, holding=OURS))
    assert both.actions == ()
    assert both.status.owners_summary == "2/2"


def test_the_stream_stays_with_the_last_owner() -> None:
    """When one of two owners goes, the other one keeps the stream."""
    seen = claimed(TWO, PRESENT, ANOTHER)
    for references in (seen.references, frozenset({"owner-2"})):  # before the collector, and after
        left = replace(seen, references=references)
        decision = reconcile_ephemeral(left, world(ABSENT_OWNER, ANOTHER, holding=OURS))
        assert decision.actions == ()
        assert said(decision) == ("True", "Claimed")
        assert states(decision) == ["Gone", "Present"]


def test_one_of_two_owners_that_is_made_again_is_attached_again() -> None:
    """A new owner under the old name is attached while the stream exists for the other owner."""
    seen = claimed(TWO, PRESENT, ANOTHER)
    decision = reconcile_ephemeral(seen, world(OwnerSeen(uid="owner-3"), ANOTHER, holding=OURS))
    assert decision.actions == (Refer(((0, "owner-3"),)),)
    assert states(decision) == ["Gone", "Present"]


def test_the_collector_deletes_what_its_last_owner_left() -> None:
    """The operator does nothing here: Kubernetes deletes the resource, and the stream with it."""
    seen = claimed(ONE, PRESENT)
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS))
    assert (decision.actions, decision.again) == ((), WAIT_SECONDS)
    assert said(decision) == ("Unknown", "OwnersDeleted")
    assert states(decision) == ["Gone"]


def test_an_owner_made_again_is_another_one() -> None:
    """While the collector is about to delete the resource, no reference gets in its way."""
    seen = claimed(ONE, PRESENT)
    decision = reconcile_ephemeral(seen, world(ANOTHER, holding=OURS))
    assert decision.actions == ()
    assert said(decision) == ("Unknown", "OwnersDeleted")
    assert states(decision) == ["Gone"]


def test_an_orphaned_stream_stays() -> None:
    """After --cascade=orphan removed the reference, the stream stays and the status says so."""
    seen = claimed(ONE, PRESENT, references=frozenset())
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS))
    assert (decision.actions, decision.again) == ((), STALLED_SECONDS)
    assert said(decision) == ("True", "OwnerOrphaned")
    assert "--cascade=orphan" in message(decision)


def test_a_successor_takes_an_orphaned_stream_over() -> None:
    """A new owner of the name is bound as the first owner was."""
    seen = claimed(ONE, PRESENT, references=frozenset())
    decision = reconcile_ephemeral(seen, world(ANOTHER, holding=OURS))
    assert decision.actions == (Refer(((0, "owner-2"),)),)
    seen = after(seen, decision, references=frozenset({"owner-2"}))
    decision = reconcile_ephemeral(seen, world(ANOTHER, holding=OURS))
    assert (said(decision), decision.actions) == (("True", "Claimed"), ())
    assert decision.status.owners[0].uid == "owner-2"


def test_a_reference_that_somebody_took_away_is_set_again() -> None:
    """A tool that rewrites the metadata does not cut the owner off."""
    seen = claimed(ONE, PRESENT, references=frozenset())
    decision = reconcile_ephemeral(seen, world(PRESENT, holding=OURS))
    assert decision.actions == (Refer(((0, "owner-1"),)),)
    assert said(decision) == ("True", "Claimed")
    assert decision.again == REFER_SECONDS


def test_an_owner_that_is_being_deleted_gets_no_reference() -> None:
    """A reference to an owner in deletion would let Kubernetes delete the stream: none is set."""
    going = replace(PRESENT, deleting=True)
    seen = claimed(ONE, PRESENT, references=frozenset())
    decision = reconcile_ephemeral(seen, world(going, holding=OURS))
    assert (said(decision), decision.actions) == (("True", "Claimed"), ())
    for new in (ONE, FAR):
        decision = reconcile_ephemeral(new, world(going))
        assert (said(decision), decision.actions) == (("Unknown", "WaitingForOwner"), ())


def test_an_owner_in_foreground_deletion_needs_its_stream() -> None:
    """An owner's pods may write until the owner's foreground deletion ends."""
    decision = reconcile_ephemeral(
        claimed(ONE, PRESENT), world(replace(PRESENT, deleting=True), holding=OURS)
    )
    assert said(decision) == ("True", "Claimed")


@pytest.mark.parametrize("spec", [ONE.spec, FAR.spec])
def test_an_owner_that_cannot_be_read_is_no_storm(spec: object) -> None:
    """A missing permission is reported with its remedy and checked seldom."""
    seen = replace(ONE, spec=spec)
    decision = reconcile_ephemeral(seen, world(FORBIDDEN, holding=None))
    assert (decision.actions, decision.again) == ((), STALLED_SECONDS)
    assert said(decision) == ("False", "OwnerForbidden")
    assert stands(decision, "Stalled")
    assert "spec.owners[0]: deployments.apps cannot be read. Give" in message(decision)
    assert states(decision) == ["Unknown"]


def test_an_api_server_that_does_not_answer_stalls_nothing() -> None:
    """A failure of the API server passes by itself, so the resource is not stalled."""
    away = OwnerSeen(trouble=trouble(ApiUnavailable("no answer")))
    decision = reconcile_ephemeral(ONE, world(away, holding=None))
    assert said(decision) == ("Unknown", "ApiUnavailable")
    assert decision.again == RETRY_SECONDS


@pytest.mark.parametrize("new", [ONE, FAR])
def test_an_owner_that_cannot_be_read_any_more_counts_as_there(new: object) -> None:
    """A permission that was revoked deletes no stream."""
    assert isinstance(new, type(ONE))
    decision = reconcile_ephemeral(claimed(new, PRESENT), world(FORBIDDEN, holding=OURS))
    assert (said(decision), decision.actions) == (("True", "Claimed"), ())
    assert decision.status.owners[0].uid == "owner-1"
    assert states(decision) == ["Unknown"]


def test_an_observed_owner_that_goes_leaves_a_grace_period() -> None:
    """The status reports the owner's end. The next look is at the end of the grace period."""
    seen = claimed(FAR, PRESENT)
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS))
    assert (decision.actions, decision.again) == ((), 60)
    assert said(decision) == ("Unknown", "GracePeriod")
    assert "released at 2026-01-02T03:05:05Z" in message(decision)
    seen = after(seen, decision)
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS, now=later(20)))
    assert (decision.again, decision.status.release) == (40, None)
    decision = reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS, now=later(60)))
    assert decision.status.release is not None
    assert decision.status.release.reason == "OwnersDeleted"


def test_a_successor_is_adopted_within_grace() -> None:
    """`kubectl replace --force` within the grace period costs no event."""
    seen = claimed(FAR, PRESENT)
    seen = after(seen, reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS)))
    decision = reconcile_ephemeral(seen, world(ANOTHER, holding=OURS, now=later(59)))
    assert (said(decision), decision.actions) == (("True", "Claimed"), ())
    assert decision.status.owners[0].uid == "owner-2"
    assert decision.status.owners_gone_time is None


def test_a_successor_that_was_never_missed_is_adopted_as_well() -> None:
    """An owner may be deleted and made again between two looks. Its successor is adopted, too."""
    decision = reconcile_ephemeral(claimed(FAR, PRESENT), world(ANOTHER, holding=OURS))
    assert said(decision) == ("True", "Claimed")
    assert decision.status.owners[0].uid == "owner-2"


def test_a_successor_comes_too_late() -> None:
    """After the grace period, and without one, an owner made again is a new owner."""
    seen = claimed(FAR, PRESENT)
    seen = after(seen, reconcile_ephemeral(seen, world(ABSENT_OWNER, holding=OURS)))
    late = reconcile_ephemeral(seen, world(ANOTHER, holding=OURS, now=later(60)))
    assert late.status.release is not None
    hasty = replace(FAR, spec=FAR.spec.model_copy(update={"grace_period_seconds": 0}))
    decision = reconcile_ephemeral(claimed(hasty, PRESENT), world(ANOTHER, holding=OURS))
    assert decision.status.release is not None


def test_a_lost_status_binds_referenced_owners_again() -> None:
    """The references tell which owners were bound before the status was lost."""
    seen = claimed(ONE, PRESENT, status=EphemeralStreamStatus())
    decision = reconcile_ephemeral(seen, world(PRESENT, holding=OURS))
    assert said(decision) == ("True", "Claimed")
    assert decision.status.owners[0].uid == "owner-1"


def test_an_owner_taken_out_of_the_spec_loses_its_reference() -> None:
    """The status keeps an owner until its reference is gone. References of other owners stay."""
    seen = claimed(TWO, PRESENT, ANOTHER)
    fewer = replace(seen, spec=ONE.spec)
    for _ in range(2):  # the first attempt may be lost
        decision = reconcile_ephemeral(fewer, world(PRESENT, holding=OURS))
        assert decision.actions[0] == Refer((), drop=frozenset({"owner-2"}))
        assert states(decision) == ["Present", "Removed"]
        assert decision.status.owners_summary == "1/1"
        fewer = replace(fewer, status=decision.status)
    gone = replace(fewer, references=frozenset({"owner-1"}))
    decision = reconcile_ephemeral(gone, world(PRESENT, holding=OURS))
    assert (states(decision), decision.actions) == (["Present"], ())


def test_owners_that_no_watch_tells_of_are_looked_at_each_minute() -> None:
    """One unwatched owner is enough for a look each minute."""
    seen = claimed(TWO, PRESENT, ANOTHER)
    watched = reconcile_ephemeral(seen, world(PRESENT, ANOTHER, holding=OURS))
    unwatched = replace(ANOTHER, watched=False)
    alone = reconcile_ephemeral(seen, world(PRESENT, unwatched, holding=OURS))
    assert watched.again == DRIFT_SECONDS
    assert alone.again == UNWATCHED_SECONDS
