"""Print the plans and reports of archives' runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from sluice.console import cells
from sluice.console.grid import Column, Grid
from sluice.console.page import Words, duration, err, note, show_trouble
from sluice.core.values.text import size

if TYPE_CHECKING:
    from sluice.core.archive.plan import ArchivePlan
    from sluice.engine.archive.report import ArchiveReport
    from sluice.engine.archive.retention import Retained


def archive_plan(plan: ArchivePlan, *, recorded: bool) -> Group:
    """Make a table of a run's plan, a line for each segment, between lines about the whole."""
    table = Grid(
        Column("Segment"),
        Column("Keys", rank=1),
        Column("Epoch", right=True, rank=3),
        Column("Archived", right=True, rank=2),
        Column("Begin", right=True),
        Column("End", right=True),
        Column("New", right=True),
    )
    for segment in plan.segments:
        table.add(
            str(segment.id),
            cells.keys(segment.keys),
            str(segment.epoch),
            f"{segment.done:,}",
            "gone" if segment.lost else f"{segment.begin:,}",
            f"{segment.end:,}",
            size(segment.length),
        )
    return Group(
        Words(
            f"Run {plan.run} of {plan.target}, {plan.format} ({cells.bounds(recorded=recorded)})",
            "italic",
        ),
        table,
        Words(
            f"{size(plan.bytes)}, {cells.events(plan.events)} events of {plan.origin} in "
            f"{plan.store_uri}",
            "dim italic",
        ),
    )


def show_archive_report(report: ArchiveReport, seconds: float) -> None:
    """Print the result of a run."""
    where = report.path or "this place"
    if report.error is not None:
        err.print(Words(f"{report.source} was not archived at {where}"))
        show_trouble(report.error)
        return
    events = "an unknown number of" if report.events is None else f"{report.events:,}"
    holds = f"{size(report.bytes or 0)}, {events} events"
    if report.added is None:
        again = f"{where} has run {report.run} of {report.source} already: {holds}"
        note.print(Words(again))
        return
    speed = size(report.added / seconds if seconds else 0)
    note.print(
        Words(
            f"{where} has run {report.run} of {report.source}: {holds}; {size(report.added)} are "
            f"new, in {duration(seconds)} ({speed}/s)\nSHA-256 of its manifest: {report.digest}"
        )
    )
    if report.lost:
        err.print(Words(f"{size(report.lost)} were lost before they were archived"))


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
