from datetime import timedelta

import pytest

from sluice.api.status.store_status import StreamStoreStatus
from sluice.core.reconcile.store import (
    REFUSING,
    TRIES_AT_ONCE,
    TRY_SECONDS,
    StoreDecision,
    StoreWorld,
    interval,
    reconcile_store,
)
from sluice.core.values.model import StoreHealth
from sluice.core.values.trouble import Trouble
from sluice.errors import (
    AuthenticationFailed,
    ClaimNotFound,
    InvalidSpec,
    PermissionDenied,
    SecretNotFound,
    SluiceError,
    StoreTimeout,
    StoreUnavailable,
)
from support.reconcile.copies import NOW

HEALTHY = StoreHealth(latency=0.0123, protocol=17)


def look(
    probe: StoreHealth | SluiceError,
    *,
    status: StreamStoreStatus | None = None,
    users: tuple[str, ...] = (),
    deleting: bool = False,
    seconds: float = 0,
    due: float = 30,
    age: float = 0,
) -> StoreDecision:
    """Return the decision of a look at a probed store, `seconds` after NOW."""
    now = NOW + timedelta(seconds=seconds)
    answer = Trouble.of(probe) if isinstance(probe, SluiceError) else probe
    return reconcile_store(
        status or StreamStoreStatus(),
        StoreWorld(
            now=now,
            probed=now - timedelta(seconds=age),
            probe=answer,
            due=due,
            users=users,
        ),
        generation=3,
        deleting=deleting,
    )


def said(decision: StoreDecision) -> dict[str, str]:
    """Return the status of each condition by its type."""
    return {found.type: found.status for found in decision.status.conditions}


def test_a_store_that_answers_is_ready() -> None:
    """The status has its latency and its protocol."""
    decision = look(HEALTHY)
    assert said(decision) == {"Ready": "True"}
    status = decision.status
    assert (status.latency_milliseconds, status.protocol_version) == (12, 17)
    assert (status.observed_generation, status.last_probe_time, status.in_use_by) == (3, NOW, 0)
    assert not decision.hold


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("no connection"),
        StoreTimeout("no answer"),
        SecretNotFound("applied a moment later"),
    ],
)
def test_a_store_that_is_away_is_waited_for(error: SluiceError) -> None:
    """It may recover by itself, and is probed sooner than a ready store."""
    decision = look(error)
    assert said(decision) == {"Ready": "Unknown", "Reconciling": "True"}
    assert decision.status.conditions[0].reason == error.reason
    assert interval(Trouble.of(error), 1) < interval(HEALTHY, 0)


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("who are you"),
        PermissionDenied("not you"),
        InvalidSpec("no such address"),
    ],
)
def test_what_does_not_get_right_by_itself_stalls_the_store(error: SluiceError) -> None:
    """A user has to mend it. The operator probes it again without a request."""
    decision = look(error)
    assert said(decision) == {"Ready": "False", "Stalled": "True"}
    assert decision.again > 0


def test_a_store_that_may_come_back_is_asked_again_within_seconds_however_long_it_is_away() -> None:
    """With the time of a probe, it is found again after 15 seconds at most."""
    trouble = Trouble.of(StoreUnavailable("no connection"))
    waits = [interval(trouble, failures) for failures in range(1, 99)]
    assert waits[:3] == [5, 8, 8]
    assert max(waits) + TRY_SECONDS < 15


def test_stores_that_went_away_together_are_not_asked_together() -> None:
    """Chance shortens each wait, and never extends it."""
    trouble = Trouble.of(StoreTimeout("no answer"))
    waits = [interval(trouble, 9, chance=chance) for chance in (0.0, 0.5, 1.0)]
    assert waits == pytest.approx([8, 7.2, 6.4])


@pytest.mark.parametrize("away", [1, 10, 40, 80, 100, 10_000])
def test_many_stores_that_are_away_do_not_take_all_workers(away: int) -> None:
    """A namespace has few probes under way, until each store is probed once a minute only."""
    wait = interval(Trouble.of(StoreTimeout("no answer")), 9, away=away)
    assert wait <= REFUSING.most
    if wait < REFUSING.most:
        assert away * TRY_SECONDS / wait <= TRIES_AT_ONCE


def test_a_store_that_a_person_has_to_mend_is_asked_less_and_less() -> None:
    """A login that is refused each few seconds might be locked."""
    trouble = Trouble.of(AuthenticationFailed("who are you"))
    assert [interval(trouble, number) for number in range(1, 8)] == [5, 10, 20, 40, 60, 60, 60]


def test_time_that_has_passed_since_a_probe_counts() -> None:
    """The next probe is due a fixed time after the last one, and not after the look."""
    error = StoreUnavailable("no connection")
    assert look(error, due=40, age=15).again == 25
    assert look(error, due=40, age=99).again == 1
    assert look(HEALTHY, age=10).again == 20


def test_a_status_that_is_old_news_is_not_kept() -> None:
    """An old latency would be wrong while the store is away. Its protocol is remembered."""
    before = look(HEALTHY).status
    after = look(StoreUnavailable("no connection"), status=before, seconds=60).status
    assert (after.latency_milliseconds, after.protocol_version) == (None, 17)
    assert after.conditions[0].last_transition_time == NOW + timedelta(seconds=60)


def test_a_store_in_use_is_held() -> None:
    """Copies with bytes in it prevent its deletion, whether it answers or not."""
    for probe in (HEALTHY, StoreUnavailable("no connection")):
        decision = look(probe, users=("StreamCopy a", "StreamCopy b"))
        assert decision.hold
        assert decision.status.in_use_by == 2


def test_a_deleted_store_says_whom_it_waits_for() -> None:
    """The message names some users, and counts the others."""
    users = tuple(f"StreamCopy c{number}" for number in range(7))
    decision = look(HEALTHY, users=users, deleting=True)
    assert said(decision) == {"Ready": "Unknown", "Reconciling": "True"}
    (ready, _) = decision.status.conditions
    assert ready.reason == "InUse"
    assert "StreamCopy c0, StreamCopy c1" in ready.message
    assert "c4 and 2 more" in ready.message


def test_a_deleted_store_that_nobody_needs_is_let_go() -> None:
    """No finalizer stays."""
    assert not look(HEALTHY, deleting=True).hold


def test_a_look_that_finds_nothing_new_writes_only_when_it_was() -> None:
    """Two looks in the same second give the same status."""
    first = look(HEALTHY)
    assert look(HEALTHY, status=first.status).status == first.status
    again = look(HEALTHY, status=first.status, seconds=30).status
    assert again.conditions == first.status.conditions


def test_a_place_for_archives_is_ready_as_a_store_is() -> None:
    """A bucket has a latency. A volume has none, since only pods read it."""
    bucket = look(StoreHealth(latency=0.02)).status
    assert (bucket.latency_milliseconds, bucket.protocol_version) == (20, None)
    volume = look(StoreHealth(), status=bucket)
    assert said(volume) == {"Ready": "True"}
    assert volume.status.latency_milliseconds is None
    (ready,) = volume.status.conditions
    assert ready.reason == "Mountable"


def test_a_claim_may_be_applied_after_its_store() -> None:
    """A missing claim counts as no failure yet."""
    decision = look(ClaimNotFound("there is no PersistentVolumeClaim 'archives'"))
    assert said(decision) == {"Ready": "Unknown", "Reconciling": "True"}
