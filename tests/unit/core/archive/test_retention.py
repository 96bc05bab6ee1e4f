import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.core.archive.head import RunEntry
from sluice.core.archive.names import RunName
from sluice.core.archive.retention import Retention, expired

DAY = 86_400_000
NOW = 100 * DAY


def runs(*ages: float, unverified: tuple[int, ...] = ()) -> list[RunEntry]:
    """Return runs that ended this many days ago, numbered from 1."""
    return [
        RunEntry(
            run=number,
            name=str(RunName(number, "0" * 64)),
            size=1,
            sha256="0" * 64,
            time=NOW - round(age * DAY),
            bytes=1,
            verified=number not in unverified,
        )
        for number, age in enumerate(ages, start=1)
    ]


def test_the_last_runs_are_kept() -> None:
    """`keep_last` keeps that many runs, or all if there are fewer."""
    there = runs(5, 4, 3, 2, 1)
    assert expired(there, Retention(keep_last=2), now=NOW) == [1, 2, 3]
    assert expired(there, Retention(keep_last=9), now=NOW) == []


def test_young_runs_are_kept() -> None:
    """`keep_seconds` keeps the runs that ended within that time. The last run stays at any age."""
    there = runs(5, 4, 3, 2, 1)
    assert expired(there, Retention(keep_seconds=3 * 86_400), now=NOW) == [1, 2]
    assert expired(there, Retention(keep_seconds=3600), now=NOW) == [1, 2, 3, 4]


def test_what_any_rule_keeps_is_kept() -> None:
    """A run stays if one of the rules keeps it. Without a rule all runs stay."""
    there = runs(5, 4, 3, 2, 1)
    both = Retention(keep_last=1, keep_seconds=2 * 86_400)
    assert expired(there, both, now=NOW) == [1, 2, 3]
    assert expired(there, Retention(), now=NOW) == []


def test_the_newest_verified_run_is_kept() -> None:
    """Later runs that were not verified do not replace it."""
    there = runs(5, 4, 3, 2, unverified=(3, 4))
    assert expired(there, Retention(keep_last=1), now=NOW) == [1, 3]


def test_a_run_that_is_read_is_kept() -> None:
    """A run stays while a client restores it."""
    assert expired(runs(5, 4, 3), Retention(keep_last=1), now=NOW, read={1}) == [2]


@given(
    st.lists(st.floats(0, 50), max_size=12),
    st.sets(st.integers(1, 12)),
    st.builds(
        Retention,
        keep_last=st.none() | st.integers(1, 5),
        keep_seconds=st.none() | st.integers(1, 50 * 86_400),
    ),
)
def test_the_last_one_and_a_verified_one_always_stay(
    ages: list[float], unverified: set[int], retention: Retention
) -> None:
    """Under any rules, the last run and the newest verified run stay."""
    there = runs(*sorted(ages, reverse=True), unverified=tuple(unverified))
    kept = [one for one in there if one.run not in expired(there, retention, now=NOW)]
    assert kept[-1:] == there[-1:]
    verified = [one for one in there if one.verified]
    assert [one for one in kept if one.verified][-1:] == verified[-1:]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Retention(keep_last=3), Retention(keep_last=1), Retention(keep_last=3)),
        (Retention(keep_last=3), Retention(), Retention()),
        (Retention(), Retention(keep_last=1), Retention()),
        (
            Retention(keep_last=1),
            Retention(keep_seconds=5),
            Retention(keep_last=1, keep_seconds=5),
        ),
    ],
)
def test_what_either_keeps_is_kept(one: Retention, other: Retention, both: Retention) -> None:
    """Two retentions combine to one that keeps each run that either keeps.

    So forged controls of a driver remove no run that its arguments keep.
    """
    assert one.and_what(other) == other.and_what(one) == both
