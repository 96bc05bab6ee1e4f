"""Slices as Spark tasks.

A round is one Spark job with as many tasks as there are slots. Tasks get slices and store
addresses, never credentials: each worker process reads those from its own credentials folder and
keeps its connections for the rounds that follow. Spark's own retries stay on: a task is safe to run
again, or twice at once, because the store fences it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.engine.slices import run_slice
from sluice.errors import InfrastructureError
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.model import StoreAddress
    from sluice.engine.slices import Slice, SliceResult
    from sluice.stores.base import Store

TRIES = 4
"""How often Spark tries a task; plain `local[N]` would give it one try."""

_LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark %p %c{1}: %m%n
"""


@cache
def _store(address: StoreAddress, settings: Settings) -> Store:
    """A worker process's store; it lives as long as the process."""
    return connect(address, settings)


def _run_task(
    slices: Iterable[list[Slice]], *, source: StoreAddress, target: StoreAddress, settings: Settings
) -> Iterator[SliceResult]:
    """What a task does: its slices, one after the other."""
    for share in slices:
        for work in share:
            yield run_slice(work, _store(source, settings), _store(target, settings))


class SparkExecutor:
    """Runs slices in a Spark application.

    Args:
        context: the application.
        source: the store to read from.
        target: the store to write to.
        settings: of the workers.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        source: StoreAddress,
        target: StoreAddress,
        settings: Settings,
    ) -> None:
        self._context = context
        self._task = partial(_run_task, source=source, target=target, settings=settings)

    @property
    def slots(self) -> int:
        """See Executor."""
        return int(self._context.defaultParallelism)

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor."""
        shares = [list(task) for task in tasks]
        try:
            results: list[SliceResult] = (
                self._context.parallelize(shares, len(shares)).mapPartitions(self._task).collect()
            )
        except Exception as error:  # Spark raises whatever Py4J found in the JVM
            raise InfrastructureError(f"a round of tasks failed: {_first_line(error)}") from error
        return results


def _first_line(error: Exception) -> str:
    """What a person needs of a Java stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or [type(error).__name__])[0][:500]


@contextmanager
def local_spark(slots: int, *, memory: str = "512m") -> Iterator[SparkContext]:
    """A Spark application in this machine: a JVM and `slots` Python workers.

    Args:
        slots: tasks at once.
        memory: the JVM's heap; it holds no stream data.

    Raises:
        InfrastructureError: there is no Java, or the JVM did not start.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second, and only this needs it

    with tempfile.TemporaryDirectory(prefix="sluice-spark-") as scratch:
        logging = Path(scratch, "log4j2.properties")
        logging.write_text(_LOGGING)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        launch_log = Path(scratch, "launch.log")
        try:
            with _stderr_to(launch_log):
                session = (
                    SparkSession.builder.appName("sluice")
                    .master(f"local[{slots},{TRIES}]")
                    .config("spark.ui.enabled", "false")
                    .config("spark.log.level", "ERROR")
                    .config("spark.driver.memory", memory)
                    .config("spark.driver.host", "127.0.0.1")
                    .config("spark.driver.bindAddress", "127.0.0.1")
                    .config(
                        "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging}"
                    )
                    .config("spark.local.dir", scratch)
                    .config("spark.sql.warehouse.dir", str(Path(scratch, "warehouse")))
                    .config("spark.ui.showConsoleProgress", "false")
                    .config("spark.python.worker.reuse", "true")
                    .config("spark.python.authenticate.socketTimeout", "60s")
                    .getOrCreate()
                )
        except Exception as error:  # Py4J and the launcher raise many kinds
            said = launch_log.read_text(errors="replace").strip().splitlines()[-5:]
            raise InfrastructureError(
                "; ".join([f"Spark did not start: {_first_line(error)}", *said]),
                remedy="Install a Java runtime of version 17 or newer and set JAVA_HOME.",
            ) from error
        try:
            yield session.sparkContext
        finally:
            session.stop()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let programs started in the block write their stderr to a file: the JVM is talkative."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
