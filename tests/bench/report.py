"""The results as JSON for programs and as a table for people."""

from __future__ import annotations

import json
from itertools import accumulate
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from rich.table import Table

from bench.machine import describe_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.model import Measurement, Result, Run

_MET = {True: "[green]yes", False: "[red]no", None: "-"}


class Report:
    """Results of one run of the benchmarks.

    Args:
        pairs: runs of each side.
        scale: by which the data shrank; other than 1, the results say nothing about the goals.
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
        """For people: what the numbers are worth."""
        text = f"Medians; comparisons are of {self._pairs} pair(s)"
        if self._scale != 1:
            text += f", DATA SCALED BY {self._scale:g}: no measure of the goals"
        return text

    @property
    def disturbance(self) -> float:
        """Share of the machine that others used while copies ran, in the mean over all runs."""
        shares = [run.others for result in self.results for run in (*result.ours, *result.theirs)]
        return fmean(shares) if shares else 0.0

    def write(self, path: Path) -> None:
        """Write everything there is so far."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "title": self.title,
            "pairs": self._pairs,
            "scale": self._scale,
            "fullSize": self._scale == 1,
            "othersShare": _rounded(self.disturbance),
            "machine": self._machine,
            "failures": self.failures,
            "results": {result.comparison.key: _entry(result) for result in self.results}
            | {found.key: _plain(found) for found in self.measurements},
        }
        path.write_text(json.dumps(content, indent=2) + "\n")

    def table(self) -> Table:
        """A line for each key; CPU seconds per GB, the store's behind a +: ours / theirs."""
        table = Table(title=self.title, title_justify="left")
        table.add_column("Key", no_wrap=True)
        for column in ("Value", "Goal", "Met", "Our MB/s", "Their MB/s", "CPU s/GB"):
            table.add_column(column, justify="right")
        for result in self.results:
            comparison = result.comparison
            alone = comparison.ours == comparison.theirs
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
        """For each measurement that has phases or counts, where its seconds go, and these."""
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
        "value": _rounded(found.value),
        "unit": found.unit,
        "goal": None if found.goal is None else str(found.goal),
        "met": found.met,
        "samples": [_rounded(sample) for sample in found.samples],
        "phaseSeconds": _all_rounded(found.phases),
        "counts": _all_rounded(found.counts),
    }


def _entry(result: Result) -> dict[str, Any]:
    comparison = result.comparison
    entry: dict[str, Any] = {
        "value": _rounded(result.value),
        "goal": str(comparison.goal) if comparison.goal else None,
        "met": result.met,
        "samples": [_rounded(sample) for sample in result.samples],
        "ours": _side(comparison.ours, result.ours),
    }
    if comparison.theirs != comparison.ours:
        entry["theirs"] = _side(comparison.theirs, result.theirs)
    return entry


def _side(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    steps = sorted({step for run in runs for step in run.steps})
    side: dict[str, Any] = {
        "name": name,
        "bytes": runs[0].bytes,
        "megabytesPerSecond": _rounded(_speed(runs)),
        "cpuSecondsPerGigabyte": _rounded(_cpu(runs)),
        "storeCpuSecondsPerGigabyte": _rounded(_store_cpu(runs)),
    }
    if steps:
        medians = {step: median(run.steps.get(step, 0.0) for run in runs) for step in steps}
        side["stepSeconds"] = _all_rounded(medians)
    side["runs"] = [_run(run) for run in runs]
    return side


def _run(run: Run) -> dict[str, Any]:
    return {
        "seconds": _rounded(run.seconds),
        "cpuSeconds": _rounded(run.cpu),
        "storeCpuSeconds": _rounded(run.store_cpu),
        "peakWorkerRssBytes": run.peak_rss,
        "steps": _all_rounded(run.steps),
        "retries": run.retries,
        "othersShare": _rounded(run.others),
    }


def _speed(runs: Sequence[Run]) -> float:
    return median(run.speed for run in runs)


def _cpu(runs: Sequence[Run]) -> float:
    return median(run.cpu_per_gigabyte for run in runs)


def _store_cpu(runs: Sequence[Run]) -> float:
    return median(run.store_cpu_per_gigabyte for run in runs)


def _all_rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: float) -> float:
    return round(value, 4)
