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
import threading
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog

from sluice.engine.slices import run_slice
from sluice.errors import InfrastructureError, SluiceError, WaitingForExecutors
from sluice.pipelines import sparkconf
from sluice.pipelines.jvm import Jvm
from sluice.stores.connect import connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyspark import SparkContext

    from sluice.config import Settings
    from sluice.core.model import StoreAddress
    from sluice.engine.slices import Slice, SliceResult
    from sluice.stores.base import Store

_log = structlog.get_logger()

STOP_SECONDS = 10.0
"""How long Spark may take to stop, which includes deleting the executors' pods."""

TOO_MANY_FAILURES = 11
"""The JVM's exit code when executors fail over and over."""


class SparkLost(Exception):
    """Spark's application is gone, and no later round can succeed either."""


class Crew(Protocol):
    """Executors in other places than this process."""

    @property
    def slots(self) -> int:
        """Tasks at once, now."""
        ...

    def watched(self) -> AbstractContextManager[None]:
        """A block that ends with an error where no executor is left to carry it out."""
        ...


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
        crew: the executors, when they are not in this process.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        source: StoreAddress,
        target: StoreAddress,
        settings: Settings,
        crew: Crew | None = None,
    ) -> None:
        self._context = context
        self._crew = crew
        self._task = partial(_run_task, source=source, target=target, settings=settings)

    @property
    def slots(self) -> int:
        """See Executor."""
        try:
            return self._crew.slots if self._crew else int(self._context.defaultParallelism)
        except Exception as error:
            raise SparkLost(_first_line(error)) from error

    def run(self, tasks: Sequence[Sequence[Slice]]) -> list[SliceResult]:
        """See Executor.

        Raises:
            SparkLost: the application is gone.
        """
        shares = [list(task) for task in tasks]
        try:
            with self._crew.watched() if self._crew else nullcontext():
                results: list[SliceResult] = (
                    self._context.parallelize(shares, len(shares))
                    .mapPartitions(self._task)
                    .collect()
                )
        except SluiceError:
            raise
        except Exception as error:  # Spark raises whatever Py4J found in the JVM
            if _is_stopped(self._context):
                raise SparkLost(_first_line(error)) from error
            raise InfrastructureError(f"a round of tasks failed: {_first_line(error)}") from error
        return results


def _is_stopped(context: SparkContext) -> bool:
    """Whether the application is gone, or its JVM."""
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001 - not public in PySpark
    except Exception:  # noqa: BLE001 - of many kinds, by what broke first
        return True


def _first_line(error: Exception) -> str:
    """What a person needs of a Java stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or [type(error).__name__])[0][:500]


@contextmanager
def local_spark(
    slots: int,
    *,
    memory: str = "512m",
    quiet: bool = True,
    extra: Mapping[str, str] | None = None,
) -> Iterator[SparkContext]:
    """A Spark application in this machine: a JVM and `slots` Python workers.

    Args:
        slots: tasks at once.
        memory: the JVM's heap; it holds no stream data.
        quiet: whether what Spark says is for --log-level debug only.
        extra: settings that an administrator adds.

    Raises:
        InfrastructureError: there is no Java, the JVM did not start, or Spark was lost meanwhile.
    """
    configuration = sparkconf.local(slots, extra)
    with _application(configuration, memory=memory, quiet=quiet) as context:
        yield context


@contextmanager
def kubernetes_spark(
    executors: sparkconf.Executors,
    *,
    memory: str = "512m",
    extra: Mapping[str, str] | None = None,
) -> Iterator[SparkContext]:
    """A Spark application whose tasks run in pods; the JVM in this one makes them.

    Args:
        executors: which.
        memory: the heap of this pod's JVM.
        extra: settings that an administrator adds.

    Raises:
        InfrastructureError: there is no Java, the JVM did not start, or Spark was lost meanwhile.
        WaitingForExecutors: executors failed over and over.
    """
    configuration = sparkconf.kubernetes(executors, extra)
    with _application(configuration, memory=memory, quiet=False) as context:
        yield context


@contextmanager
def _application(
    configuration: Mapping[str, str], *, memory: str, quiet: bool
) -> Iterator[SparkContext]:
    """An application with this configuration, stopped at the end of the block."""
    address = configuration["spark.driver.host"]
    # All that Spark writes goes there. Workers may be about to end when it is removed.
    with tempfile.TemporaryDirectory(prefix="sluice-spark-", ignore_cleanup_errors=True) as scratch:
        jvm = Jvm(heap=memory, scratch=Path(scratch), address=address, quiet=quiet)
        try:
            context = _start(jvm, configuration)
            try:
                yield context
            except SparkLost as error:
                raise _loss(jvm, error) from error
            finally:
                _stop(context, jvm)
        finally:
            jvm.stop()


def _start(jvm: Jvm, configuration: Mapping[str, str]) -> SparkContext:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - takes long, and only this needs it

    os.environ["PYSPARK_PYTHON"] = sys.executable
    gateway = jvm.connect()
    try:
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as PySpark's shell does
        return SparkContext(conf=SparkConf().setAll(list(configuration.items())))
    except Exception as error:  # Py4J raises many kinds
        _forget()
        raise InfrastructureError(
            "; ".join([f"Spark did not start: {_first_line(error)}", *jvm.tail])
        ) from error


def _stop(context: SparkContext, jvm: Jvm) -> None:
    """Stop the application in order, and its JVM without further ado.

    The JVM ends before PySpark's own end of it is stopped, which would otherwise wait a second for
    the connection between them to fall silent.
    """
    overdue = threading.Timer(STOP_SECONDS, jvm.process.kill)
    overdue.start()
    try:
        context._jsc.stop()  # noqa: SLF001 - the half of context.stop() that is in the JVM
    except Exception as error:  # noqa: BLE001 - whatever it is, the application is gone
        _log.debug("Spark was not stopped in order", error=_first_line(error))
    finally:
        overdue.cancel()
        # Its server would print that the JVM is gone.
        context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # noqa: SLF001
        jvm.stop()
        context._jsc = None  # noqa: SLF001
        context.stop()
        _forget()


def _forget() -> None:
    """Let PySpark start anew in this process: it keeps one gateway for good otherwise."""
    from pyspark import SparkContext  # noqa: PLC0415

    gateway = SparkContext._gateway  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    if gateway is not None:
        with suppress(Exception):  # the JVM is gone, so its sockets are closed one way or another
            gateway.shutdown()


def _loss(jvm: Jvm, error: SparkLost) -> InfrastructureError:
    """What became of Spark."""
    code = jvm.exit_code(seconds=2)
    if code == TOO_MANY_FAILURES:
        return WaitingForExecutors("executors failed over and over, and Spark gave up")
    said = f"Spark's JVM ended with code {code}" if code is not None else "Spark stopped"
    return InfrastructureError("; ".join([f"{said}: {error}", *jvm.tail]))
