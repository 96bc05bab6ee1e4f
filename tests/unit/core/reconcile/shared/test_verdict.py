import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.reconcile.shared.verdict import ATTEMPTS, LASTING, RECHECK, in_a_row, judge
from sluice.core.values.trouble import Trouble
from sluice.errors import Category

FAILURES = st.integers(1, 1_000)
LIMITS = st.integers(0, 100)
PASSING = (Category.BACKEND, Category.INFRASTRUCTURE, Category.SCHEDULING)


def of(category: Category, *, retryable: bool = False) -> Trouble:
    """Return a failure of a category."""
    return Trouble(reason="Reason", category=category, message="m", remedy="r", retryable=retryable)


@given(failures=FAILURES, limit=LIMITS, retryable=st.booleans())
def test_wrong_data_are_never_tried_again(failures: int, limit: int, *, retryable: bool) -> None:
    """An integrity failure waits for a user, however it is marked."""
    verdict = judge(of(Category.INTEGRITY, retryable=retryable), failures=failures, limit=limit)
    assert verdict == (True, None)


@pytest.mark.parametrize("category", [Category.SPEC, Category.BACKEND])
@given(failures=FAILURES)
def test_a_wrong_spec_is_looked_at_again_for_ever(category: Category, failures: int) -> None:
    """A failure that is mended elsewhere stalls, and is checked within ten minutes."""
    final, wait = judge(of(category), failures=failures, limit=None)
    assert final
    assert wait is not None
    assert RECHECK.first <= wait <= RECHECK.most


@pytest.mark.parametrize("category", [Category.SPEC, Category.BACKEND])
@given(failures=FAILURES, limit=LIMITS)
def test_attempts_that_a_person_has_to_help_end_with_the_limit_too(
    category: Category, failures: int, limit: int
) -> None:
    """Each attempt may copy everything again, and help may never come."""
    verdict = judge(of(category), failures=failures, limit=limit)
    assert verdict.final
    assert (verdict.wait is None) == (failures > limit)


@pytest.mark.parametrize("reason", sorted(LASTING))
def test_an_attempt_that_failed_for_good_is_the_last(reason: str) -> None:
    """Another attempt would end the same. The same failure without an attempt costs nothing."""
    trouble = of(Category.SPEC).model_copy(update={"reason": reason})
    assert judge(trouble, failures=1, limit=100) == (True, None)
    assert judge(trouble, failures=1, limit=None) == (True, RECHECK.first)


@pytest.mark.parametrize("category", PASSING)
@given(limit=LIMITS)
def test_a_passing_failure_is_tried_again_up_to_the_limit(category: Category, limit: int) -> None:
    """`limit` failures in a row are allowed, and one more is final."""
    trouble = of(category, retryable=True)
    assert not any(judge(trouble, failures=n, limit=limit).final for n in range(1, limit + 1))
    assert judge(trouble, failures=limit + 1, limit=limit) == (True, None)


@pytest.mark.parametrize("category", PASSING)
def test_waits_never_shrink_and_end_at_the_longest(category: Category) -> None:
    """Each category has its own first and longest wait, and doubles between them."""
    trouble = of(category, retryable=True)
    waits = [judge(trouble, failures=n, limit=200).wait or 0.0 for n in range(1, 200)]
    assert waits == sorted(waits)
    assert waits[0] == ATTEMPTS[category].first
    assert waits[1] == 2 * waits[0]
    assert waits[-1] == ATTEMPTS[category].most


@pytest.mark.parametrize("category", [*PASSING, Category.SPEC])
def test_failures_in_a_row_are_told_by_the_times_between_them(category: Category) -> None:
    """Completed waits count on. After a long silence the first wait comes again."""
    trouble = of(category, retryable=category in PASSING)
    waits: list[float] = []
    number = 1
    while len(waits) < 10:
        wait = judge(trouble, failures=number, limit=None).wait
        assert wait is not None
        waits.append(wait)
        number = in_a_row(trouble, wait)
    assert waits == [judge(trouble, failures=n, limit=None).wait for n in range(1, 11)]
    assert in_a_row(trouble, 0) == 1
    assert in_a_row(trouble, 3 * waits[-1]) == 1


def test_what_does_not_pass_and_is_nobodys_store_is_final() -> None:
    """A deadline and an aborted attempt are not checked again."""
    assert judge(of(Category.INFRASTRUCTURE), failures=1, limit=6) == (True, None)
    assert judge(of(Category.SCHEDULING), failures=1, limit=6) == (True, None)
