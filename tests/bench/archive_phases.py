"""The comparisons of archives, and their goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.archives import Archiving, Listing, Restoring, Where
from bench.model import BenchError, Comparison, Goal, Phase, Source
from bench.ours import Sluice
from bench.phases import peak_rss, seconds, speed
from bench.theirs import Export
from sluice.core.archive.names import Format

if TYPE_CHECKING:
    from bench.model import Run
    from bench.ours import Spark

_ORDERS: Final = Source.of_orders(400e6, segments=4)
_ONE_SEGMENT: Final = Source.of_orders(800e6, segments=1)
_LITTLE: Final = Source.of_orders(200e6, segments=2)
_MUCH: Final = Source.of_orders(800e6, segments=2)
"""Each segment fills at least one object, because a worker's memory must hold an object."""

_SINGLE: Final = Source(events=20_000, size=200, segments=4, kind="orders")
_MANY: Final = Source(events=110_000, size=200, segments=1, kind="orders")
_SKIPPED: Final = 10_000
_LISTED: Final = 100_000


def archive_phases(spark: Spark, scale: float) -> list[Phase]:
    """Return all phases, in the order in which they run.

    Args:
        spark: the Spark application for Sluice.
        scale: factor by which the data shrink.
    """
    return [
        _against_copies(_ORDERS.scaled(scale), spark),
        _parts(_ONE_SEGMENT.scaled(scale), spark),
        _memory(_LITTLE.scaled(scale), _MUCH.scaled(scale), spark),
        _events(_SINGLE.scaled(scale), spark),
        _listing(_MANY.scaled(scale), spark, scale),
    ]


def _against_copies(source: Source, spark: Spark) -> Phase:
    directory = Archiving(name="archive", source=source, spark=spark)
    bucket = Archiving(name="archive in a bucket", source=source, spark=spark, where=Where.BUCKET)
    goal = Goal(">=", 0.7)
    return Phase(
        "archives and restores, a plain copy, and the Java client's files",
        (
            Sluice(name="copy", source=source, spark=spark),
            directory,
            Restoring(name="restore", archive=directory),
            bucket,
            Restoring(name="restore from a bucket", archive=bucket),
            Export("java files", source, "segments"),
        ),
        (
            Comparison("archive_vs_copy", "archive", "copy", speed, goal),
            Comparison("restore_vs_copy", "restore", "copy", speed, goal),
            Comparison("archive_bucket_vs_copy", "archive in a bucket", "copy", speed),
            Comparison("restore_bucket_vs_copy", "restore from a bucket", "copy", speed),
            Comparison("archive_vs_java", "archive", "java files", speed),
            Comparison("archive_compression", "archive", "archive", _compression),
        ),
    )


def _parts(source: Source, spark: Spark) -> Phase:
    both = Archiving(name="2 tasks", source=source, spark=spark)
    return Phase(
        "an archive of one segment, by two tasks and by one",
        (
            both,
            Archiving(name="1 task", source=source, spark=spark, slots=1),
        ),
        (Comparison("archive_parts_speedup", "2 tasks", "1 task", speed),),
        rehearsal=(both,),
    )


def _memory(little: Source, much: Source, spark: Spark) -> Phase:
    return Phase(
        "memory of the workers that archive four times the data",
        (
            Archiving(name="much", source=much, spark=spark, fresh=True),
            Archiving(name="little", source=little, spark=spark, fresh=True),
        ),
        (Comparison("archive_memory_growth", "much", "little", peak_rss, Goal("<", 1.1)),),
        rehearsal=(),  # a warm-up does not change peak memory
    )


def _events(source: Source, spark: Spark) -> Phase:
    def per_second(run: Run) -> float:
        return source.events / run.seconds

    form = Format.EVENT_OBJECTS
    return Phase(
        "an object for each event, and the Java client's file for each",
        (
            Archiving(name="bucket", source=source, spark=spark, form=form, where=Where.BUCKET),
            Archiving(name="directory", source=source, spark=spark, form=form),
            Export("java files", source, "events"),
        ),
        (
            Comparison("event_objects_s", "bucket", "bucket", per_second),
            Comparison("event_objects_vs_java", "directory", "java files", speed),
        ),
    )


def _listing(source: Source, spark: Spark, scale: float) -> Phase:
    archive = Archiving(
        name="archive", source=source, spark=spark, form=Format.EVENT_OBJECTS, where=Where.BUCKET
    )
    listed = round(_LISTED * scale)
    listing = Listing(
        name="listing", archive=archive, skipped=round(_SKIPPED * scale), listed=listed
    )
    return Phase(
        "a listing of a part of the events of an archive",
        (listing,),
        (Comparison("event_objects_list_100000_s", "listing", "listing", seconds),),
    )


def _compression(run: Run) -> float:
    if not run.stored:
        raise BenchError("no archive was made")
    return run.bytes / run.stored
