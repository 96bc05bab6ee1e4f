"""Start Spark for queries, in this process's JVM."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sluice.pipelines.spark import sparkconf
from sluice.pipelines.spark.application import Application

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

HEAP: Final = 1 << 30
"""Bytes of the largest heap of the JVM, which holds the windows of queries."""

_CHECKPOINTING: Final = "org.apache.spark.sql.execution.streaming.checkpointing"
_FILE_MANAGER: Final = "FileSystemBasedCheckpointFileManager"

_QUERIES: Final = {
    # A query is no copy: its workers need other modules than those that are forked for copies.
    "spark.python.daemon.module": "sluice.pipelines.query.daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    # A plan's text is compared, so nothing in it may be left out.
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.maxPlanStringLength": str(4 << 20),
    "spark.sql.streaming.stopTimeout": "30s",
    # For local files, Spark would take a manager that runs `readlink` some thirty times in each
    # batch, which takes half of its time. This one renames files into their places, too.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.{_FILE_MANAGER}",
    # Hadoop runs `chmod` for each file that it makes, and by default makes another one beside it,
    # with checksums. Windows are in files whose compression has checksums, too.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # The time after which a query whose batches have no pause asks for events again.
    "spark.sql.streaming.pollingDelay": "50ms",
    # Both are refused before Spark sees them: a second lock.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.udt.allowCreatingUDTFromString": "false",
}


@contextmanager
def query_session(slots: int, *, heap: int = HEAP) -> Iterator[SparkSession]:
    """Start Spark on this machine for a block.

    Args:
        slots: tasks at once, and parts into which keys are divided.
        heap: bytes of the JVM's largest heap.

    Raises:
        InfrastructureError: there is no Java, the JVM did not start, or Spark was lost.
    """
    # The JVM itself starts the processes in which sources plan their batches.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {**sparkconf.local(slots), **_QUERIES, "spark.sql.shuffle.partitions": str(slots)}
    with Application(settings, heap=f"{heap >> 20}m", quiet=True) as application:
        context = application.start()  # imports PySpark, in a thread
        from pyspark.sql import SparkSession  # noqa: PLC0415 - one thread at a time

        yield SparkSession(context)
