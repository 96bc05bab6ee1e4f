"""The comparisons of copies, and their goals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.cold import ColdJava, ColdSluice
from bench.floor import Floor
from bench.model import BenchError, Comparison, Goal, Phase, Source
from bench.ours import Sluice, Spark
from bench.theirs import Java
from sluice.core.copy.planner import PART_BYTES
from sluice.core.events.digest import CHUNK

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from bench.model import Run, Side

_SMALL_EVENTS = Source(events=1_000_000, size=100, segments=4)
_LARGE_EVENTS = Source(events=100_000, size=1000, segments=4)
_MANY_EVENTS = Source.of_bytes(2e9, segments=4, size=992)
_MIXED = Source.of_mixed(1e9, segments=4)
_LITTLE_MIXED = Source.of_mixed(100e6, segments=4)
_ONE_SEGMENT = Source.of_bytes(1e9, segments=1)
_LITTLE = Source.of_bytes(200e6, segments=4)
_MUCH = Source.of_bytes(2e9, segments=4)


def all_phases(spark: Spark, floor: ProcessPoolExecutor, scale: float) -> list[Phase]:
    """Return all phases, in the order in which they run.

    Args:
        spark: the Spark application for Sluice.
        floor: the processes for the floor.
        scale: factor by which the data shrink.
    """
    small, large = _SMALL_EVENTS.scaled(scale), _LARGE_EVENTS.scaled(scale)
    return [
        _against_java("100B", small, spark, goal=1.5),
        _against_java("1KB", large, spark, goal=1.2),
        _against_java("2GB", _MANY_EVENTS.scaled(scale), spark, goal=1.5, rehearsal=large),
        _against_floor(_MIXED.scaled(scale), _LITTLE_MIXED.scaled(scale), spark, floor),
        _cold(small),
        _parts(_ONE_SEGMENT.scaled(scale), spark, max(CHUNK, round(PART_BYTES * scale))),
        _memory(_LITTLE.scaled(scale), _MUCH.scaled(scale), spark),
    ]


def _against_java(
    what: str, source: Source, spark: Spark, *, goal: float, rehearsal: Source | None = None
) -> Phase:
    """Return a phase that compares Sluice's copies with the Java client's.

    Args:
        what: text for the source in the keys.
        source: the source of the copies.
        spark: the Spark application for Sluice.
        goal: wanted speed as a multiple of that of batches.
        rehearsal: the source that warms up a new store; `source` if left out.
    """

    def sides(source: Source) -> tuple[Side, ...]:
        return (
            Sluice(name="sluice", source=source, spark=spark),
            Java("java batches", source, "batches"),
            Java("java txn", source, "txn"),
        )

    key = f"snapshot_{what}_vs_java"
    return Phase(
        f"snapshots, {what}, and the Java client's",
        sides(source),
        (
            Comparison(f"{key}_batches", "sluice", "java batches", speed, Goal(">=", goal)),
            Comparison(f"{key}_txn", "sluice", "java txn", speed, Goal(">=", 2)),
        ),
        rehearsal=sides(rehearsal or source),
    )


def _against_floor(
    source: Source, rehearsal: Source, spark: Spark, floor: ProcessPoolExecutor
) -> Phase:
    def sides(source: Source) -> tuple[Side, ...]:
        return (
            Sluice(name="verified", source=source, spark=spark),
            Sluice(name="unverified", source=source, spark=spark, verify=False),
            Floor("floor", source, floor),
        )

    return Phase(
        "snapshots, verified and not, and the floor",
        sides(source),
        (
            Comparison("snapshot_vs_floor", "unverified", "floor", speed, Goal(">=", 0.8)),
            Comparison("snapshot_verified_vs_floor", "verified", "floor", speed),
            Comparison("verify_cost", "verified", "unverified", seconds, Goal("<=", 1.35)),
            Comparison("cpu_s_per_gb", "verified", "verified", _cpu, Goal("<=", 3.5)),
            Comparison("store_cpu_vs_floor", "verified", "floor", _store_cpu, Goal("<=", 1.5)),
        ),
        rehearsal=sides(rehearsal),
    )


def _cold(source: Source) -> Phase:
    return Phase(
        "a copy by a process of its own, and the Java client's",
        (ColdSluice("sluice run", source), ColdJava("java", source)),
        (Comparison("run_cold_108MB_vs_java", "sluice run", "java", speed, Goal(">=", 0.8)),),
    )


def _parts(source: Source, spark: Spark, part_bytes: int) -> Phase:
    both = Sluice(name="2 tasks", source=source, spark=spark, part_bytes=part_bytes)
    return Phase(
        "one segment in parts, by two tasks and by one",
        (both, replace(both, name="1 task", slots=1)),
        (
            Comparison("stitchspeedup", "2 tasks", "1 task", speed, Goal(">=", 1.5)),
            Comparison("publish_vs_copy", "2 tasks", "2 tasks", _whole_to_publish, Goal(">=", 50)),
        ),
        rehearsal=(both,),  # one gigabyte warms up the store
    )


def _memory(little: Source, much: Source, spark: Spark) -> Phase:
    return Phase(
        "memory of the workers for ten times the data",
        (
            Sluice(name="much", source=much, spark=spark, fresh=True),
            Sluice(name="little", source=little, spark=spark, fresh=True),
        ),
        (Comparison("memory_growth", "much", "little", peak_rss, Goal("<", 1.1)),),
        rehearsal=(),  # a warm-up does not change peak memory
    )


def speed(run: Run) -> float:
    """Return megabytes per second."""
    return run.speed


def seconds(run: Run) -> float:
    """Return the run's duration in seconds."""
    return run.seconds


def peak_rss(run: Run) -> float:
    """Return the peak memory of a worker, in bytes. Raise BenchError if no worker was seen."""
    if run.peak_rss is None:
        raise BenchError("no Python worker was there at the end of a copy")
    return run.peak_rss


def _cpu(run: Run) -> float:
    return run.cpu_per_gigabyte


def _store_cpu(run: Run) -> float:
    return run.store_cpu_per_gigabyte


def _whole_to_publish(run: Run) -> float:
    return run.seconds / run.steps["Publish"]
