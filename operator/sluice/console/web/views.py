"""Write resources as the page's script takes them: as texts for tables.

Clients and stores may have written each text. The page shows texts as such, so that no markup in
them counts. Here they become printable and of bounded length.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import ConditionType, CopyingStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.console.description import (
    ATTEMPTS,
    CONDITIONS,
    EVENTS,
    STREAMS,
    age,
    attempt_rows,
    condition_rows,
    event_rows,
    stream_rows,
)
from sluice.console.overview import numbers
from sluice.console.page import printable
from sluice.console.queries import query_numbers
from sluice.console.watching import shown
from sluice.core.values.text import counted
from sluice.kube.api.objects import is_deleting, is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice.administration.board import Board
    from sluice.administration.description import Description
    from sluice.administration.following import FollowedResource
    from sluice.api.status.common import ResourceStatus
    from sluice.console.description import Row
    from sluice.kube.api.kinds import Object

    Json = dict[str, Any]

_MOST: Final = 4096
"""The most characters of a text."""


def board(found: Board, *, now: datetime, namespaces: bool) -> Json:
    """Write all resources.

    Args:
        found: the resources.
        now: the time, for ages.
        namespaces: whether names have their namespace.
    """
    rows = [_row(*pair, now=now, namespaces=namespaces) for pair in found.resources]
    counts = Counter(row["state"] for row in rows)
    states = ", ".join(f"{counts[state]:,} {state}" for state in sorted(counts))
    notes = [f"You have no right to list {kind} resources." for kind in found.forbidden]
    notes += [f"There are more {kind} resources than this page shows." for kind in found.cut]
    summary = counted(len(rows), "resource")
    return {
        "summary": f"{summary}: {states}" if rows else "There are no resources.",
        "notes": notes,
        "rows": rows,
    }


def _row(one: FollowedResource, body: Object, *, now: datetime, namespaces: bool) -> Json:
    row = shown(one, namespaces=namespaces)
    ready = one.status.condition(ConditionType.READY)
    return {
        "id": body["metadata"]["uid"],
        "name": row.name,
        "state": state_word(one),
        "ready": "-" if ready is None else ready.status,
        "reason": f"{row.state} (being deleted)" if is_deleting(body) else row.state,
        "copies": isinstance(one.status, CopyingStatus),
        "percent": row.percent,
        "done": row.done,
        "rate": row.rate,
        "backup": ", ".join(_backup(one.status, body, now)),
        "age": age(_created(body), now),
    }


def state_word(one: FollowedResource) -> str:
    """Return the state of a resource in a word: ready, stalled, suspended or pending."""
    if one.end is not None:
        return "ready" if one.end.met else "stalled"
    return "suspended" if one.suspended else "pending"


def _created(body: Object) -> datetime:
    return datetime.fromisoformat(body["metadata"]["creationTimestamp"])


def _backup(status: ResourceStatus, body: Object, now: datetime) -> Iterator[str]:
    """Yield how long ago the last good run of an archive and its last restore drill ended."""
    if not isinstance(status, StreamArchiveStatus | ScopeCopyStatus):
        return
    if status.last_success_time is not None:
        yield f"{age(status.last_success_time, now)} ago"
    elif is_scheduled(body):
        yield "none yet"
    drill = status.drill if isinstance(status, StreamArchiveStatus) else None
    if drill is not None and drill.result is not None:
        yield f"drill {drill.result} {age(drill.completion_time, now)} ago"
    elif drill is not None and drill.start_time is not None:
        yield "drill goes on"


def details(found: Description, *, now: datetime) -> Json:
    """Write all that belongs to a resource.

    Args:
        found: the resource.
        now: the time, for ages.
    """
    status, meta = found.status, found.body["metadata"]
    ready = status.condition(ConditionType.READY)
    facts = [f"created {age(_created(found.body), now)} ago", *_backup(status, found.body, now)]
    tables: list[tuple[str, Row, list[Row]]] = [
        ("Conditions", (*CONDITIONS, "MESSAGE"), _conditions(status))
    ]
    if isinstance(status, CopyingStatus):
        facts = [f"{status.source} -> {status.target}", *numbers(status), *facts]
        if streams := stream_rows(status):
            tables.append(("Streams that failed, or are behind most", STREAMS, streams))
        tables.append(("Attempts", ATTEMPTS, attempt_rows(status)))
    if isinstance(status, StreamQueryStatus):
        facts = [f"to {status.result}", *query_numbers(status), *facts]
    tables.append(("Events, the last one first", EVENTS, event_rows(found.happenings, now)[::-1]))
    return {
        "id": meta["uid"],
        "title": _text(f"{found.resource.spec.name} {found.resource.namespace}/{meta['name']}"),
        "message": _text("The operator has not looked at it." if ready is None else ready.message),
        "next": _text(found.next_step),
        "facts": [_text(fact) for fact in facts],
        "notes": [f"You have no right to read {part}." for part in found.forbidden],
        "tables": [
            {
                "title": title,
                "heading": heading,
                "rows": [[_text(cell) for cell in row] for row in rows],
            }
            for title, heading, rows in tables
        ],
    }


def _conditions(status: ResourceStatus) -> list[Row]:
    """Return the conditions with their messages. Of equal messages, the first one counts."""
    rows: list[Row] = []
    said: set[str] = set()
    for row, one in zip(condition_rows(status), status.conditions, strict=True):
        rows.append((*row, "" if one.message in said else one.message))
        said.add(one.message)
    return rows


def _text(text: str) -> str:
    """Return a text that shows as it is, and is not too long."""
    return printable(text if len(text) <= _MOST else f"{text[:_MOST]}...")
