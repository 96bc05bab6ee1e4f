from dataclasses import replace

import pytest

from sluice.core.reconcile.ephemeral.decide import (
    after_ephemeral_failure,
    asks_store,
    reconcile_ephemeral,
)
from sluice.core.reconcile.ephemeral.deletion import READERS_PATIENCE
from sluice.core.reconcile.ephemeral.failure import WAIT_SECONDS
from sluice.core.reconcile.ephemeral.world import OwnerSeen, Release, Unprotect
from sluice.errors import PermissionDenied, StoreUnavailable
from support.reconcile.copies import later
from support.reconcile.ephemerals import (
    ABSENT,
    ABSENT_OWNER,
    ANOTHER,
    OURS,
    OWNER,
    PRESENT,
    SECOND,
    after,
    claimed,
    ephemeral,
    message,
    released,
    said,
    trouble,
    world,
)

FINISHED = OwnerSeen(uid="owner-1", finished=True)
ALSO_FINISHED = OwnerSeen(uid="owner-2", finished=True)
JOB = ephemeral(owners=[SECOND], releaseWhen="OwnersFinished")
AGED = ephemeral(maxAgeSeconds=100)


def test_the_decision_is_written_before_anything_is_deleted() -> None:
    """The status records the release before a deletion begins, so no later look forgets it."""
    decision = reconcile_ephemeral(claimed(JOB, PRESENT), world(FINISHED, holding=OURS))
    assert (decision.actions, decision.again) == ((), 0.0)
    assert said(decision) == ("Unknown", "Releasing")
    assert decision.status.release is not None
    assert decision.status.release.reason == "OwnersFinished"


def test_a_release_deletes_and_keeps_the_resource() -> None:
    """The streams go, then the finalizer. The resource says Released and is ready."""
    seen = released(claimed(JOB, PRESENT), FINISHED)
    assert asks_store(seen, world(FINISHED))
    decision = reconcile_ephemeral(seen, world(FINISHED, holding=OURS))
    assert decision.actions == (Release(delete=True),)
    assert decision.again == 0.0
    seen = after(seen, decision)
    decision = reconcile_ephemeral(seen, world(FINISHED))
    assert decision.actions == (Unprotect(),)
    assert said(decision) == ("True", "Released")
    assert "were deleted: OwnersFinished" in message(decision)
    assert decision.status.release is not None
    assert decision.status.release.completed is not None
    assert (decision.status.streams, decision.status.stream_count) == ((), 0)
    assert decision.again is None


def test_what_was_released_is_never_made_again() -> None:
    """After a release nothing is made again, for any owner and any state of the store."""
    seen = released(claimed(JOB, PRESENT), FINISHED)
    seen = after(seen, reconcile_ephemeral(seen, world(FINISHED)))
    assert not seen.finalizer
    for owner in (FINISHED, PRESENT, ANOTHER, ABSENT_OWNER):
        for holding in (None, ABSENT, OURS):
            decision = reconcile_ephemeral(seen, world(owner, holding=holding, now=later(1e6)))
            assert (decision.actions, decision.again) == ((), None)
            assert said(decision) == ("True", "Released")
            assert not asks_store(seen, world(owner))


def test_what_is_never_made_is_released_without_a_store() -> None:
    """A resource that reaches its age before it has a stream reports Released at once."""
    seen = released(AGED, now=later(100))
    decision = reconcile_ephemeral(seen, world(store=None, holding=None))
    assert (decision.actions, said(decision)) == ((), ("True", "Released"))


def test_a_finalizer_that_stands_is_a_stream_that_may_be_there() -> None:
    """An operator that lost its lease may have made the stream after the release."""
    seen = released(claimed(AGED), now=later(100))
    seen = after(seen, reconcile_ephemeral(seen, world()), finalizer=True)
    assert asks_store(seen, world())
    assert reconcile_ephemeral(seen, world(holding=OURS)).actions == (Release(delete=True),)
    assert reconcile_ephemeral(seen, world()).actions == (Unprotect(),)


def test_the_age_ends_everything() -> None:
    """Past maxAgeSeconds the streams are deleted, even while owners work."""
    seen = claimed(ephemeral(owners=[OWNER], maxAgeSeconds=100), PRESENT)
    decision = reconcile_ephemeral(seen, world(PRESENT, holding=OURS, now=later(99)))
    assert (decision.status.release, decision.again) == (None, 1)
    decision = reconcile_ephemeral(seen, world(PRESENT, holding=OURS, now=later(100)))
    assert decision.status.release is not None
    assert decision.status.release.reason == "MaxAgeReached"


def test_all_owners_have_to_finish() -> None:
    """An owner that still works keeps the streams."""
    seen = claimed(
        ephemeral(owners=[OWNER, SECOND], releaseWhen="OwnersFinished"), PRESENT, ANOTHER
    )
    decision = reconcile_ephemeral(seen, world(FINISHED, ANOTHER, holding=OURS))
    assert said(decision) == ("True", "Claimed")
    decision = reconcile_ephemeral(seen, world(FINISHED, ALSO_FINISHED, holding=OURS))
    assert decision.status.release is not None


