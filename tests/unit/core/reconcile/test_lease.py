"""A replica's decision to take the Lease, to go on, or to end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.reconcile.lease import ACTS, LASTS, RELEASED, LeaseSeen, LeaseStep, Replica

ME, OTHER = "me", "other"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen(holder: str = OTHER, version: str = "1", seconds: float = LASTS) -> LeaseSeen:
    """Return a Lease."""
    return LeaseSeen(version=version, holder=holder, seconds=seconds, transitions=3)


def steps(
    *looks: tuple[float, LeaseSeen | None], replica: Replica | None = None
) -> list[LeaseStep]:
    """Return the steps that a replica takes after these looks, each of which has a time."""
    replica, found = replica or Replica(ME), []
    for now, lease in looks:
        replica, step = replica.look(lease, now)
        found.append(step)
    return found


def leader(began: float = 0.0) -> Replica:
    """Return a replica that has held the Lease since `began`."""
    replica, _ = Replica(ME).look(seen("", seconds=0), began)
    return replica.held(began)


def test_an_unchanged_lease_is_taken_after_its_time() -> None:
    """The time counts from the first look at it, and not from a time in the Lease."""
    looks = [(float(second), seen()) for second in range(3, 14)]
    assert steps(*looks) == [LeaseStep.WAIT] * 10 + [LeaseStep.TAKE]


def test_each_change_begins_the_time_anew() -> None:
    """This holds for any change."""
    looks = [(float(second), seen(version=str(second // 9))) for second in range(18)]
    assert LeaseStep.TAKE not in steps(*looks)


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    """A replica also takes a Lease that was never held."""
    for spec in (RELEASED, {}):
        lease = LeaseSeen.of({"metadata": {"resourceVersion": "7"}, "spec": spec})
        assert steps((0.0, lease)) == [LeaseStep.TAKE]


def test_a_lease_that_is_not_there_is_waited_for_as_well() -> None:
    """A user may have deleted it while a replica acts by it."""
    looks: list[tuple[float, LeaseSeen | None]] = [(float(second), None) for second in range(11)]
    assert steps((-1.0, seen()), *looks) == [LeaseStep.WAIT] * 11 + [LeaseStep.TAKE]


def test_a_name_that_was_removed_alone_is_waited_for() -> None:
    """The holder has not given it back, and has not noticed yet."""
    looks = [(float(second), seen("")) for second in range(11)]
    assert steps(*looks) == [LeaseStep.WAIT] * 10 + [LeaseStep.TAKE]


def test_the_time_begins_anew_after_a_pause() -> None:
    """The API server was away, and the holder could not renew the Lease either."""
    looks = [(0.0, seen()), (600.0, seen()), *((600.0 + one, seen()) for one in range(1, 11))]
    assert steps(*looks) == [LeaseStep.WAIT] * 11 + [LeaseStep.TAKE]


def test_another_version_may_hold_it_for_longer() -> None:
    """No version holds it for longer than a minute."""
    lease = LeaseSeen.of(
        {"metadata": {"resourceVersion": "7"}, "spec": _spec(leaseDurationSeconds=15)}
    )
    looks = [(float(second), lease) for second in range(16)]
    assert steps(*looks) == [LeaseStep.WAIT] * 15 + [LeaseStep.TAKE]


def _spec(**fields: Any) -> dict[str, Any]:
    return {"holderIdentity": OTHER, "leaseDurationSeconds": 10} | fields


@given(
    st.dictionaries(
        st.sampled_from(
            ["holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime", "more"]
        ),
        st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.floats(),
    )
)
def test_whatever_is_written_in_it_the_lease_is_free_within_a_minute(spec: dict[str, Any]) -> None:
    """This holds for any content, and a replica then writes a valid Lease."""
    lease = LeaseSeen.of({"metadata": {"resourceVersion": "7"}, "spec": spec})
    looks = [(float(second), lease) for second in range(61)]
    assert steps(*looks)[-1] is LeaseStep.TAKE
    replica, _ = Replica(ME).look(lease, 0.0)
    _, written = replica.trying(0.0, NOW)
    assert written["holderIdentity"] == ME
    assert 0 <= written["leaseTransitions"] < 2**31
    assert written["renewTime"] == written["acquireTime"] == "2026-01-01T00:00:00.000000Z"


def test_a_holder_acts_for_less_time_than_others_wait() -> None:
    """Its time counts from before the call that wrote the Lease."""
    assert leader(began=100.0).until == 100.0 + ACTS
    assert ACTS < LASTS


def test_a_holder_renews_after_its_time_if_no_other_came() -> None:
    """The API server was away for long, and no process has to restart."""
    assert steps((600.0, seen(ME)), replica=leader()) == [LeaseStep.TAKE]


@pytest.mark.parametrize("now", [1.0, 600.0])
def test_a_holder_ends_when_another_has_the_lease(now: float) -> None:
    """This holds even within its time: a user decided so."""
    assert steps((now, seen()), replica=leader()) == [LeaseStep.END]


@pytest.mark.parametrize("lease", [None, seen(""), seen("", seconds=0)])
def test_a_holder_takes_back_what_is_nobodys_within_its_time(lease: LeaseSeen | None) -> None:
    """After that time another replica may have acted, and it ends."""
    assert steps((ACTS - 0.1, lease), replica=leader()) == [LeaseStep.TAKE]
    assert steps((ACTS + 0.1, lease), replica=leader()) == [LeaseStep.END]


def test_its_own_name_means_nothing_to_a_replica_that_never_wrote_it() -> None:
    """Another replica wrote the name. After a try with a lost answer, it was this one."""
    assert steps((0.0, seen(ME))) == [LeaseStep.WAIT]
    assert steps((0.0, seen("", seconds=0)), (1.0, seen(ME, "2"))) == [
        LeaseStep.TAKE,
        LeaseStep.TAKE,
    ]


def test_a_renewal_changes_no_more_than_it_has_to() -> None:
    """Holder and time of the take-over stay, and a user's change is corrected."""
    replica, _ = leader().look(seen(ME), 1.0)
    assert replica.trying(1.0, NOW)[1] == {
        "holderIdentity": ME,
        "leaseDurationSeconds": 10,
        "renewTime": "2026-01-01T00:00:00.000000Z",
    }
    taken, _ = Replica(ME).look(seen(), 1.0)
    assert taken.trying(1.0, NOW)[1]["leaseTransitions"] == 4


def test_a_renewal_whose_answer_was_lost_counts_once_it_is_seen() -> None:
    """It counts from its begin, so a slow API server costs a holder nothing."""
    replica, spec = leader().trying(2.0, NOW)
    later = seen(ME, "2")
    arrived = LeaseSeen(later.version, ME, LASTS, 3, renewed=spec["renewTime"])
    assert replica.look(later, 6.0)[0].until == ACTS
    assert replica.look(arrived, 6.0)[0].until == 2.0 + ACTS
    other = LeaseSeen(later.version, OTHER, LASTS, 3, renewed=spec["renewTime"])
    assert replica.look(other, 6.0)[0].until == ACTS
