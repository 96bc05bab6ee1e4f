"""Start a Spark application, which is a JVM with a context in it, and stop it in order.

The module `tasks` runs a copy's slices in the application.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import structlog

from sluice.errors import InfrastructureError, WaitingForExecutors
from sluice.pipelines.spark import sparkconf
from sluice.pipelines.spark.jvm import Jvm
from sluice.pipelines.spark.lost import SparkLost, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext

_log = structlog.get_logger()

HEAP = "512m"
"""Spark refuses to start with less than 450 MiB. Java takes no memory that it does not use."""

STOP_SECONDS = 10.0
"""The time that Spark has to stop. Spark deletes the executors' pods in that time."""

TOO_MANY_FAILURES = 11
"""The JVM's exit code when executors fail repeatedly."""


class Application:
    """A Spark application. It begins to start with the block, in the background, and ends with it.

    The JVM, Spark in it and the Python workers start while this process does other work.

    Args:
        configuration: Spark's configuration.
        heap: the JVM's largest heap, in Java's notation. It holds no stream data.
        quiet: whether Spark's messages are logged at debug level only.
        jvm: the class that starts and ends the JVM.

    Raises:
        InfrastructureError: there is no Java; or, at the end of the block, Spark was lost.
        WaitingForExecutors: at the end of the block, if executors failed repeatedly.
    """

    def __init__(
        self,
        configuration: Mapping[str, str],
        *,
        heap: str = HEAP,
        quiet: bool = False,
        jvm: type[Jvm] = Jvm,
    ) -> None:
        self._configuration = configuration
        self._heap = heap
        self._quiet = quiet
        self._make_jvm = jvm
        self._started: Future[SparkContext] = Future()

    def __enter__(self) -> Self:
        """Begin to start Spark, without waiting for it."""
        # Spark writes all its files here. Workers may still be ending when the folder is removed.
        self._scratch = TemporaryDirectory(prefix="sluice-spark-", ignore_cleanup_errors=True)
        try:
            self._jvm = self._make_jvm(
                heap=self._heap,
                scratch=Path(self._scratch.name),
                address=self._configuration["spark.driver.host"],
                quiet=self._quiet,
            )
        except BaseException:
            self._scratch.cleanup()
            raise
        self._starter = threading.Thread(target=self._start, name="spark", daemon=True)
        self._starter.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Stop the context in order, then kill the JVM. Raise the reason if Spark was lost."""
        loss = _loss(self._jvm, error) if isinstance(error, SparkLost) else None
        try:
            if not self._started.done():
                self._jvm.stop()  # no caller waits for Spark any more, so let its start fail
            self._starter.join(STOP_SECONDS)  # Spark logs workers that it stops in their start
            if self._started.done() and self._started.exception() is None:
                _stop(self._started.result(), self._jvm)
        finally:
            # The JVM first: while it runs, PySpark would wait for its answer.
            self._jvm.stop()
            _forget()
            self._scratch.cleanup()
        if loss is not None:
            raise loss from error

    def start(self) -> SparkContext:
        """Wait until Spark has started, and return its context.

        Raises:
            InfrastructureError: the JVM ended, or Spark refused to start.
        """
        return self._started.result()

    def _start(self) -> None:
        """Start Spark and its Python workers. This runs in a thread of its own."""
        try:
            context = self._start_context()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._started.set_exception(error)
            return
        self._started.set_result(context)
        if self._configuration["spark.master"].startswith("local"):
            with suppress(Exception):  # if Spark is lost, the first task finds that out
                _start_workers(context)

    def _start_context(self) -> SparkContext:
        """Wait for the JVM, and start Spark in it. Arguments and errors are those of `start`."""
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - slow, so beside the JVM

        os.environ["PYSPARK_PYTHON"] = sys.executable
        gateway = self._jvm.connect()
        try:
            SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as PySpark's shell
            settings = SparkConf().setAll(list(self._configuration.items()))
            return SparkContext(conf=settings)
        except Exception as error:  # Py4J raises many kinds
            said = first_line(error)  # Py4J asks the JVM for the text
            raise InfrastructureError(
                "; ".join([f"Spark did not start: {said}", *self._jvm.tail])
            ) from error


@contextmanager
def local_spark(slots: int) -> Iterator[SparkContext]:
    """Start a Spark application on this machine for a block: a JVM and `slots` Python workers.

    Args:
        slots: tasks at once.

    Raises:
        InfrastructureError: there is no Java, the JVM did not start, or Spark was lost.
    """
    with Application(sparkconf.local(slots), quiet=True) as application:
        yield application.start()


def _start_workers(context: SparkContext) -> None:
    """Run a task of no work in each slot. Spark keeps the Python workers for later tasks."""
    slots = context.defaultParallelism
    context.parallelize(range(slots), slots).count()


def _stop(context: SparkContext, jvm: Jvm) -> None:
    """Stop Spark in order: first its half in the JVM, which deletes executors, then PySpark's."""
    from pyspark import SparkContext  # noqa: PLC0415 - slow, and only if Spark was started

    # A new thread has its own connection to the JVM. On the connection of this thread, a signal may
    # have interrupted a call.
    stopping = threading.Thread(target=_stop_in_jvm, args=(context,), name="stop", daemon=True)
    stopping.start()
    try:
        stopping.join(STOP_SECONDS)
    finally:
        # PySpark's accumulator server would wait a second until its connection is idle, and print
        # that the connection broke. So it ends in the background, without a message.
        server = context._accumulatorServer  # noqa: SLF001
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.shutdown, name="accumulators", daemon=True).start()
        # Otherwise Python's garbage collector would go on to tell the JVM of unused objects.
        gateway = SparkContext._gateway  # noqa: SLF001
        if gateway is not None:
            gateway._gateway_client.is_connected = False  # noqa: SLF001
        jvm.stop()
        context._jsc = context._accumulatorServer = None  # type: ignore[assignment]  # noqa: SLF001
        context.stop()


def _stop_in_jvm(context: SparkContext) -> None:
    """Do the part of `context.stop()` that runs in the JVM."""
    try:
        context._jsc.stop()  # noqa: SLF001
    except Exception as error:  # noqa: BLE001 - whatever it is, the application is gone
        _log.debug("Spark was not stopped in order", error=first_line(error))


def _forget() -> None:
    """Make PySpark forget its gateway, so that Spark can start again in this process."""
    from pyspark import SparkContext  # noqa: PLC0415

    gateway = SparkContext._gateway  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if gateway is not None:
        with suppress(Exception):  # the JVM is gone, so its sockets are closed one way or another
            gateway.shutdown()


def _loss(jvm: Jvm, error: SparkLost) -> InfrastructureError:
    """Return the error that says why Spark was lost."""
    code = jvm.exit_code(seconds=2)
    if code == TOO_MANY_FAILURES:
        return WaitingForExecutors("executors failed over and over, and Spark gave up")
    said = f"Spark's JVM ended with code {code}" if code is not None else "Spark stopped"
    return InfrastructureError("; ".join([f"{said}: {error}", *jvm.tail]))
