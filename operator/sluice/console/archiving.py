"""Print the plans and reports of archives' runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from sluice.console.page import duration, err, note, show_trouble
from sluice.core.values.text import size

if TYPE_CHECKING:
    from sluice.core.archive.plan import ArchivePlan
    from sluice.engine.archive.report import ArchiveReport
    from sluice.engine.archive.retention import Retained


def archive_plan(plan: ArchivePlan, *, recorded: bool) -> Table:
    """Make a table of a run's plan, a line for each segment with new bytes."""
    events = "unknown" if plan.events is None else f"{plan.events:,}"
    state = "begun, bounds are fixed" if recorded else "not begun, bounds are taken at the start"
    table = Table(
        title=f"Run {plan.run} of {plan.target}, {plan.format} ({state})",
        caption=f"{size(plan.bytes)}, {events} events of {plan.origin} in {plan.store_uri}",
        title_justify="left",
        caption_justify="left",
    )
    for column in ("Segment", "Keys"):
        table.add_column(column, overflow="fold")
    for column in ("Epoch", "Archived", "Begin", "End", "New"):
        table.add_column(column, justify="right")
    for segment in plan.segments:
        table.add_row(
            str(segment.id),
            f"{segment.keys.low:.3f}-{segment.keys.high:.3f}",
            str(segment.epoch),
            f"{segment.done:,}",
            "gone" if segment.lost else f"{segment.begin:,}",
            f"{segment.end:,}",
            size(segment.length),
        )
    return table


def show_archive_report(report: ArchiveReport, seconds: float) -> None:
    """Print the result of a run."""
    where = report.path or "this place"
    if report.error is not None:
        err.print(f"{report.source} was not archived at {where}", markup=False)
        show_trouble(report.error)
        return
    events = "an unknown number of" if report.events is None else f"{report.events:,}"
    holds = f"{size(report.bytes or 0)}, {events} events"
    if report.added is None:
        again = f"{where} has run {report.run} of {report.source} already: {holds}"
        note.print(again, markup=False)
        return
    speed = size(report.added / seconds if seconds else 0)
    note.print(
        f"{where} has run {report.run} of {report.source}: {holds}; {size(report.added)} are new, "
        f"in {duration(seconds)} ({speed}/s)",
        f"SHA-256 of its manifest: {report.digest}",
        sep="\n",
        markup=False,
    )
    if report.lost:
        err.print(f"{size(report.lost)} were lost before they were archived", markup=False)


def show_retained(done: Retained, *, dry: bool) -> None:
    """Print which runs were dropped, and how much the sweep deleted."""
    runs = ", ".join(map(str, done.let_go)) or "none"
    would = "would be " if dry else ""
    err.print(f"Runs {would}let go: {runs}", markup=False)
    if done.named:
        named = ", ".join(map(str, done.named))
        err.print(
            f"Runs kept, since the last complete run of a scope names them: {named}", markup=False
        )
    if done.swept is not None:
        swept = f"{done.swept.objects:,} ({size(done.swept.bytes)})"
        err.print(f"Objects {would}deleted: {swept}", markup=False)
