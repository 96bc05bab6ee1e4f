"""Times when a schedule is due, written as for cron."""

from datetime import UTC, datetime, timedelta

import pytest

from sluice.api.fields.schedule import Schedule
from sluice.core.values.schedule import due, following
from sluice.errors import InvalidSpec

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def schedule(cron: str, zone: str = "Etc/UTC", **fields: object) -> Schedule:
    """Return a schedule as YAML has it."""
    return Schedule.model_validate({"cron": cron, "timeZone": zone, **fields})


@pytest.mark.parametrize(
    ("cron", "zone", "first"),
    [
        ("*/5 * * * *", "Etc/UTC", "2026-05-04T12:05:00Z"),
        ("0 * * * *", "Etc/UTC", "2026-05-04T13:00:00Z"),
        ("0 3 * * *", "Etc/UTC", "2026-05-05T03:00:00Z"),
        ("0 3 * * *", "Europe/Berlin", "2026-05-05T01:00:00Z"),
        ("30 9 * * mon-fri", "America/New_York", "2026-05-04T13:30:00Z"),
        ("0 0 29 feb *", "Etc/UTC", "2028-02-29T00:00:00Z"),
        ("@hourly", "Etc/UTC", "2026-05-04T13:00:00Z"),
        ("@daily", "Asia/Kolkata", "2026-05-04T18:30:00Z"),
        ("@yearly", "Etc/UTC", "2027-01-01T00:00:00Z"),
    ],
)
def test_the_next_time_is_that_of_the_zone(cron: str, zone: str, first: str) -> None:
    """The fields of the schedule are times on the clock of its zone."""
    assert following(schedule(cron, zone), NOON) == datetime.fromisoformat(first)


def test_something_is_due_from_its_time_on() -> None:
    """A time is due from its very moment until it is handled."""
    hourly = schedule("0 * * * *")
    since = NOON - timedelta(minutes=10)
    almost = NOON - timedelta(milliseconds=1)
    assert due(hourly, since=since, now=almost) is None
    for later in (timedelta(), SECOND / 2, timedelta(minutes=59)):
        assert due(hourly, since=since, now=NOON + later) == NOON
        assert due(hourly, since=NOON, now=NOON + later) is None


def test_of_many_that_were_missed_the_last_one_is_due() -> None:
    """After a day without the operator, one run is due, not one for each missed time."""
    hourly = schedule("0 * * * *")
    assert due(hourly, since=NOON - timedelta(days=1), now=NOON + 5 * SECOND) == NOON


def test_what_is_too_late_is_not_due() -> None:
    """A time is due only until its starting deadline."""
    limited = schedule("0 * * * *", startingDeadlineSeconds=60)
    since = NOON - timedelta(days=1)
    assert due(limited, since=since, now=NOON + 60 * SECOND) == NOON
    assert due(limited, since=since, now=NOON + 61 * SECOND) is None


def test_an_hour_that_is_left_out_or_comes_twice_has_one_run() -> None:
    """A daily time has one run on the days of a change of clocks, as in Debian's cron."""
    nightly = schedule("30 2 * * *", "Europe/Berlin")
    spring = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    autumn = datetime(2026, 10, 24, 12, 0, tzinfo=UTC)
    for start in (spring, autumn):
        times, at = [], start
        while at < start + timedelta(days=2):
            at = following(nightly, at)
            times.append(at)
        days = [one.date() for one in times]
        assert len(set(days)) == len(days)


def test_what_was_due_in_an_hour_that_comes_twice_is_due_in_its_second_half() -> None:
    """The clock of the zone then shows an earlier time again."""
    nightly = schedule("30 1 * * *", "America/New_York", startingDeadlineSeconds=3600)
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    since = first - timedelta(days=1)
    assert following(nightly, since) == first
    for minutes in (0, 29, 31, 51, 60):
        assert due(nightly, since=since, now=first + timedelta(minutes=minutes)) == first
    assert due(nightly, since=since, now=first + timedelta(minutes=61)) is None


@pytest.mark.parametrize(
    ("cron", "zone", "field", "said"),
    [
        ("0 0 31 2 *", "Etc/UTC", "spec.schedule.cron", "never due"),
        ("30-10 * * * *", "Etc/UTC", "spec.schedule.cron", "Bad minute"),
        ("0 0 * * *", "Europe/Atlantis", "spec.schedule.timeZone", "no time zone"),
        ("0 0 * * *", "Europe", "spec.schedule.timeZone", "no time zone"),
    ],
)
def test_what_has_no_times_is_refused(cron: str, zone: str, field: str, said: str) -> None:
    """The field's pattern accepts these values, but no clock ever shows such a time."""
    with pytest.raises(InvalidSpec, match=said) as caught:
        following(schedule(cron, zone), NOON)
    assert caught.value.field == field
