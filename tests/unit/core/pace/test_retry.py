import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.pace.retry import POLICIES, Patience
from sluice.errors import (
    AuthenticationFailed,
    Category,
    DigestMismatch,
    InfrastructureError,
    InvalidSpec,
    PermissionDenied,
    SchedulingError,
    SluiceError,
    StoreUnavailable,
)


def test_waits_double_up_to_the_longest() -> None:
    """Each failure in a row doubles the wait, up to the longest wait of its category."""
    patience = Patience()
    waits = [patience.delay(StoreUnavailable("down"), now=0) for _ in range(9)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]


@pytest.mark.parametrize(
    ("error", "first", "patience"),
    [
        (StoreUnavailable("x"), 0.2, 300),
        (InfrastructureError("x"), 0.5, 120),
        (SchedulingError("x"), 5, 600),
    ],
    ids=["store", "infrastructure", "scheduling"],
)
def test_each_category_has_its_own_backoff(
    error: SluiceError, first: float, patience: float
) -> None:
    """The first wait, and the time after which retries end, depend on the error's category."""
    mine = Patience()
    assert mine.delay(error, now=1000) == first
    assert mine.delay(error, now=1000 + patience) is not None
    assert mine.delay(error, now=1000.1 + patience) is None


@pytest.mark.parametrize(
    "error", [InvalidSpec("x"), DigestMismatch("x"), PermissionDenied("x")], ids=lambda e: e.reason
)
def test_what_trying_again_cannot_help_is_given_up_at_once(error: SluiceError) -> None:
    """An error that is not retryable has no retry, whatever the patience."""
    assert Patience(patience=1e9).delay(error, now=0) is None


def test_progress_renews_the_patience() -> None:
    """After progress, waits and patience begin anew."""
    patience = Patience(patience=10)
    assert patience.delay(StoreUnavailable("x"), now=0) == 0.2
    assert patience.delay(StoreUnavailable("x"), now=10) == 0.4
    patience.advanced()
    assert patience.delay(StoreUnavailable("x"), now=11) == 0.2
    assert patience.delay(StoreUnavailable("x"), now=21) == 0.4
    assert patience.delay(StoreUnavailable("x"), now=21.5) is None


def test_no_patience_still_tries_once_more_at_the_same_moment() -> None:
    """With a patience of 0 seconds, retries end as soon as time passes without progress."""
    patience = Patience(patience=0)
    assert patience.delay(StoreUnavailable("x"), now=5) == 0.2
    assert patience.delay(StoreUnavailable("x"), now=5.2) is None


def test_endless_patience_never_breaks() -> None:
    """After thousands of failures, the wait is still the longest one."""
    patience = Patience(patience=float("inf"))
    waits = [patience.delay(StoreUnavailable("x"), now=n) for n in range(3000)]
    assert waits[-1] == 15


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_waits_never_shrink_without_progress(gaps: list[float]) -> None:
    """Each wait is at least as long as the wait before."""
    patience, now, waits = Patience(patience=1e9), 0.0, [0.0]
    for gap in gaps:
        now += gap
        wait = patience.delay(InfrastructureError("x"), now)
        assert wait is not None
        waits.append(wait)
    assert waits == sorted(waits)
    assert waits[-1] <= 30


def test_every_category_has_a_policy() -> None:
    """The table of policies has an entry for each category of errors."""
    assert set(POLICIES) == set(Category)


def test_a_store_that_knew_us_is_asked_again_for_a_while() -> None:
    """After progress, a rejected login is retried for 150 seconds.

    A changed password reaches the driver's files later than the store.
    """
    patience = Patience()
    assert patience.delay(AuthenticationFailed("wrong"), now=0) is None
    patience.advanced()
    waits = [patience.delay(AuthenticationFailed("changed"), now=at) for at in (0, 1, 3, 150)]
    assert waits == [1, 2, 4, 5]
    assert patience.delay(AuthenticationFailed("changed"), now=151) is None
