"""Print archives: a list of them, their runs, a run's segments, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from sluice.console import cells
from sluice.console.grid import Column, Grid
from sluice.console.page import Words, err, out
from sluice.core.values.text import instant, lost_behind, size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice.archive.runs.verify import ArchiveVerification
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.manifest import ArchivedSegment, Manifest

_MOST_PROBLEMS = 50


def show_archives(found: Iterable[tuple[str, Head]]) -> None:
    """Print the archives below a path, a line for each."""
    table = Grid(
        Column("Archive", name=True),
        Column("Runs", right=True, rank=1),
        Column("Last", right=True),
        Column("Up to", right=True),
        Column("Bytes", right=True),
        Column("Events", right=True, rank=2),
    )
    for path, head in found:
        last = head.runs[-1]
        table.add(path or ".", str(len(head.runs)), *_run(last))
    out.print(table)


def runs_table(head: Head) -> Group:
    """Make a table of an archive's runs, a line for each."""
    table = Grid(
        Column("Run", right=True),
        Column("Up to", right=True),
        Column("Bytes", right=True),
        Column("Events", right=True),
        Column("Verified"),
        Column("Manifest's SHA-256", digest=True),
    )
    for one in head.runs:
        table.add(*_run(one), "yes" if one.verified else "no", one.sha256)
    return Group(Words("Runs", "italic"), table)


def run_table(manifest: Manifest) -> Group:
    """Make a table of a run, a line for each segment, between lines about the whole."""
    stored = sum(one.size for one in manifest.objects)
    table = Grid(
        Column("Segment"),
        Column("Keys", rank=1),
        Column("Made", rank=2),
        Column("Start", right=True),
        Column("End", right=True),
        Column("Bytes", right=True, rank=3),
        Column("Events", right=True),
        Column("Objects", right=True, rank=4),
    )
    for one in manifest.segments:
        table.add(
            str(one.id),
            cells.keys(one.keys),
            cells.made(one.epoch),
            f"{one.start:,}",
            f"{one.end:,}",
            size(one.bytes),
            cells.events(one.events),
            f"{_objects(one):,}",
        )
    return Group(
        Words(
            f"Run {manifest.run} of {manifest.source.stream} ({manifest.source.store}), "
            f"{manifest.format}",
            "italic",
        ),
        table,
        Words(
            f"{instant(manifest.begin.time)} to {instant(manifest.end.time)}, "
            f"{size(manifest.bytes)} in {sum(1 for _ in manifest.objects):,} objects of "
            f"{size(stored)}{', sealed' if manifest.sealed else ''}"
            f"{f'; made by {manifest.maker.name}' if manifest.maker else ''}",
            "dim italic",
        ),
    )


def show_inspection(head: Head, manifest: Manifest) -> None:
    """Print an archive's runs, and one run with its gaps."""
    out.print(runs_table(head))
    out.print(run_table(manifest))
    for one in manifest.segments:
        for gap in one.gaps:
            out.print(
                f"Segment {one.id} lacks offsets {gap.start:,} to {gap.end:,}: {gap.reason}, as "
                f"run {gap.run} found."
            )
        if one.lost is not None:
            out.print(f"{lost_behind(one.id, one.end)} Run {one.lost.run} found that.")


def show_archive_verification(found: ArchiveVerification) -> None:
    """Print whether an archive is as recorded, and which objects are damaged."""
    for problem in found.problems[:_MOST_PROBLEMS]:
        runs = ", ".join(map(str, problem.runs))
        which = f" (run {runs} cannot be restored)" if runs else ""
        err.print("[bold red]damaged[/]: ", end="")
        err.print(f"{problem.what}{which}", markup=False)
    more = len(found.problems) - _MOST_PROBLEMS
    if more > 0:
        err.print(f"and {more:,} more; --output json tells all of them")
    runs = ", ".join(map(str, found.runs))
    verdict = "is damaged" if found.problems else "is as it was recorded"
    read = f"{found.objects:,} objects, {size(found.bytes)}"
    out.print(f"The archive {verdict}: runs {runs or '-'}, {read}.")
    if found.head is not None:
        out.print(f"SHA-256 of its head: {found.head}")


def _run(one: RunEntry) -> tuple[str, str, str, str]:
    return str(one.run), instant(one.time), size(one.bytes), cells.events(one.events)


def _objects(segment: ArchivedSegment) -> int:
    return sum(len(stretch.objects) for stretch in segment.stretches)
