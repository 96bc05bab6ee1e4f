"""Schedules in cron's syntax: find the times at which a run is due.

Times are local times of a zone. Where clocks skip an hour, or repeat it, a job at a fixed time
runs once, as with Debian's cron.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from sluice.errors import InvalidSpec

if TYPE_CHECKING:
    from sluice.api.fields.schedule import Schedule

_SHORT: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELD: Final = "spec.schedule"
"""The field that errors name, if no other one is given."""


def following(schedule: Schedule, after: datetime, *, field: str = _FIELD) -> datetime:
    """Return the first scheduled time after another time.

    Raises:
        InvalidSpec: there is no such zone, or the schedule has no time.
    """
    return _next(schedule, after, back=False, field=field)


def due(
    schedule: Schedule, *, since: datetime, now: datetime, field: str = _FIELD
) -> datetime | None:
    """Return the latest scheduled time after `since`; None if there is none or its deadline passed.

    Args:
        schedule: the times, and how late a start may be.
        since: the last scheduled time that was handled.
        now: the time.
        field: the field of the spec that has the schedule.

    Raises:
        InvalidSpec: there is no such zone, or the schedule has no time.
    """
    begun = now.replace(microsecond=0)
    latest = _next(schedule, begun + timedelta(seconds=1), back=True, field=field)
    # The backward search misses a time in a repeated hour: clocks show an earlier time again.
    while (later := following(schedule, latest, field=field)) <= now:
        latest = later
    if latest <= since:
        return None
    limit = schedule.starting_deadline_seconds
    late = limit is not None and now - latest > timedelta(seconds=limit)
    return None if late else latest


def announced(
    schedule: Schedule, known: datetime | None, *, now: datetime, field: str = _FIELD
) -> tuple[datetime | None, datetime | None]:
    """Give the time that is due and was not handled, and the next one after now.

    The next time is written into a status, and counts from there. So a schedule that is added to an
    old resource begins with its next time.

    Args:
        schedule: the times, and how late a start may be.
        known: the next time as the status has it; None before the first look.
        now: the time.
        field: the field of the spec that has the schedule.

    Raises:
        InvalidSpec: there is no such zone, or the schedule has no time.
    """
    later = following(schedule, now, field=field)
    if known is None or known > now:
        return None, later
    return due(schedule, since=known - timedelta(seconds=1), now=now, field=field), later


def _next(schedule: Schedule, start: datetime, *, back: bool, field: str) -> datetime:
    """Return the first scheduled time after another time, or the last one before it."""
    try:
        zone = ZoneInfo(schedule.time_zone)
    except (KeyError, OSError, ValueError) as error:  # OSError: the name of a folder of zones
        raise InvalidSpec(
            f"there is no time zone {schedule.time_zone!r}",
            field=f"{field}.timeZone",
            remedy="Name one of the IANA time zone database, such as Europe/Berlin.",
        ) from error
    cron = _SHORT.get(schedule.cron, schedule.cron)
    try:
        found = next(CronSim(cron, start.astimezone(zone), reverse=back))
    except (CronSimError, StopIteration) as error:
        why = str(error) or "no such day in any month"
        raise InvalidSpec(
            f"{schedule.cron!r} is never due: {why}",
            field=f"{field}.cron",
            remedy="Correct it: minute, hour, day of the month, month, day of the week.",
        ) from error
    return found.astimezone(start.tzinfo)
