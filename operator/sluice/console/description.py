"""Print a resource on one page: spec, conditions, progress, attempts, pods, events, next step."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import yaml
from rich.text import Text

from sluice.api.status.common import CopyingStatus
from sluice.api.status.follow_status import ScopeFollowStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.console.overview import COLOURS, followed, numbers
from sluice.console.page import duration, out, printable
from sluice.console.queries import query_numbers
from sluice.console.tables import columns
from sluice.core.values.text import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.administration.description import Description, Happening
    from sluice.api.status.common import ResourceStatus
    from sluice.kube.api.kinds import Object

    Row = tuple[str, ...]

_MOST_SPEC: Final = 40
"""Lines of the spec that are shown."""

_INDENT: Final = "  "
_WHEN: Final = "%Y-%m-%d %H:%M:%S"

STREAMS: Final = ("STREAM", "STATE", "WHY")
CONDITIONS: Final = ("TYPE", "STATUS", "REASON", "SINCE")
ATTEMPTS: Final = ("#", "OUTCOME", "REASON", "BEGAN", "TOOK", "JOB")
EVENTS: Final = ("AGE", "TYPE", "REASON", "TIMES", "MESSAGE")
"""Headings of the tables."""


def show_description(found: Description, *, now: datetime) -> None:
    """Print a resource with all that belongs to it.

    Args:
        found: the resource.
        now: the time, for the age of events.
    """
    for line in _page(found, now):
        out.print(line)


def _page(found: Description, now: datetime) -> Iterator[Text]:
    meta = found.body["metadata"]
    going = " (being deleted)" if found.deleting else ""
    resource = found.resource
    yield Text.assemble(
        (f"{resource.spec.name} ", "bold"),
        printable(f"{resource.namespace}/{resource.name}{going}"),
    )
    created = str(meta.get("creationTimestamp", ""))
    said = f"created {created}, generation {meta.get('generation', 0)}, UID {meta['uid']}"
    yield Text(_INDENT + printable(said))
    yield from _section("Spec", _spec(found.body))
    yield from _conditions(found)
    if isinstance(found.status, CopyingStatus):
        yield from _section("Progress", [_INDENT + "  ".join(numbers(found.status))])
        yield from _section("Streams", _streams(found.status))
        yield from _section("Attempts", _history(found.status))
    if isinstance(found.status, StreamQueryStatus):
        yield from _section("Progress", [_INDENT + "  ".join(query_numbers(found.status))])
    yield from _section("Jobs and pods", _pods(found))
    yield from _section("Events", _events(found.happenings, now))
    for part in found.forbidden:
        yield Text(f"You have no right to read {part}, so they are left out.", style="yellow")
    yield from _section("Next step", [_INDENT + found.next_step])


def _section(title: str, lines: Sequence[str]) -> Iterator[Text]:
    """Yield a heading and its lines; nothing if there are none."""
    if any(line.strip() for line in lines):
        yield Text(title, style="bold")
        for line in lines:
            yield Text(printable(line))


def _spec(body: Object) -> list[str]:
    """Return the spec as short YAML. Characters that are no ASCII are escaped."""
    text = yaml.safe_dump(
        body.get("spec") or {}, default_flow_style=None, sort_keys=False, width=100
    )
    lines = [_INDENT + line for line in text.splitlines()]
    more = len(lines) - _MOST_SPEC
    return [*lines[:_MOST_SPEC], *[f"{_INDENT}... and {more} lines more: -o yaml"] * (more > 0)]


def _conditions(found: Description) -> Iterator[Text]:
    conditions = found.status.conditions
    if not conditions:
        return
    yield Text("Conditions", style="bold")
    lines = columns([CONDITIONS, *condition_rows(found.status)], indent=_INDENT)
    yield Text(lines[0])
    said = set()
    for condition, line in zip(conditions, lines[1:], strict=True):
        style = COLOURS[condition.status] if condition.type == "Ready" else ""
        yield Text(line, style=style)
        if condition.message not in said:  # conditions mostly share their message
            said.add(condition.message)
            yield Text(_INDENT * 3 + printable(condition.message))


def condition_rows(status: ResourceStatus) -> list[Row]:
    """Return the conditions of a resource, without their messages; see `CONDITIONS`."""
    return [
        (one.type, one.status, one.reason, _time(one.last_transition_time))
        for one in status.conditions
    ]


def _streams(status: CopyingStatus) -> list[str]:
    """Return a line for each stream of a scope that has failed, or is behind most."""
    rows = stream_rows(status)
    return columns([STREAMS, *rows], indent=_INDENT) if rows else []


def stream_rows(status: CopyingStatus) -> list[Row]:
    """Return the streams of a scope that have failed, or are behind most; see `STREAMS`."""
    if not isinstance(status, ScopeCopyStatus):
        return []
    rows: list[Row] = [(one.stream, one.reason, one.message) for one in status.failed_streams]
    if isinstance(follow := followed(status), ScopeFollowStatus):
        rows += [
            (one.stream, "Behind", f"{size(one.lag_bytes)}, {duration(one.lag_seconds)}")
            for one in follow.worst
        ]
    return rows


def _history(status: CopyingStatus) -> list[str]:
    """Return a line for each attempt, with the reason of its end."""
    rows = attempt_rows(status)
    return columns([ATTEMPTS, *rows], indent=_INDENT) if rows else []


def attempt_rows(status: CopyingStatus) -> list[Row]:
    """Return the attempts of a copy, the oldest first; see `ATTEMPTS`."""
    rows: list[Row] = []
    for one in status.history:
        took = (
            (one.end_time - one.start_time).total_seconds()
            if one.start_time and one.end_time
            else None
        )
        cells = (one.outcome or "runs", one.reason or "", _time(one.start_time), duration(took))
        rows.append((str(one.attempt), *cells, one.job))
    return rows


def _pods(found: Description) -> list[str]:
    rows = []
    for attempt in found.attempts:
        rows.append((f"job/{attempt.job['metadata']['name']}", _job_state(attempt.job), ""))
        for pod in attempt.pods:
            status = pod.get("status") or {}
            state = " ".join(filter(None, (status.get("phase"), status.get("reason"))))
            node = str((pod.get("spec") or {}).get("nodeName") or "")
            rows.append((f"pod/{pod['metadata']['name']}", state or "Pending", node))
    return columns([("NAME", "STATE", "NODE"), *rows], indent=_INDENT) if rows else []


def _job_state(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    held = [str(one["type"]) for one in conditions if one.get("status") == "True"]
    return ", ".join(held) or "Active"


def _events(events: Sequence[Happening], now: datetime) -> list[str]:
    rows = event_rows(events, now)
    return columns([EVENTS, *rows], indent=_INDENT) if rows else []


def event_rows(events: Sequence[Happening], now: datetime) -> list[Row]:
    """Return events, the oldest first; see `EVENTS`."""
    return [
        (age(one.time, now), one.type, one.reason, str(one.times), one.message) for one in events
    ]


def age(when: datetime | None, now: datetime) -> str:
    """Write how long ago a time is."""
    return duration(None if when is None else max(0.0, (now - when).total_seconds()))


def _time(when: datetime | None) -> str:
    return "-" if when is None else f"{when.astimezone(UTC):{_WHEN}}"
