"""The results, as JSON for programs and as a table for users."""

from __future__ import annotations

import json
from itertools import accumulate
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from rich.table import Table

from bench.machine import describe_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.model import Measurement, Result, Run

_MET = {True: "[green]yes", False: "[red]no", None: "-"}


class Report:
    """Results of one run of the benchmarks.

    Args:
        pairs: runs of each side.
        scale: factor by which the data shrank; the results are comparable to the goals only at 1.
    """

    def __init__(self, *, pairs: int, scale: float) -> None:
        self._pairs = pairs
        self._scale = scale
        self._machine = describe_machine()
        self.results: list[Result] = []
        self.measurements: list[Measurement] = []
        self.failures: dict[str, str] = {}

    @property
    def title(self) -> str:
        """The title for users, which says how meaningful the numbers are."""
        text = f"Medians, and their ratios; comparisons are of {self._pairs} run(s) of each side"
        if self._scale != 1:
            text += f", DATA SCALED BY {self._scale:g}: no measure of the goals"
        return text

    @property
    def disturbance(self) -> float:
        """The mean share of the machine's CPU time that other programs used during the runs."""
        shares = [run.others for result in self.results for run in (*result.ours, *result.theirs)]
        return fmean(shares) if shares else 0.0

    def write(self, path: Path) -> None:
        """Write all results so far."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "title": self.title,
            "pairs": self._pairs,
            "scale": self._scale,
            "fullSize": self._scale == 1,
            "othersShare": self.disturbance,
            "machine": self._machine,
            "failures": self.failures,
            "results": {result.comparison.key: _entry(result) for result in self.results}
            | {found.key: _plain(found) for found in self.measurements},
        }
        path.write_text(json.dumps(content, indent=2) + "\n")

    def table(self) -> Table:
        """Return a line per key. CPU seconds per GB are ours / theirs, each with + the store's."""
        table = Table(title=self.title, title_justify="left")
        table.add_column("Key", no_wrap=True)
        for column in ("Value", "Goal", "Met", "Our MB/s", "Their MB/s", "CPU s/GB"):
            table.add_column(column, justify="right")
        for result in self.results:
            comparison = result.comparison
            alone = comparison.is_alone
            sides = (result.ours,) if alone else (result.ours, result.theirs)
            table.add_row(
                comparison.key,
                f"{result.value:.2f}",
                str(comparison.goal or "-"),
                _MET[result.met],
                f"{_speed(result.ours):.0f}",
                "-" if alone else f"{_speed(result.theirs):.0f}",
                " / ".join(f"{_cpu(runs):.1f}+{_store_cpu(runs):.1f}" for runs in sides),
            )
        for found in self.measurements:
            value = f"{found.value:.2f} {found.unit}".strip()
            goal = str(found.goal or "-")
            table.add_row(found.key, value, goal, _MET[found.met], "-", "-", "-")
        return table

    def phases(self) -> Iterator[Table]:
        """Yield the tables of each measurement: its counts, and the seconds of its phases."""
        for found in self.measurements:
            if found.counts:
                yield _counted(found)
            if not found.phases:
                continue
            table = Table(title=f"{found.key}: {len(found.samples)} runs", title_justify="left")
            table.add_column("Until")
            for column in ("Median s", "s since the beginning"):
                table.add_column(column, justify="right")
            sums = accumulate(found.phases.values())
            for (name, seconds), total in zip(found.phases.items(), sums, strict=True):
                table.add_row(name, f"{seconds:.2f}", f"{total:.2f}")
            yield table


def _counted(found: Measurement) -> Table:
    table = Table(title=found.key, title_justify="left")
    table.add_column("What")
    table.add_column("Number", justify="right")
    for name, number in found.counts.items():
        table.add_row(name, f"{number:.2f}")
    return table


def _plain(found: Measurement) -> dict[str, Any]:
    return {
        "value": found.value,
        "unit": found.unit,
        "goal": None if found.goal is None else str(found.goal),
        "met": found.met,
        "samples": found.samples,
        "base": found.base,
        "phaseSeconds": found.phases,
        "counts": found.counts,
    }


def _entry(result: Result) -> dict[str, Any]:
    comparison = result.comparison
    entry: dict[str, Any] = {
        "value": result.value,
        "goal": str(comparison.goal) if comparison.goal else None,
        "met": result.met,
        "samples": result.samples,
        "ours": _side(comparison.ours, result.ours),
    }
    if not comparison.is_alone:
        entry["theirs"] = _side(comparison.theirs, result.theirs)
    return entry


def _side(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    steps = sorted({step for run in runs for step in run.steps})
    side: dict[str, Any] = {
        "name": name,
        "bytes": runs[0].bytes,
        "megabytesPerSecond": _speed(runs),
        "cpuSecondsPerGigabyte": _cpu(runs),
        "storeCpuSecondsPerGigabyte": _store_cpu(runs),
    }
    if steps:
        side["stepSeconds"] = {
            step: median(run.steps.get(step, 0.0) for run in runs) for step in steps
        }
    side["runs"] = [_run(run) for run in runs]
    return side


def _run(run: Run) -> dict[str, Any]:
    return {
        "seconds": run.seconds,
        "cpuSeconds": run.cpu,
        "storeCpuSeconds": run.store_cpu,
        "peakWorkerRssBytes": run.peak_rss,
        "steps": run.steps,
        "retries": run.retries,
        "othersShare": run.others,
    }


def _speed(runs: Sequence[Run]) -> float:
    return median(run.speed for run in runs)


def _cpu(runs: Sequence[Run]) -> float:
    return median(run.cpu_per_gigabyte for run in runs)


def _store_cpu(runs: Sequence[Run]) -> float:
    return median(run.store_cpu_per_gigabyte for run in runs)
