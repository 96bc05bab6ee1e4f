"""Print the operator's report of a cluster's copies, as a tree of plain lines.

Lines are neither folded nor cut, so that users can search them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.follow_status import ScopeFollowStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.console.page import duration, out, printable
from sluice.core.scope.scope import StreamState
from sluice.core.values.text import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluice.administration.overview import Reported
    from sluice.api.status.common import Condition, CopyingStatus
    from sluice.api.status.follow_status import FollowStatus
    from sluice.api.status.scope_status import StreamCounts
    from sluice.core.scope.scope import StreamResult

_ORDER: Final = (
    StreamState.FAILED,
    StreamState.STOPPED,
    StreamState.PLANNED,
    StreamState.FOLLOWED,
    StreamState.COPIED,
)
"""The order of streams: what users look for comes first."""

COLOURS: Final = {"True": "green", "False": "bold red", "Unknown": "yellow"}
"""The colours of the states of the condition Ready."""


def show_overview(found: Sequence[Reported], *, failed: bool, most: int | None) -> None:
    """Print copies, each with its status and its streams.

    Args:
        found: the copies.
        failed: whether only streams that failed are shown.
        most: how many streams of a copy are shown; None for all.
    """
    for number, one in enumerate(found):
        if number:
            out.print()
        going = " (being deleted)" if one.deleting else ""
        place = f"{one.namespace}/{one.name}{going}: {one.source} -> {one.target}"
        _line(Text(f"{one.kind} ", style="bold"), Text(place))
        for line in _said(one.status):
            _line(Text("  "), line)
        shown = by_state(one.streams or (), failed=failed)
        for line in _streams(shown[:most]):
            _line(Text("  "), line)
        more = len(shown) - len(shown[:most])
        if more:
            out.print(f"  ... and {more:,} more: --all")


def by_state(streams: Sequence[StreamResult], *, failed: bool) -> list[StreamResult]:
    """Sort streams, failed ones first; with `failed`, leave out all others."""
    wanted = [one for one in streams if not failed or one.state is StreamState.FAILED]
    return sorted(wanted, key=lambda one: (_ORDER.index(one.state), one.stream))


def _line(*parts: Text) -> None:
    """Print a line as it is, without markup and control characters."""
    line = Text().join(parts)
    line.plain = printable(line.plain)
    out.print(line)


def _said(status: CopyingStatus) -> Iterator[Text]:
    """Yield the lines of a copy's status, without its streams."""
    ready = status.condition(ConditionType.READY)
    if ready is None:
        yield Text("the operator has not looked at it yet")
    else:
        yield _conditions(ready, status)
    line = "  ".join(numbers(status))
    if line:
        yield Text(line)
    if isinstance(status, ScopeCopyStatus):
        left = ", ".join(f"{one.count:,} {one.reason}" for one in status.left_out if one.count)
        if left:
            yield Text(f"left out: {left}")
        if status.key_value_tables:
            yield Text(f"key-value tables, not copied: {', '.join(status.key_value_tables)}")


def _conditions(ready: Condition, status: CopyingStatus) -> Text:
    """Write the condition Ready with reason and message, and the types of others that hold."""
    others = [one.type for one in status.conditions if one is not ready and one.status == "True"]
    return Text.assemble(
        "Ready ",
        (ready.status, COLOURS[ready.status]),
        f" ({', '.join(others)})" if others else "",
        ", ",
        (ready.reason, "bold"),
        f": {ready.message}" if ready.message else "",
    )


def _runs(status: StreamArchiveStatus | ScopeCopyStatus) -> Iterator[str]:
    """Yield how many runs an archive has, or a scope's last run, and times of runs."""
    if isinstance(status, ScopeCopyStatus):
        if status.last_run_time is not None:
            yield f"run {status.run:,} ended {status.last_run_time:%Y-%m-%d %H:%M} UTC"
    elif status.archive is not None:
        runs = status.archive.runs
        yield "1 run" if runs == 1 else f"{runs:,} runs"
    if status.last_success_time is not None:
        yield f"last success {status.last_success_time:%Y-%m-%d %H:%M} UTC"
    if status.next_run_time is not None:
        yield f"next run {status.next_run_time:%Y-%m-%d %H:%M} UTC"


def followed(status: CopyingStatus) -> FollowStatus | None:
    """Return how far a copy follows its source; None of a copy that follows none, or has ended."""
    if not isinstance(status, StreamCopyStatus | ScopeCopyStatus):
        return None
    return status.follow if status.completion_time is None else None


def done(status: ScopeCopyStatus, counts: StreamCounts) -> str:
    """Tell how many streams of a scope are copied, or followed."""
    if isinstance(follow := followed(status), ScopeFollowStatus):
        return f"{follow.streams:,}/{counts.total:,} streams followed"
    return f"{counts.copied:,}/{counts.total:,} streams"


def numbers(status: CopyingStatus) -> Iterator[str]:
    """Yield a copy's progress and speed, and the number of attempts."""
    if isinstance(status, ScopeCopyStatus) and status.streams is not None:
        counts = status.streams
        yield done(status, counts)
        if counts.failed:
            yield f"{counts.failed:,} failed"
        if counts.stopped:
            yield f"{counts.stopped:,} stopped"
    if isinstance(status, StreamArchiveStatus | ScopeCopyStatus):
        yield from _runs(status)
    yield from _progress(status)
    if status.attempts:
        yield "1 attempt" if status.attempts == 1 else f"{status.attempts:,} attempts"
    if status.failures:
        yield f"{status.failures:,} failed in a row"
    if status.retry_time is not None:
        yield f"next at {status.retry_time:%Y-%m-%dT%H:%M:%SZ}"


def _progress(status: CopyingStatus) -> Iterator[str]:
    """Yield how far a copy is, and how fast it goes; how far behind it is, once it follows."""
    progress, follow = status.progress, followed(status)
    if follow is not None:
        yield follow.lag
    elif progress is not None:
        yield f"{progress.percent}% of {size(progress.total_bytes)}"
    if progress is None or progress.bytes_per_second is None or status.completion_time is not None:
        return
    yield f"{size(progress.bytes_per_second)}/s"
    if follow is None:
        yield f"ETA {duration(progress.eta_seconds)}"


def _streams(shown: Sequence[StreamResult]) -> Iterator[Text]:
    """Yield a heading and a line for each stream, in columns as wide as their longest text."""
    if not shown:
        return
    rows = [("STATE", "STREAM", "TARGET", "BYTES", "REASON")]
    rows += [(one.state, one.stream, one.target, size(one.bytes), _why(one)) for one in shown]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        bad = number > 0 and row[0] == StreamState.FAILED
        yield Text("  ".join([*cells, row[-1]]).rstrip(), style="red" if bad else "")


def _why(result: StreamResult) -> str:
    trouble = result.trouble
    if trouble is not None:
        return f"{trouble.reason}: {trouble}"
    return f"{size(result.lost)} were truncated before they were read" if result.lost else ""
