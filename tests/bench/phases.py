"""What is compared with what, and the goals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.floor import Floor
from bench.model import BenchError, Comparison, Goal, Phase, Source
from bench.ours import Sluice, Spark
from bench.theirs import Java
from sluice.core.copy.planner import PART_BYTES
from sluice.core.events.digest import CHUNK

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from bench.model import Run

_SMALL_EVENTS = Source(events=1_000_000, size=100, segments=4)
_LARGE_EVENTS = Source(events=100_000, size=1000, segments=4)
_ONE_SEGMENT = Source.of_bytes(1e9, segments=1)
_LITTLE = Source.of_bytes(200e6, segments=4)
_MUCH = Source.of_bytes(2e9, segments=4)


def all_phases(spark: Spark, floor: ProcessPoolExecutor, scale: float) -> list[Phase]:
    """Every phase, in the order they are run in.

    Args:
        spark: where Sluice runs.
        floor: where the floor runs.
        scale: by which the data shrink.
    """
    return [
        _against_java("100B", _SMALL_EVENTS.scaled(scale), spark, batches=4, txn=8),
        _against_java("1KB", _LARGE_EVENTS.scaled(scale), spark, batches=2.5, txn=3),
        _against_floor(_SMALL_EVENTS.scaled(scale), spark, floor),
        _parts(_ONE_SEGMENT.scaled(scale), spark, max(CHUNK, round(PART_BYTES * scale))),
        _memory(_LITTLE.scaled(scale), _MUCH.scaled(scale), spark),
    ]


def _against_java(
    events: str, source: Source, spark: Spark, *, batches: float, txn: float
) -> Phase:
    return Phase(
        f"snapshots of {events} events, and the Java client's",
        (
            Sluice(name="sluice", source=source, spark=spark),
            Java("java batches", source, "batches"),
            Java("java txn", source, "txn"),
        ),
        (
            Comparison(
                f"snapshot_{events}_vs_java_batches",
                "sluice",
                "java batches",
                speed,
                Goal(">=", batches),
            ),
            Comparison(
                f"snapshot_{events}_vs_java_txn", "sluice", "java txn", speed, Goal(">=", txn)
            ),
        ),
    )


def _against_floor(source: Source, spark: Spark, floor: ProcessPoolExecutor) -> Phase:
    return Phase(
        "snapshots, verified and not, and the floor",
        (
            Sluice(name="verified", source=source, spark=spark),
            Sluice(name="unverified", source=source, spark=spark, verify=False),
            Floor("floor", source, floor),
        ),
        (
            Comparison("snapshot_vs_floor", "unverified", "floor", speed, Goal(">=", 0.7)),
            Comparison("snapshot_verified_vs_floor", "verified", "floor", speed),
            Comparison("verify_cost", "verified", "unverified", _time, Goal("<=", 1.6)),
        ),
    )


def _parts(source: Source, spark: Spark, part_bytes: int) -> Phase:
    return Phase(
        "one segment in parts, by two tasks and by one",
        (
            Sluice(name="2 tasks", source=source, spark=spark, part_bytes=part_bytes),
            Sluice(name="1 task", source=source, spark=spark, part_bytes=part_bytes, slots=1),
        ),
        (
            Comparison("stitchspeedup", "2 tasks", "1 task", speed, Goal(">=", 1.5)),
            Comparison("publish_vs_copy", "2 tasks", "2 tasks", _whole_to_publish, Goal(">=", 50)),
        ),
        rehearsed=1,  # the store is warm after one gigabyte
    )


def _memory(little: Source, much: Source, spark: Spark) -> Phase:
    return Phase(
        "memory of the workers for ten times the data",
        (
            Sluice(name="much", source=much, spark=spark, fresh=True),
            Sluice(name="little", source=little, spark=spark, fresh=True),
        ),
        (Comparison("memory_growth", "much", "little", peak_rss, Goal("<", 1.1)),),
        rehearsed=0,  # warmth does not matter to memory
    )


def speed(ours: Run, theirs: Run) -> float:
    """How many times as fast."""
    return ours.speed / theirs.speed


def _time(ours: Run, theirs: Run) -> float:
    return ours.seconds / theirs.seconds


def peak_rss(ours: Run, theirs: Run) -> float:
    """How many times the memory."""
    if ours.peak_rss is None or theirs.peak_rss is None:
        raise BenchError("no Python worker was there at the end of a copy")
    return ours.peak_rss / theirs.peak_rss


def _whole_to_publish(ours: Run, _: Run) -> float:
    return ours.seconds / ours.steps["Publish"]