def test_finishing_is_nothing_where_deletion_counts() -> None:
    """A finished Job keeps its stream until it is deleted, unless the spec says otherwise."""
    seen = claimed(ephemeral(owners=[SECOND]), PRESENT)
    assert said(reconcile_ephemeral(seen, world(FINISHED, holding=OURS))) == ("True", "Claimed")


def test_a_finished_owner_leaves_a_grace_period() -> None:
    """An owner that runs again within the grace period keeps its streams."""
    new = ephemeral(owners=[SECOND], releaseWhen="OwnersFinished", gracePeriodSeconds=60)
    seen = claimed(new, PRESENT)
    decision = reconcile_ephemeral(seen, world(FINISHED, holding=OURS))
    assert (said(decision), decision.again) == (("Unknown", "GracePeriod"), 60)
    seen = after(seen, decision)
    again = reconcile_ephemeral(seen, world(PRESENT, holding=OURS, now=later(30)))
    assert said(again) == ("True", "Claimed")
    assert again.status.owners_gone_time is None


def test_retained_streams_are_left() -> None:
    """Only Sluice's tags are removed, and an untagged stream is not taken for Sluice's own.

    A store keeps the tags of a sealed stream, so the operator does not check that they are gone.
    """
    seen = released(claimed(ephemeral(maxAgeSeconds=1, onRelease="Retain")), now=later(1))
    decision = reconcile_ephemeral(seen, world(holding=OURS, readers=("StreamCopy team/a",)))
    assert decision.actions == (Release(delete=False), Unprotect())
    assert decision.status.created_milliseconds is None
    assert said(decision) == ("True", "Released")
    assert "were left to you" in message(decision)
    decision = reconcile_ephemeral(after(seen, decision), world(holding=None))
    assert (decision.actions, said(decision)) == ((), ("True", "Released"))


def test_retaining_that_fails_is_tried_again() -> None:
    """The finalizer stays until Sluice's tags are removed."""
    seen = released(claimed(ephemeral(maxAgeSeconds=1, onRelease="Retain")), now=later(1))
    status = reconcile_ephemeral(seen, world(holding=OURS)).status
    failed = after_ephemeral_failure(
        replace(seen, status=status), world(), trouble(StoreUnavailable("a"))
    )
    assert said(failed) == ("Unknown", "StoreUnavailable")
    again = reconcile_ephemeral(replace(seen, status=failed.status), world(holding=OURS))
    assert again.actions == (Release(delete=False), Unprotect())


def test_readers_are_waited_for() -> None:
    """A stream that a copy reads is deleted after it, from the first look on."""
    seen = released(claimed(AGED), now=later(100), readers=("StreamCopy team/a",))
    around = world(holding=OURS, readers=("StreamCopy team/a",), now=later(200))
    decision = reconcile_ephemeral(seen, around)
    assert (decision.actions, decision.again) == ((), WAIT_SECONDS)
    assert said(decision) == ("Unknown", "StillRead")
    assert "after StreamCopy team/a, or after 60 minutes" in message(decision)


def test_readers_are_not_waited_for_for_ever() -> None:
    """A copy that hangs does not keep a stream alive."""
    seen = released(claimed(AGED), now=later(100))
    around = world(holding=OURS, readers=("a",), now=later(100 + READERS_PATIENCE))
    assert reconcile_ephemeral(seen, around).actions == (Release(delete=True),)


def test_a_release_that_does_nothing_is_repeated_more_and_more_seldom() -> None:
    """The operator repeats an ineffective release after growing waits, not in a tight loop."""
    seen = released(claimed(AGED), now=later(100))
    waits = [
        reconcile_ephemeral(seen, world(holding=OURS, now=later(seconds))).again
        for seconds in (100, 104, 140, 10_000)
    ]
    assert waits == [0.0, 1.0, 10.0, 60.0]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreUnavailable("a"), ("Unknown", "StoreUnavailable")),
        (PermissionDenied("a"), ("False", "PermissionDenied")),
    ],
)
def test_a_release_waits_for_the_store(error: StoreUnavailable, expected: tuple[str, str]) -> None:
    """The status does not say Released before the operator knows it."""
    seen = released(claimed(AGED), now=later(100))
    decision = reconcile_ephemeral(seen, world(holding=None, trouble=trouble(error)))
    assert (said(decision), decision.actions) == (expected, ())
    assert decision.again


def test_suspending_stops_a_release() -> None:
    """Suspending stops a release that is not complete. A complete release stays Released."""
    seen = released(claimed(AGED), now=later(100))
    held = replace(seen, spec=ephemeral(maxAgeSeconds=100, suspend=True).spec)
    decision = reconcile_ephemeral(held, world(holding=OURS))
    assert (said(decision), decision.actions) == (("Unknown", "Suspended"), ())
    assert not asks_store(held, world())
    done = after(held, reconcile_ephemeral(seen, world()))
    assert said(reconcile_ephemeral(done, world())) == ("True", "Released")
