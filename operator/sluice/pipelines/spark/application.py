"""Start a Spark application, which is a JVM with a context in it, and stop it in order.

The module `tasks` runs a copy's slices in the application.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

import structlog

from sluice.errors import InfrastructureError, WaitingForExecutors
from sluice.pipelines.spark import sparkconf
from sluice.pipelines.spark.jvm import Jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext

_log = structlog.get_logger()

HEAP = "512m"
"""Spark refuses to start with less than 450 MiB. Java takes no memory that it does not use."""

STOP_SECONDS = 10.0
"""The time that Spark has to stop. Spark deletes the executors' pods in that time."""

_TRACEBACK = "Traceback (most recent call last):"
_CAUSE = "Caused by: "
_LONGEST = 500

TOO_MANY_FAILURES = 11
"""The JVM's exit code when executors fail repeatedly."""


class SparkLost(Exception):
    """The Spark application is gone, so later tasks cannot succeed either."""


class Application:
    """A Spark application. The JVM begins to start with the block and ends with it.

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
        self._context: SparkContext | None = None

    def __enter__(self) -> Self:
        """Begin to start the JVM, without waiting for it."""
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
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Stop the context in order, then kill the JVM. Raise the reason if Spark was lost."""
        loss = _loss(self._jvm, error) if isinstance(error, SparkLost) else None
        try:
            if self._context is not None:
                _stop(self._context, self._jvm)
        finally:
            # The JVM first: while it runs, PySpark would wait for its answer.
            self._jvm.stop()
            _forget()
            self._scratch.cleanup()
        if loss is not None:
            raise loss from error

    def start(self) -> SparkContext:
        """Wait for the JVM, start Spark in it, and return Spark's context.

        Raises:
            InfrastructureError: the JVM ended, or Spark refused to start.
        """
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - slow, so beside the JVM

        os.environ["PYSPARK_PYTHON"] = sys.executable
        gateway = self._jvm.connect()
        try:
            SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as PySpark's shell
            settings = SparkConf().setAll(list(self._configuration.items()))
            self._context = SparkContext(conf=settings)
        except Exception as error:  # Py4J raises many kinds
            said = first_line(error)  # Py4J asks the JVM for the text
            raise InfrastructureError(
                "; ".join([f"Spark did not start: {said}", *self._jvm.tail])
            ) from error
        return self._context


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


def first_line(error: Exception) -> str:
    """Return the useful line of a stack trace: Python's exception, or the first cause in Java."""
    try:
        lines = str(error).splitlines()
    except Exception:  # noqa: BLE001 - Py4J asks the JVM for the text, which may be gone
        lines = []
    for number, line in enumerate(lines):
        if line.endswith(_TRACEBACK):
            raised = (later for later in lines[number + 1 :] if later and not later[0].isspace())
            return next(raised, line)[:_LONGEST]
    causes = [line for line in lines if line.startswith(_CAUSE)]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    told = [*(cause.removeprefix(_CAUSE) for cause in reversed(causes)), *thrown, *lines]
    return next((line.strip() for line in told if line.strip()), type(error).__name__)[:_LONGEST]
