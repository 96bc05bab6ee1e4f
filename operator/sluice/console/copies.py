"""Print copies of single streams: plans, reports, and a summary of all streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group

from sluice.console import cells, following
from sluice.console.grid import Column, Grid
from sluice.console.page import Words, duration, err, note, show_trouble
from sluice.core.values.text import EMPTY, lost_behind, size
from sluice.engine.copy.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.core.copy.plan import StreamPlan
    from sluice.core.workloads.plan import Plan, StreamCopyPlan
    from sluice.engine.copy.report import SegmentReport, StreamReport


def plan_table(plan: StreamCopyPlan, *, recorded: bool) -> Group:
    """Make a table of a plan, a line for each segment, between lines about the whole."""
    (stream,) = plan.streams
    several = len(stream.sources) > 1
    scaled = len(stream.generations) > 1
    table = Grid(
        *[Column("Source", name=True)] * several,
        Column("Segment"),
        Column("Keys", rank=1),
        *[Column("Made", right=True, rank=2)] * scaled,
        Column("Start", right=True),
        Column("End", right=True),
        Column("Bytes", right=True, rank=3),
        Column("Events", right=True),
        Column("Parts", right=True, rank=4),
    )
    for segment in stream.segments:
        table.add(
            *[str(stream.source_of(segment).stream)] * several,
            str(segment.id),
            cells.keys(segment.keys),
            *[cells.made(segment.generation)] * scaled,
            f"{segment.start:,}",
            f"{segment.end:,}",
            size(segment.length),
            "counted later" if segment.events is None else f"{segment.events:,}",
            str(len(segment.parts)),
        )
    return Group(
        Words(f"Plan {plan.hash[:12]} ({cells.bounds(recorded=recorded)})", "italic"),
        Words(f"{stream.origin} -> {stream.target}{_manner(stream)}"),
        table,
        Words(
            f"{size(plan.bytes)}, {cells.events(stream.events)} events, {_uris(plan)} -> "
            f"{plan.target.uri}",
            "dim italic",
        ),
    )


def _manner(stream: StreamPlan) -> str:
    """Say what is not told by the names of the streams."""
    if stream.append:
        return " (append)"
    return " (and then follows)" if stream.follow else ""


def _uris(plan: Plan) -> str:
    """Name the places that a plan reads from."""
    return ", ".join(
        dict.fromkeys(
            f"{address.archive} in {address.uri}" if address.archive else address.uri
            for address in plan.sources
        )
    )


def report_table(report: StreamReport, seconds: float) -> Group:
    """Make a table of a finished copy, a line for each segment, between lines about the whole."""
    table = Grid(
        Column("Segment"),
        Column("Target", rank=2),
        Column("Start", right=True),
        Column("End", right=True),
        Column("Bytes", right=True, rank=3),
        Column("Events", right=True),
        Column("SHA-256", digest=True, rank=1),
    )
    for segment in report.segments:
        table.add(
            str(segment.source),
            str(segment.target),
            f"{segment.start:,}",
            f"{segment.end:,}",
            size(segment.end - segment.start),
            cells.events(segment.events),
            segment.digest,
        )
    return Group(
        Words(f"{report.source} -> {report.target}", "italic"),
        table,
        Words(
            f"{report.events:,} events, {size(report.bytes)} in {duration(seconds)} "
            f"({size(report.bytes / seconds if seconds else 0)}/s), digest {report.digest}",
            "dim italic",
        ),
    )


def show_report(report: StreamReport, seconds: float) -> None:
    """Print how one stream's copy ended."""
    if report.outcome is Outcome.COPIED:
        _show_copied(report, seconds)
    elif report.outcome is Outcome.ALREADY_COMPLETE:
        note.print(
            Words(
                f"{report.source} -> {report.target}: already copied, nothing to do "
                f"(digest {report.digest})"
            )
        )
    elif report.error is not None:
        show_trouble(report.error)
        if report.cleaned:
            note.print("  Staged bytes and the unpublished target were deleted.")


def _show_copied(report: StreamReport, seconds: float) -> None:
    """Print the report of a copy that is done, and what its target lacks."""
    note.print(report_table(report, seconds))
    if report.ended is not None:
        note.print(Words(f"It ended because {following.ending(report.ended)}."))
    if not report.bytes:
        note.print(EMPTY)
    for gap in report.gaps:
        err.print(Words(_gap(gap, follows=report.ended is not None)))
    for one in report.segments:
        if one.torn:
            err.print(Words(lost_behind(one.source, one.end)))
        if one.plain:
            note.print(Words(f"Segment {one.source} has plain bytes, which are no events."))


def _gap(gap: SegmentReport, *, follows: bool) -> str:
    """Say which bytes of a segment are not in the copy. Several gaps may lie in a followed one."""
    if follows:
        return (
            f"Segment {gap.source} was truncated before it was followed: {size(gap.lost)} are not "
            "in the copy."
        )
    return (
        f"Segment {gap.source} was truncated before it was read: offsets "
        f"{gap.start - gap.lost:,} to {gap.start:,} ({size(gap.lost)}) are not in the copy."
    )


def outcome_word(outcome: Outcome) -> str:
    """Return the word under which a summary counts a copy of one stream."""
    words = {
        Outcome.COPIED: "copied",
        Outcome.ARCHIVED: "archived",
        Outcome.ALREADY_COMPLETE: "already complete",
        Outcome.FAILED: "failed",
    }
    return words[outcome]


SUMMARY: Final = ("copied", "archived", "already complete", "failed", "stopped", "not finished")
"""The words of a summary, in its order."""


def summary(ended: Mapping[str, int]) -> str:
    """Sum up all streams in one line: `2 copied, 1 failed`."""
    counts = [f"{ended[word]:,} {word}" for word in SUMMARY if ended.get(word)]
    return ", ".join(counts) or "nothing to do"
