"""Run the benchmarks: `python -m bench [--only KEY ...] [--pairs N] [--scale F]`.

A group stands for its keys. `engine` and `archives` are copies and archives in a process of this
machine. `scopes` are whole scopes by the command. `follow` are streams that are followed. `queries`
are streams as tables. `operator` is the operator in a cluster. `scale` is an operator of thousands
of resources.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from bench import crossing, far, scopes, secured
from bench.archive_phases import archive_phases
from bench.cluster import applies, ephemerals, small_streams
from bench.cluster.site import operator_site
from bench.floor import floor_processes
from bench.follow import delays, interruptions, limits, speed
from bench.lab import Lab
from bench.ours import Spark
from bench.phases import all_phases
from bench.query import commits, latency, tables, viewers
from bench.report import Report
from bench.runner import measure
from bench.scale import bursts, idle
from bench.scale.site import scale_site

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from bench.model import Measurement

Place = TypeVar("Place")

OPERATOR = (
    (applies.KEYS, applies.measure_applies),
    ((ephemerals.DELETE_KEY, ephemerals.JAVA_KEY), ephemerals.measure_deletions),
    (ephemerals.KEYS[2:], ephemerals.measure_many),
    (applies.LARGE_KEYS, applies.measure_large),
    (small_streams.KEYS, small_streams.measure_small_streams),
)
"""The keys that need a cluster, with the functions that measure them."""

SCOPES = (
    ((scopes.RUN_KEY,), scopes.measure_small),
    ((scopes.COPIES_KEY,), scopes.measure_against_copies),
    ((scopes.PLAN_KEY,), scopes.measure_plan),
)
"""The keys that need a store on this machine, with the functions that measure them."""

FOLLOW = (
    (delays.TIMED, delays.measure_delays),
    ((speed.KEY,), speed.measure_speed),
    (interruptions.INTERRUPTED, interruptions.measure_interruptions),
    ((interruptions.CUTOVER_KEY,), interruptions.measure_cutover),
    (limits.LIMITED, limits.measure_limits),
)
"""The keys of streams that are followed, with the functions that measure them."""

SCALE = (
    ((*idle.KEYS, idle.LEAVING_KEY), idle.measure_idle),
    ((bursts.SUBMITS_KEY, bursts.CALLS_KEY), bursts.measure_submits),
    ((bursts.NAMESPACE_KEY,), bursts.measure_namespace),
    (bursts.INVALID_KEYS, bursts.measure_invalid),
    (bursts.AWAY_KEYS, bursts.measure_away),
)
"""The keys of thousands of resources, with the functions that measure them."""

QUERIES = (
    (tables.KEYS, tables.measure_tables),
    (latency.KEYS, latency.measure_latency),
    (commits.KEYS, commits.measure_commits),
    (viewers.KEYS, viewers.measure_viewers),
)
"""The keys of tables and queries, with the functions that measure them."""

FOLLOW_KEYS = [key for keys, _ in FOLLOW for key in keys]

OPERATOR_KEYS = [key for keys, _ in OPERATOR for key in keys]

LATEST = Path(__file__).parents[2] / "build" / "bench" / "latest.json"
PAIRS = 5

# Without a terminal, rich assumes 80 columns and would cut a table in a file.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def main() -> int:
    """Measure. Return 0 if everything ran, even if goals were missed."""
    began = time.monotonic()
    with Spark() as spark, floor_processes() as floor:
        engine = [c.key for p in all_phases(spark, floor, 1) for c in p.comparisons]
        archives = [c.key for p in archive_phases(spark, 1) for c in p.comparisons]
        groups = {
            "engine": [*engine, crossing.KEY, far.KEY, secured.KEY],
            "archives": archives,
            "scopes": scopes.KEYS,
            "follow": FOLLOW_KEYS,
            "queries": [key for keys, _ in QUERIES for key in keys],
            "operator": OPERATOR_KEYS,
            "scale": [key for keys, _ in SCALE for key in keys],
        }
        options = _options(groups)
        only = expanded(options.only, groups)
        report = Report(pairs=options.pairs, scale=options.scale)
        scale = options.scale
        for whole in [*all_phases(spark, floor, scale), *archive_phases(spark, scale)]:
            phase = whole.restricted(only)
            if not phase.comparisons:
                continue
            sources = dict.fromkeys(str(side.source) for side in phase.sides)
            console.print(f"[bold]==>[/] {phase.name}: {', '.join(sources)}")
            try:
                report.results += measure(phase, options.pairs, _say)
            except Exception as error:  # noqa: BLE001 - the other phases are still worth measuring
                reason = report.failures[phase.name] = f"{type(error).__name__}: {error}"
                _say(f"did not run: {reason}")
            report.write(LATEST)
    crossings = partial(crossing.measure_crossing, runs=options.pairs, scale=scale)
    _measure(report, only, "threads and a cold Spark", Lab, [((crossing.KEY,), crossings)])
    copies = partial(far.measure_far, runs=options.pairs, scale=scale)
    _measure(report, only, "a store 40 ms away", far.far_store, [((far.KEY,), copies)])
    copies = partial(secured.measure_tls, runs=options.pairs, scale=scale)
    _measure(report, only, "with TLS and without", secured.both_stores, [((secured.KEY,), copies)])
    _measure(report, only, "whole scopes by the command", scopes.local_store, SCOPES)
    _measure(report, only, "streams that are followed", scopes.local_store, FOLLOW)
    _measure(report, only, "streams as tables, and queries", scopes.local_store, QUERIES)
    _measure(report, only, "the operator in a cluster", operator_site, OPERATOR)
    many = [(keys, partial(measured, scale=scale)) for keys, measured in SCALE]
    _measure(report, only, "thousands of resources", scale_site, many)
    console.print(report.table())
    for table in report.phases():
        console.print(table)
    disturbed = "; other programs kept {:.0%} of the processors busy".format
    console.print(
        f"{LATEST}, {(time.monotonic() - began) / 60:.0f} min"
        + (disturbed(report.disturbance) if report.results else "")
    )
    return 1 if report.failures else 0


def _measure(
    report: Report,
    only: Sequence[str],
    what: str,
    place: Callable[[Callable[[str], None]], AbstractContextManager[Place]],
    groups: Sequence[
        tuple[Sequence[str], Callable[[Place, Callable[[str], None]], list[Measurement]]]
    ],
) -> None:
    """Run the wanted measurements that need this place. They have no sides."""
    wanted = [(keys, measured) for keys, measured in groups if set(only) & set(keys)]
    if not wanted:
        return
    console.print(f"[bold]==>[/] {what}")
    try:
        with place(_say) as there:
            for _, measured in wanted:
                report.measurements += [m for m in measured(there, _say) if m.key in only]
                report.write(LATEST)
    except Exception as error:  # noqa: BLE001 - the rest was worth measuring
        reason = report.failures[what] = f"{type(error).__name__}: {error}"
        _say(f"did not run: {reason}")
    report.write(LATEST)


def expanded(only: Sequence[str] | None, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the keys for these keys and names of groups; all keys if there are none."""
    named = only or list(groups)
    return list(dict.fromkeys(key for name in named for key in groups.get(name, (name,))))


def _options(groups: Mapping[str, Sequence[str]]) -> argparse.Namespace:
    keys = [*groups, *chain.from_iterable(groups.values())]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="KEY", choices=keys, help=f"of {', '.join(keys)}"
    )
    parser.add_argument(
        "--pairs", type=_count, default=PAIRS, metavar="N", help=f"runs of each side, {PAIRS}"
    )
    parser.add_argument(
        "--scale", type=_share, default=1.0, metavar="F", help="shrinks the data for a quick look"
    )
    return parser.parse_args()


def _count(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError("is at least 1")
    return value


def _share(text: str) -> float:
    if not 0 < (value := float(text)) <= 1:
        raise argparse.ArgumentTypeError("is above 0 and at most 1")
    return value


def _say(text: str) -> None:
    console.print(f"    {text}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
